"""Parts of a training run: its inputs, its parts, and how the recipe makes them.

N = response positions of a microbatch, D = hidden width.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from geosd.models.adapters import add_adapter
from geosd.models.forward import recompute_layers, recomputes
from geosd.objectives.objective import Objective, build_objective
from geosd.optim.update import UpdateRule
from geosd.problems.encoding import Encoding, encoding_of
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.sampling.engines import build_sampler, resolve_engine
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.solution_pool import read_pool
from geosd.training.arguments import LoopArguments, TrainingArguments, training_arguments
from geosd.training.chunked_logits import ChunkedLogits
from geosd.training.fsdp import full_state_dict, load_full_state_dict
from geosd.training.microbatches import Microbatch, split_into_microbatches
from geosd.training.policy import Policy, ReferenceModels, policy_response_logits
from geosd.training.processes import TrainingProcesses
from geosd.training.purified import PurifiedLogits
from geosd.training.rollout_workers import (
    RemoteRollouts,
    RolloutWorker,
    WorkerLink,
    WorkerReferenceHeads,
)
from geosd.training.rollouts import (
    HiddenStates,
    LocalRollouts,
    RolloutBatchSettings,
    RolloutProblemSampler,
    Rollouts,
)
from geosd.training.skipped_steps import SkippedSteps

TEACHER_READS = {"solution_only": "solution_only", "purified": "both"}
"""Teachers that read the solution without the question, and which of both prompts they need."""


@dataclass(frozen=True)
class RunInputs:
    """Everything that a run is assembled from; its bits depend on nothing else.

    The settings are plain values: the training section of the configuration, `source` and
    `thinking` of its data section, and its section `rollout`. Weights, gradients and optimiser
    state are float32 whatever `precision` says (paper, Table hyperparameters). `base` is the folder
    of pi_0; the problems and the pool of their verified solutions are JSON lines.
    """

    settings: Mapping[str, Any]
    base: Path
    problems: Path
    pool: Path
    seed: int

    @cached_property
    def arguments(self) -> TrainingArguments:
        """The recipe."""
        return training_arguments(self.settings)

    @property
    def compute(self) -> torch.dtype:
        """Precision of the passes."""
        return getattr(torch, self.arguments.precision)


@dataclass(frozen=True)
class TrainingRun:
    """The parts of a run, which `geosd.training.loop` puts to work; the student is the policy."""

    policy: Policy
    objective: Objective
    update_rule: UpdateRule
    reference_models: ReferenceModels | WorkerReferenceHeads
    problem_sampler: RolloutProblemSampler
    rollout_source: LocalRollouts | RemoteRollouts
    encoding: Encoding
    seed: int
    ranks: TrainingProcesses = field(default_factory=TrainingProcesses)
    skipped: SkippedSteps = field(default_factory=SkippedSteps)

    @property
    def student(self) -> nn.Module:
        """The model that is trained."""
        return self.policy.model

    @property
    def every_position(self) -> bool:
        """Whether the student is run over every token of every row: K-FAC reads them all."""
        return self.update_rule.preconditioner is not None

    def passes(self) -> AbstractContextManager[None]:
        """Context of passes of all models; see `Policy.passes`."""
        models = self.reference_models
        return self.policy.passes(models.reference, models.anchor, models.average)

    def collect(
        self, args: LoopArguments, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates, list[Microbatch]]:
        """Rollouts, states of a worker, this rank's microbatches; see `LocalRollouts.collect`."""
        rollouts, hidden_states = self.rollout_source.collect(step, measured, count)
        ranks, pad_id, device = self.ranks, self.encoding.pad_id, self.policy.device
        microbatches = split_into_microbatches(
            rollouts, ranks.rank, ranks.size, args.microbatch, pad_id, device
        )
        return rollouts, hidden_states, microbatches

    @torch.no_grad()
    def reference_logits(
        self,
        microbatch: Microbatch,
        hidden_states: HiddenStates,
        measured: bool,
        every_position: bool = False,
    ) -> dict[str, ChunkedLogits]:
        """Teacher, anchor and pi_0, as far as objective or log need them; without gradients.

        Only the teacher reads the privileged prompt. A measured step looks through all of them. A
        model whose `hidden_states` a rollout worker has sent is not run again. Where the student is
        run over every token of every row (`every_position`), anchor and pi_0 are, too, in half
        precision: another order of the same sums would set equal weights apart.
        """
        every_position = every_position or recomputes(self.student)
        alike = every_position and self.policy.compute != torch.float32
        models = self.reference_models
        inputs = {
            "teacher": (models.teacher, microbatch.teacher),
            "anchor": (models.anchor, microbatch.student),
            "reference": (models.reference, microbatch.student),
        }
        logits = {}
        for name, (model, packed) in inputs.items():
            if name in hidden_states:
                logits[name] = ChunkedLogits(model, torch.cat(hidden_states[name][microbatch.rows]))
            elif measured or name in self.objective.needs:
                logits[name] = policy_response_logits(model, packed, alike and name != "teacher")
        if models.purified and "teacher" in logits:
            logits["teacher"] = self._purified(microbatch, logits, alike)
        return logits

    def _purified(
        self, microbatch: Microbatch, logits: dict[str, ChunkedLogits], alike: bool
    ) -> PurifiedLogits:
        """The purified teacher, from pi_0 with question and solution, and two passes more."""
        pi_0 = self.reference_models.reference
        alone = logits.get("reference")
        if alone is None:
            alone = policy_response_logits(pi_0, microbatch.student, alike)
        without_question = policy_response_logits(pi_0, microbatch.solution_only)
        return PurifiedLogits(alone, logits["teacher"], without_question)

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on, full on the first rank; every rank calls this."""
        return {
            "student": full_state_dict(self.student),
            "update_rule": self.update_rule.state_dict(),
            "reference_models": self.reference_models.state_dict(),
            "skipped": self.skipped.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` gave, on all ranks."""
        load_full_state_dict(self.student, state["student"])
        for name in ("update_rule", "reference_models", "skipped"):
            getattr(self, name).load_state_dict(state[name])


