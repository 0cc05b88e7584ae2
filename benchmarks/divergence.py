"""Time and peak memory of the loss at a real vocabulary: ours, the naive form, and TRL's.

    python benchmarks/divergence.py --trl .venv-trl-bench/bin/python

Hidden states of student, teacher and anchor at N positions go through the output head of
V = 151,936 tokens; the loss is differentiated to the student's hidden states and the head. Naive:
whole logits of all positions, softmax over the vocabulary. Ours: the union of the models' top
K = 1,024, a chunk of positions at a time. "Union, at once" is our loss without chunks, by plain
softmax over the union: the gradients must agree. Each runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import (
    MB,
    ROOT,
    cpu_summary,
    digits,
    finish,
    headline,
    in_child,
    parser,
    peak_bytes,
    resident_bytes,
    result,
    table,
    timed,
    with_spread,
)
from torch import Tensor, nn

VOCABULARY, TOP_K, POSITIONS, WIDTH, CHUNK = 151_936, 1024, 512, 128, 128
SMALL = {"vocabulary": 50, "top_k": 8, "positions": 4, "width": 4, "chunk": 2}
PEAKED = 3.0
"""Standard deviation of the logits: a trained model's are peaked, uniform ones have no top K."""


class Heads(nn.Module):
    """The loss's part of a model: its output head; with it, hidden states by model."""

    def __init__(self, sizes: argparse.Namespace) -> None:
        """Draw head and hidden states; teacher and anchor are near the student."""
        super().__init__()
        torch.manual_seed(0)
        self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        nn.init.normal_(self.lm_head.weight, std=PEAKED / sizes.width**0.5)
        student = torch.randn(sizes.positions, sizes.width)
        self.hidden = {
            name: student + noise * torch.randn_like(student)
            for name, noise in (("student", 0.0), ("teacher", 0.3), ("anchor", 0.1))
        }
        self.hidden["student"].requires_grad_()
        self.token = torch.randint(sizes.vocabulary, (sizes.positions,))

    def get_output_embeddings(self) -> nn.Module:
        """As transformers' models have it."""
        return self.lm_head


def ours(heads: Heads, method: str, sizes: argparse.Namespace) -> Tensor:
    """The objective as a training step computes it, in chunks."""
    from geosd.objectives.objective import build_objective
    from geosd.training.chunked_logits import ChunkedLogits, chunked_position_scalars

    objective = build_objective(method)
    names = ["student", *sorted(objective.needs)]
    logits = {name: ChunkedLogits(heads, heads.hidden[name]) for name in names}
    token, chunk = heads.token, sizes.chunk
    return chunked_position_scalars(objective, logits, token, sizes.top_k, chunk)["loss"].mean()


def union_at_once(heads: Heads, method: str, sizes: argparse.Namespace) -> Tensor:
    """The same value, written down without our functions: topk, a mask, softmax, the formula."""
    logits = _all_logits(heads, method)
    kept = torch.zeros_like(logits["student"], dtype=torch.bool)
    for each in logits.values():
        kept.scatter_(1, each.detach().topk(sizes.top_k).indices, True)
    return _formula({n: z.masked_fill(~kept, -torch.inf) for n, z in logits.items()}, method)


def naive(heads: Heads, method: str, sizes: argparse.Namespace) -> Tensor:
    """The divergence over the whole vocabulary, of all positions at once."""
    return _formula(_all_logits(heads, method), method)


def _all_logits(heads: Heads, method: str) -> dict[str, Tensor]:
    names = ("student", "teacher", "anchor") if method == "geosd" else ("student", "teacher")
    logits = {"student": heads.lm_head(heads.hidden["student"])}
    with torch.no_grad():
        return logits | {name: heads.lm_head(heads.hidden[name]) for name in names[1:]}


def _formula(logits: dict[str, Tensor], method: str) -> Tensor:
    log_p, log_q = (logits[name].log_softmax(-1) for name in ("student", "teacher"))
    if method == "fwdkl":  # tokens outside the support have q = 0
        difference = (log_q - log_p).masked_fill(log_q == -torch.inf, 0.0)
        return (log_q.exp() * difference).sum(-1).mean()
    # GeoSD: half the squared Hellinger distance, and the squared Fisher-Rao distance to the anchor.
    log_a = logits["anchor"].log_softmax(-1)
    overlap = ((log_p + log_q) / 2).exp().sum(-1)
    half = ((log_p / 2).exp() - (log_a / 2).exp()).square().sum(-1).sqrt() / 2
    return ((1 - overlap) + (4 * half.asin()).square()).mean()


def trl_chunked(heads: Heads, method: str, sizes: argparse.Namespace) -> Tensor:
    """TRL's Distillation loss: forward KL (beta 0) over the whole vocabulary, in tiles."""
    from trl.trainer.distillation_trainer import _chunked_divergence_loss

    weight, ones = heads.lm_head.weight, torch.ones(1, sizes.positions)
    student, teacher = (heads.hidden[name][None] for name in ("student", "teacher"))
    return _chunked_divergence_loss(student, teacher, weight, weight.detach(), ones, beta=0.0)[0]


FORMS: dict[str, Callable[..., Tensor]] = {
    "ours": ours,
    "union, at once": union_at_once,
    "naive": naive,
    "TRL, in chunks": trl_chunked,
}


