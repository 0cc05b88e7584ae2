"""Diagnostics of the visited states: overlap, mismatch, drift, support, and the KL of an update.

N = response positions of all microbatches and ranks, n = of one microbatch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from geosd.geometry import Support, fisher_rao, forward_kl, overlap, union_support
from geosd.mismatch import in_mismatch_region
from geosd.training.chunked_logits import ChunkedLogits, chunks, response_logits
from geosd.training.fsdp import reshard, with_root_gathered
from geosd.training.master_weights import compute_weights
from geosd.training.processes import Ranks
from geosd.training.run import TrainingArguments, TrainingRun
from geosd.training.visited_states import (
    VisitedStates,
    sample_for_measurement,
    visited_states,
)


class StateDiagnosis:
    """What the log says of the visited states, gathered over microbatches, then over ranks.

    Logged, with p = student and q = teacher, means over the N positions:
        `overlap`                  sum_i sqrt(p_i q_i)
        `mismatch`                 share of positions in the mismatch region, `geosd.mismatch`
        `drift/anchor`, `drift/pi_0`   d_FR (not squared) to the anchor and to the base model
                                   (paper, Figure mechanism B)
        `support/teacher_mass_mean`, `support/teacher_mass_min`   mean and minimum of the teacher's
                                   mass on the union of top-K supports that the loss is computed on
                                   (paper, Training: > 99.9 %); of a loss without a support on
                                   the union of student's and teacher's

    Overlap, mismatch and drift are on the union of all four models' top-K.

    Args:
        top_k: K of the unions.
        chunk: Positions whose logits are held at once.
        needs: Models that the objective reads.
    """

    def __init__(self, top_k: int, chunk: int, needs: Collection[str]) -> None:
        """Know of no state yet."""
        self.top_k, self.chunk = top_k, chunk
        self.on_support = ["student", "teacher", *({"anchor"} & set(needs))]
        self.sums: dict[str, float] = defaultdict(float)
        self.least_mass, self.positions = 1.0, 0

    @torch.no_grad()
    def add(self, models: Mapping[str, ChunkedLogits]) -> None:
        """Take in the states of a microbatch.

        Args:
            models: "student", "teacher", "anchor" and "reference" at its n positions.
        """
        n = len(models["student"].hidden)
        for at in chunks(n, self.chunk):
            logits = {name: model.logits(at) for name, model in models.items()}
            support = union_support(list(logits.values()), self.top_k)
            log = {name: support.restrict(value) for name, value in logits.items()}
            best = log["teacher"].argmax(-1, keepdim=True)
            q_star, p_star = (log[name].gather(-1, best).exp() for name in ("teacher", "student"))
            of_loss = union_support([logits[name] for name in self.on_support], self.top_k)
            mass = of_loss.mass(logits["teacher"])
            values = {
                "overlap": overlap(log["student"], log["teacher"]),
                "mismatch": in_mismatch_region(q_star, p_star),
                "drift/anchor": fisher_rao(log["student"], log["anchor"]),
                "drift/pi_0": fisher_rao(log["student"], log["reference"]),
                "support/teacher_mass_mean": mass,
            }
            for name, value_n in values.items():
                self.sums[name] += value_n.double().sum().item()
            self.least_mass = min(self.least_mass, mass.min().item())
        self.positions += n

    def values(self, ranks: Ranks) -> dict[str, float]:
        """The values for the log, over the states of all ranks, the same on each."""
        sums = ranks.sum_values({**self.sums, "positions": self.positions})
        positions = sums.pop("positions")
        least = ranks.min_values({"support/teacher_mass_min": self.least_mass})
        return {name: value / positions for name, value in sums.items()} | least


class OldPolicy:
    """The student's predictions before an update, to measure how far the update moved them.

    Kept on its own top-K support, so N x K numbers and not N x V.
    """

    @torch.no_grad()
    def __init__(self, student: ChunkedLogits, top_k: int, chunk: int) -> None:
        """Remember the student's distributions at every position."""
        self.predictions: list[tuple[slice, Support, Tensor]] = []
        for at in chunks(len(student.hidden), chunk):
            logits_nV = student.logits(at)
            support = union_support([logits_nV], top_k)
            self.predictions.append((at, support, support.restrict(logits_nV)))

    @torch.no_grad()
    def kl_to(self, after: ChunkedLogits) -> float:
        """Sum over the positions of KL(old || new), in nats."""
        total = 0.0
        for at, support, log_old in self.predictions:
            log_new = support.restrict(after.logits(at))
            # forward_kl(p, q) is KL(q || p): here the new student stands for p, the old one for q.
            total += forward_kl(log_new, log_old).double().sum().item()
        return total


def diagnose(
    student: nn.Module, visited: Iterable[VisitedStates], diagnosis: StateDiagnosis
) -> list[OldPolicy]:
    """Add visited states to a diagnosis, and remember the student at them.

    Args:
        student: Has the output head, gathered.
        visited: By microbatch.
        diagnosis: What they are added to.
    """
    old_policies = []
    for states in visited:
        models = states.models(student)
        diagnosis.add(models)
        old_policies.append(OldPolicy(models["student"], diagnosis.top_k, diagnosis.chunk))
    return old_policies


@torch.no_grad()
def measure_student(run: TrainingRun, args: TrainingArguments, step: int) -> dict[str, float]:
    """Overlap, mismatch, drift and support of the student after `step` updates, for the log.

    They are means over `args.final_rollouts` fresh rollouts, one to each of the problems of the
    next steps of a method with one rollout a problem: the same problems for every method. The
    anchor is the one of the last step. The rollouts are drawn from the run's seed and `step`, and
    nothing of the run changes: the same measurement follows a run of `step` steps and the first
    `step` steps of a longer one.

    Returns:
        What `StateDiagnosis` logs, and the rollouts' summary.
    """
    precision = getattr(torch, args.precision)
    diagnosis = StateDiagnosis(args.top_k, args.chunk, run.objective.needs)
    with (
        compute_weights(run.student, precision),
        compute_weights(run.reference_models.average, precision),
    ):
        rollouts, hidden_states, microbatches = sample_for_measurement(
            run, args, step, args.final_rollouts
        )
        for microbatch in microbatches:  # one at a time: the states of all would not fit
            states = visited_states(run, microbatch, hidden_states)
            with_root_gathered(run.student, partial(_add, diagnosis, states))
    reshard(run.student)
    run.reference_models.reshard()
    return diagnosis.values(run.ranks) | rollouts.summary()


def _add(diagnosis: StateDiagnosis, states: VisitedStates, student: nn.Module) -> None:
    diagnosis.add(states.models(student))


@torch.no_grad()
def kl_of_update(
    student: nn.Module,
    visited: Sequence[VisitedStates],
    old_policies: Sequence[OldPolicy],
    ranks: Ranks,
    every_position: bool,
) -> float:
    """Mean KL(old || new) of the student across an update at all ranks' visited states, in nats.

    `every_position` says how the old student was run; it matters in half precision alone.
    """
    alike = every_position and next(student.parameters()).dtype != torch.float32
    kl, positions = 0.0, 0
    for states, old in zip(visited, old_policies, strict=True):
        kl += old.kl_to(response_logits(student, states.microbatch.student, alike))
        positions += len(states.student)
    sums = ranks.sum_values({"kl": kl, "positions": positions})
    return sums["kl"] / sums["positions"]