def assemble_run(
    inputs: RunInputs, ranks: TrainingProcesses | None = None, worker: WorkerLink | None = None
) -> TrainingRun:
    """Assemble a training run: student, objective, update rule, reference models, rollouts.

    Several ranks train the student in shards; None is this process alone. A worker samples and
    scores; None leaves both to the trainers.

    Raises:
        ValueError: The objective or the update rule does not know a value it is given.
        geosd.json_lines.DamagedLineError: A problem or pool line is damaged.
    """
    ranks, args = ranks or TrainingProcesses(), inputs.arguments
    if worker is not None and args.teacher != "live":
        raise ValueError(
            f"training.teacher is {args.teacher!r}, which a rollout worker cannot score;"
            " allowed is 'live'.\nHint: train without --workers."
        )
    if args.lora and (ranks.group is not None or worker is not None):
        raise ValueError(
            "training.lora trains in one process, and here are several (shards of FSDP2, or a"
            " rollout worker).\nHint: start one process without --workers, or set lora to null."
        )
    objective = build_objective(**args.objective)
    policy, tokenizer = Policy.load(inputs.base, ranks, inputs.compute)
    student = policy.model
    if args.lora:
        add_adapter(student, args.lora.rank, args.lora.alpha, args.lora.targets, inputs.seed)
    if args.recompute:
        recompute_layers(student)
    kfac = args.optimiser.kfac
    update_rule = UpdateRule(
        student,
        rule=args.optimiser.rule,
        inner=args.optimiser.inner or "adamw",
        betas=args.betas,
        weight_decay=args.weight_decay,
        kfac=None if kfac is None else {**kfac, "group": ranks.group},
    )
    local = _local_rollouts(inputs, student, tokenizer, ranks, beside_trainer=True)
    if worker is None:
        rollout_source = local
        reference_models = ReferenceModels(
            policy, args.anchor_every, args.teacher, args.teacher_decay
        )
    else:
        rollout_source = RemoteRollouts(policy, worker, frozenset(objective.needs), ranks)
        reference_models = WorkerReferenceHeads(policy, rollout_source, args.anchor_every)
    return TrainingRun(
        policy=policy,
        objective=objective,
        update_rule=update_rule,
        reference_models=reference_models,
        problem_sampler=local.problem_sampler,
        rollout_source=rollout_source,
        encoding=local.encoding,
        seed=inputs.seed,
        ranks=ranks,
    )


def assemble_run_worker(inputs: RunInputs, ranks: TrainingProcesses | None = None) -> RolloutWorker:
    """The rollout worker of a run, in the trainers' precision; `ranks` are its processes."""
    ranks, compute = ranks or TrainingProcesses(), inputs.compute
    policy, tokenizer = Policy.load(inputs.base, ranks, compute, storage=compute)
    local = _local_rollouts(inputs, policy.model, tokenizer, ranks)
    return RolloutWorker(local, inputs.arguments.anchor_every)


def _local_rollouts(
    inputs: RunInputs,
    student: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    ranks: TrainingProcesses,
    beside_trainer: bool = False,
) -> LocalRollouts:
    """Responses sampled from a student in this process; a damaged line of the files raises.

    `beside_trainer` says whether the student is trained here, too.
    """
    args, training = inputs.arguments, read_problems(inputs.problems)
    encoding = encoding_of(inputs.settings, tokenizer, student.generation_config)
    engine = resolve_engine(args.rollout)
    return LocalRollouts(
        student=student,
        settings=RolloutBatchSettings(
            source=build_objective(**args.objective).rollouts,
            problems=args.problems,
            group=args.group,
            sampling=SamplingParams(args.temperature, 1.0, args.response_tokens),
            privilege=args.privilege,
            teacher_reads=TEACHER_READS.get(args.teacher, "question"),
        ),
        problem_sampler=RolloutProblemSampler(
            training, read_pool(inputs.pool, training), inputs.seed
        ),
        encoding=encoding,
        sampler=build_sampler(
            engine,
            inputs.base,
            encoding,
            model=student,
            live=True,
            group=ranks.group,
            beside_trainer=beside_trainer,
        ),
        grade=get_data_source(args.source).grader(),  # its processes, if any, end with this one
        ranks=ranks,
    ).check_prompts()
