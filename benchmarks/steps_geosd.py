"""Whole training steps of this project, by phase: sampling, models, loss, backward, update.

    python benchmarks/steps_geosd.py --models 0.8M --kinds fwdkl geosd

The responses never end early, as in `steps_trl.py`, whose prompts, weights and lengths are the
same. Each kind runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import synthetic
import torch
from measuring import (
    PhaseClock,
    Stopwatch,
    finish_steps,
    in_child,
    parser,
    peak_bytes,
    resident_bytes,
)

from geosd.cli.freed_memory import keep_freed_memory
from geosd.objectives.objective import build_objective
from geosd.optim.update import UpdateRule
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.training import loop
from geosd.training.arguments import LoopArguments
from geosd.training.loop import train_step
from geosd.training.policy import Policy, ReferenceModels
from geosd.training.rollouts import Rollouts
from geosd.training.run import TrainingRun

KINDS = ("fwdkl", "revkl", "jsd", "skewkl", "tip", "tropd", "sft", "grpo", "geosd")
GROUP = 8
SMOKE = {"problems": 2, "new": 4, "top_k": 8, "compiled": False}
# As TRL's is by default: neither runs pi_0.
NO_PENALTY = {"grpo": {"kl_coefficient": 0.0}}


@dataclass(frozen=True)
class Work:
    """The size of a step.

    Attributes:
        problems: Prompts; GRPO samples `GROUP` responses to each.
        prompt: Tokens of the student's prompt.
        privileged: Tokens that the teacher's prompt has beyond that.
        new: Tokens of a response.
        top_k: K of the union support.
        blocks: Of a K-FAC factor.
        subsample: Share of the tokens that enters the factors.
        chunk: Positions whose logits are held at once.
        compiled: Whether the sampler's step is compiled, as in a study on a CPU.
        warmup: Steps that are not counted.
        steps: Steps that are.
    """

    problems: int = 8
    prompt: int = 32
    privileged: int = 40
    new: int = 128
    top_k: int = 64
    blocks: int = 4
    subsample: float = 0.125
    chunk: int = 4096
    compiled: bool = True
    warmup: int = 2
    steps: int = 5


class SyntheticEncoding:
    """Text to ids and back, of the letters' tokenizer or of a real one."""

    def __init__(self, tokenizer: Any, work: Work) -> None:
        """Keep the tokenizer."""
        self.tokenizer, self.work = tokenizer, work
        self.pad_id = tokenizer.pad_token_id

    def prompt(self, text: str) -> list[int]:
        """A user's turn."""
        chat = [{"role": "user", "content": text}]
        return self.tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]


@dataclass
class SyntheticRollouts:
    """Responses to random prompts, sampled from the student as in a run; SFT's are given."""

    encoding: SyntheticEncoding
    sampler: TransformersSampler
    source: str
    work: Work

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, dict[str, Any]]:
        """The responses of a step; a reward counts digits."""
        work, encoding = self.work, self.encoding
        each = GROUP if self.source == "group" else 1
        asked = synthetic.texts(work.problems, work.prompt, seed=step)
        asked = [text for text in asked for _ in range(each)]
        given = synthetic.texts(len(asked), work.privileged + synthetic.TEMPLATE_TOKENS, -step)
        prompts = [encoding.prompt(text) for text in asked]
        privileged = [encoding.prompt(text + more) for text, more in zip(asked, given, strict=True)]
        if self.source == "solution":
            vocabulary = len(encoding.tokenizer)
            responses = synthetic.prompt_ids(len(asked), work.new, vocabulary, seed=step)
        else:
            sampling = SamplingParams(1.0, 1.0, work.new)
            responses = [list(c.ids) for c in self.sampler.sample(prompts, sampling, seed=step)]
            assert all(len(response) == work.new for response in responses)
        texts = encoding.tokenizer.batch_decode(responses)
        rewards = [float(sum(map(str.isdigit, text))) for text in texts]
        rows = len(asked)
        return Rollouts([None] * rows, prompts, privileged, responses, rewards, [True] * rows), {}


def endless_sampler(
    model: torch.nn.Module, pad_id: int, rows: int, compiled: bool
) -> TransformersSampler:
    """The sampler of a run, but that no token ends a response."""
    return TransformersSampler(model, [], pad_id, rows=rows, compiled=compiled)