def measure(form: str, method: str, sizes: argparse.Namespace) -> dict[str, Any]:
    """Times, peak memory beyond the inputs, loss, and the gradients' fingerprint."""
    torch.set_num_threads(1)
    # What is imported on the way is not the loss's memory.
    small = argparse.Namespace(**SMALL)
    FORMS[form](Heads(small), method, small).backward()
    heads = Heads(sizes)
    before, times, losses = resident_bytes(), [], []

    def once() -> None:
        loss = FORMS[form](heads, method, sizes)
        loss.backward()
        losses.append(loss.item())

    for _ in range(1 + sizes.repetitions):
        heads.zero_grad()
        heads.hidden["student"].grad = None
        times.append(timed(once))
    gradient = heads.hidden["student"].grad
    return {
        "form": form,
        "method": method,
        "times": times[1:],
        "more_bytes": peak_bytes() - before,
        "loss": losses[-1],
        "gradient": gradient[:: max(1, len(gradient) // 16)].tolist(),
    }


def trl_versions(python: Path, sizes: argparse.Namespace) -> dict[str, Any] | None:
    """TRL's loss, measured in its environment."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "trl.json"
        words = [str(python), __file__, "--inside-trl", "--out", str(out)]
        for name in ("vocabulary", "top_k", "positions", "width", "chunk", "repetitions"):
            words += [f"--{name.replace('_', '-')}", str(getattr(sizes, name))]
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=os.environ)
        if done.returncode:
            raise RuntimeError(
                f"TRL's loss ended with status {done.returncode}:\n{done.stderr[-3000:]}\n"
                "Hint: run the program alone, with --inside-trl."
            )
        return json.loads(out.read_text())


def gradient_error(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Distance of two gradients over the norm of the second."""
    a, b = (torch.tensor(each["gradient"]) for each in (one, other))
    return ((a - b).norm() / b.norm()).item()


def main() -> None:
    """Measure the forms, FwdKL's and GeoSD's."""
    options = parser(__doc__)
    options.add_argument("--trl", type=Path, help="Python of an environment that has TRL")
    options.add_argument("--inside-trl", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--vocabulary", type=int, default=VOCABULARY)
    options.add_argument("--top-k", type=int, default=TOP_K)
    options.add_argument("--positions", type=int, default=POSITIONS)
    options.add_argument("--width", type=int, default=WIDTH)
    options.add_argument("--chunk", type=int, default=CHUNK)
    options.add_argument("--repetitions", type=int, default=2)
    given = options.parse_args()
    if given.smoke:
        given.vocabulary, given.top_k, given.positions, given.width = 500, 20, 16, 8
        given.chunk, given.repetitions = 8, 1
    if given.inside_trl:
        value = in_child(partial(measure, "TRL, in chunks", "fwdkl", given))
        given.out.write_text(json.dumps(value))
        return
    runs, errors = [], {}
    for method in ("fwdkl", "geosd"):
        by_form = {
            form: in_child(partial(measure, form, method, given))
            for form in ("ours", "union, at once", "naive")
        }
        if method == "fwdkl" and given.trl and given.trl.exists():
            by_form["TRL, in chunks"] = trl_versions(given.trl, given)
        errors[method] = gradient_error(by_form["ours"], by_form["union, at once"])
        runs += by_form.values()
    rows, found = [], []
    names = {"fwdkl": "FwdKL", "geosd": "GeoSD"}
    for method, label in names.items():
        of = {run["form"]: run for run in runs if run["method"] == method}
        base = of["naive"]
        base_cpu = cpu_summary(base["times"])["median"]
        for form, run in of.items():
            cpu = cpu_summary(run["times"])
            more = run["more_bytes"] / base["more_bytes"]
            error = digits(errors[method]) if form == "ours" else "–"
            memory = [f"{run['more_bytes'] / MB:,.0f}", digits(more)]
            time_ = [with_spread(cpu), digits(cpu["median"] / base_cpu)]
            rows.append([f"{label}, {form}", *time_, *memory, digits(run["loss"]), error])
        ours_ = of["ours"]
        share = ours_["more_bytes"] / base["more_bytes"]
        ratio = cpu_summary(ours_["times"])["median"] / base_cpu
        found += [
            headline(
                f"{label} loss, memory over the naive form", share, "at most 0.25", share <= 0.25
            ),
            headline(f"{label} loss, time over the naive form", ratio, "at most 1", ratio <= 1),
            headline(
                f"{label} loss, gradient error against the union at once",
                errors[method],
                "at most 1e-4",
                errors[method] <= 1e-4,
            ),
        ]
    liger = "Liger's fused losses need Triton, which no CPU has."
    notes = (
        f"{given.positions} positions, hidden {given.width}, V = {given.vocabulary:,},"
        f" K = {given.top_k:,}, {given.chunk} positions a chunk; forward and backward, output head"
        f" included. Memory: peak beyond inputs and weights. {liger}"
    )
    columns = ["loss", "CPU s", "× naive", "MB", "× naive", "value", "gradient error"]
    tables = [table("The divergence at a real vocabulary", columns, rows, notes)]
    finish(result("divergence", tables, {"runs": runs, "errors": errors}, found), given.out)


if __name__ == "__main__":
    main()
