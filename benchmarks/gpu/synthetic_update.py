"""A training run on random weights and random responses, for what depends on sizes alone."""

from dataclasses import dataclass
from types import SimpleNamespace

import torch

from geosd.models.architectures import Architecture
from geosd.models.forward import recompute_layers
from geosd.models.tiny_models import random_model
from geosd.objectives.objective import build_objective
from geosd.optim.update import UpdateRule
from geosd.training.arguments import LoopArguments
from geosd.training.fsdp import shard
from geosd.training.policy import Policy, frozen_copy
from geosd.training.processes import TrainingProcesses
from geosd.training.rollouts import Rollouts
from geosd.training.run import TrainingRun

METHODS = {
    "OPSD (standard)": ("fwdkl", "adamw"),
    "GeoSD, AdamW": ("geosd", "adamw"),
    "GeoSD": ("geosd", "kfac"),
}
"""Objective and update rule by the name of the method: those that the paper's costs are of."""
ALL_METHODS = {
    **METHODS,
    "SFT": ("sft", "adamw"),
    "GRPO": ("grpo", "adamw"),
    "RevKL": ("revkl", "adamw"),
    "JSD": ("jsd", "adamw"),
    "TrOPD": ("tropd", "adamw"),
    "TIP": ("tip", "adamw"),
}
"""The same of every method that a study trains."""


@dataclass(frozen=True)
class SyntheticBatch:
    """Random responses of an update: how many, and of how many tokens."""

    responses: int = 8
    tokens: int = 4096
    prompt: int = 256
    privileged: int = 2304  # the teacher's sequences are half as long again (paper, Table flops)

    def rollouts(self, vocabulary: int) -> Rollouts:
        """Random token ids, some responses shorter than others."""
        generator = torch.Generator().manual_seed(0)

        def ids(length: int) -> list[int]:
            return torch.randint(vocabulary, (length,), generator=generator).tolist()

        lengths = [self.tokens * (16 - i) // 16 for i in range(self.responses)]
        return Rollouts(
            problems=[None] * self.responses,
            student_prompts=[ids(self.prompt) for _ in lengths],
            teacher_prompts=[ids(self.privileged) for _ in lengths],
            responses=[ids(length) for length in lengths],
            rewards=[float(i % 2) for i in range(self.responses)],  # GRPO has advantages
            truncated=[False] * self.responses,
        )


def assemble_synthetic_run(
    shape: Architecture,
    ranks: TrainingProcesses,
    device: torch.device,
    method: str,
    compute: torch.dtype,
    batch: SyntheticBatch,
) -> tuple[TrainingRun, LoopArguments]:
    """A training run of one of ALL_METHODS, each response a microbatch.

    Args:
        ranks: The processes that share it in shards; without a group it is whole, on one card.
        compute: Precision of the passes; weights are stored in float32.
        batch: How many responses of how many tokens.
    """
    name, rule = ALL_METHODS[method]
    objective = build_objective(name)
    torch.manual_seed(0)  # the same weights on every call
    with device:
        student = random_model(shape, positions=2**15)
    if ranks.group is not None:
        shard(student, ranks.group, device, compute)
    recompute_layers(student)
    copies = {
        model: frozen_copy(student, compute, compute) if model in objective.needs else None
        for model in ("anchor", "reference")
    }
    reference_models = SimpleNamespace(
        **copies,
        teacher=student,
        average=None,
        purified=False,
        refresh=lambda step: None,  # one anchor serves all steps
    )
    with torch.no_grad():  # away from the anchor, where the distance to it has a gradient
        for parameter in student.parameters():
            parameter.mul_(1.01)
    update_rule = UpdateRule(student, rule=rule, kfac={"group": ranks.group})
    rollouts = batch.rollouts(shape.vocabulary)
    run = TrainingRun(
        policy=Policy(student, compute),
        objective=objective,
        update_rule=update_rule,
        reference_models=reference_models,
        problem_sampler=None,
        rollout_source=SimpleNamespace(collect=lambda step, measured, count: (rollouts, {})),
        encoding=SimpleNamespace(pad_id=0),
        seed=0,
        ranks=ranks,
    )
    return run, LoopArguments(
        steps=10**6,
        learning_rate=1e-6,
        warmup=20,
        top_k=min(1024, shape.vocabulary // 8),
        loss_mean="sequence",
        save_every=10**6,
        max_skipped_steps=0,
        diagnose_every=10**6,
        final_rollouts=batch.responses,
        chunk=1024,
        microbatch=1,
    )