def assemble(model: torch.nn.Module, tokenizer: Any, kind: str, work: Work) -> TrainingRun:
    """A run of one method on random prompts; GeoSD updates with K-FAC, the others with AdamW."""
    keep_freed_memory()  # as every step program does
    objective = build_objective(kind.removesuffix("+kfac"), **NO_PENALTY.get(kind, {}))
    model.eval()
    kfac = kind in ("geosd", "fwdkl+kfac")
    update_rule = UpdateRule(
        model,
        rule="kfac" if kfac else "adamw",
        kfac={"blocks": work.blocks, "subsample": work.subsample},
    )
    encoding = SyntheticEncoding(tokenizer, work)
    sampler = endless_sampler(model, encoding.pad_id, 256, work.compiled)
    policy = Policy(model)
    return TrainingRun(
        policy=policy,
        objective=objective,
        update_rule=update_rule,
        reference_models=ReferenceModels(policy, anchor_every=64),
        problem_sampler=None,
        rollout_source=SyntheticRollouts(encoding, sampler, objective.rollouts, work),
        encoding=encoding,
        seed=0,
    )


def arguments(work: Work, microbatch: int | None = None) -> LoopArguments:
    """The loop's numbers; no step is one that the log measures."""
    return LoopArguments(
        steps=10**6,
        learning_rate=1e-5,
        warmup=20,
        top_k=work.top_k,
        loss_mean="sequence",
        save_every=10**6,
        max_skipped_steps=0,
        diagnose_every=10**6,
        final_rollouts=8,
        chunk=work.chunk,
        microbatch=microbatch,
    )


def phases_of(run: TrainingRun) -> PhaseClock:
    """A clock that charges sampling, each model's passes, loss, backward pass and update."""
    clock = PhaseClock()
    clock.wrap(run.rollout_source.sampler, "sample", "generate")

    def student_or_teacher() -> str:
        return "student" if torch.is_grad_enabled() else "teacher"

    passes = "rest loss teacher"  # not within sampling or a backward pass
    clock.wrap(run.student.model, "forward", student_or_teacher, only_in=passes)
    clock.wrap(run.reference_models.anchor.model, "forward", "anchor", only_in=passes)
    clock.wrap(run.reference_models.reference.model, "forward", "pi_0", only_in=passes)
    clock.wrap(loop.TrainStepLoss, "_student_scalars", "loss", only_in="rest")
    clock.wrap(torch.autograd, "backward", "backward")
    kfac = run.update_rule.preconditioner
    if kfac is not None:
        clock.wrap(kfac.factors, "add", "K-FAC")
        clock.wrap(kfac, "step", "K-FAC")
    clock.wrap(run.update_rule.adam, "step", "optimiser")
    return clock


def measure(make_model: Any, kind: str, work: Work) -> dict[str, Any]:
    """Times of a few steps after the first ones, their phases, and peak memory."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, tokenizer = make_model()
    run = assemble(model, tokenizer, kind, work)
    before = resident_bytes()
    args = arguments(work)
    clock = phases_of(run)
    first, times, laps = None, [], []
    for step in range(1, 1 + work.warmup + work.steps):
        clock.lap()
        watch = Stopwatch()
        train_step(run, args, step)
        seconds = watch.read()
        first = first or seconds
        if step > work.warmup:
            times.append(seconds)
            laps.append(clock.lap())
    return {
        "kind": kind,
        "times": times,
        "phases": laps,
        "first_step": first,
        "peak_bytes": peak_bytes(),
        "start_bytes": before,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def synthetic_model(name: str) -> tuple[Any, Any]:
    """A model of random weights and its tokenizer."""
    shape = synthetic.SHAPES[name]
    return synthetic.model(shape), synthetic.tokenizer(shape.vocabulary)


def saved_model(folder: Path) -> tuple[Any, Any]:
    """A model of a folder and its tokenizer."""
    from geosd.models.load_and_save import load_model

    return load_model(folder)


def main() -> None:
    """Measure the kinds one after another."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=["0.8M"], help="sizes, or model folders")
    options.add_argument("--kinds", nargs="+", default=["fwdkl", "sft", "grpo", "geosd"])
    options.add_argument("--steps", type=int, default=Work.steps)
    options.add_argument("--warmup", type=int, default=Work.warmup)
    given = options.parse_args()
    work = Work(steps=given.steps, warmup=given.warmup)
    if given.smoke:
        given.models, work = ["tiny"], replace(work, **SMOKE, steps=1, warmup=0)
    runs = []
    for name, kind in itertools.product(given.models, given.kinds):
        known = name in synthetic.SHAPES
        make = partial(synthetic_model, name) if known else partial(saved_model, Path(name))
        label = name if known else Path(name).name
        runs.append({"model": label, **in_child(partial(measure, make, kind, work))})
    finish_steps("geosd", runs, given.out)


if __name__ == "__main__":
    main()
