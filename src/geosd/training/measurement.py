"""The measurement of a step: overlap, mismatch, drift, support, and the KL of an update.

It is taken at the states that the student's own rollouts visit, as all models read them.

N = response positions of all microbatches and ranks, n = of one microbatch.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from geosd.geometry import Support, fisher_rao, forward_kl, overlap, union_support
from geosd.mismatch_region import in_mismatch_region
from geosd.training.arguments import LoopArguments
from geosd.training.chunked_logits import ChunkedLogits, logit_chunks
from geosd.training.microbatches import Microbatch
from geosd.training.packing import Packed
from geosd.training.policy import policy_response_logits
from geosd.training.processes import TrainingProcesses
from geosd.training.rollouts import HiddenStates, Rollouts
from geosd.training.run import TrainingRun


class _StateDiagnosis:
    """The log's values at the visited states, gathered over microbatches, then over ranks.

    Logged, with p = student and q = teacher, means over the N positions:
        `overlap`                  sum_i sqrt(p_i q_i)
        `mismatch`                 share of positions in the `mismatch_region`
        `drift/anchor`, `drift/pi_0`   d_FR (not squared) to the anchor and to the base model
                                   (paper, Figure mechanism B)
        `support/teacher_mass_mean`, `support/teacher_mass_min`   mean and minimum of the teacher's
                                   mass on the union of top-K supports that the loss is computed on
                                   (paper, Training: > 99.9 %); of a loss without a support on
                                   the union of student's and teacher's

    Overlap, mismatch and drift are on the union of all four models' top-K. `needs` are the models
    that the objective reads.
    """

    def __init__(self, top_k: int | None, chunk: int, needs: Collection[str]) -> None:
        self.top_k, self.chunk = top_k, chunk
        self.on_support = ["student", "teacher", *({"anchor"} & set(needs))]
        self.sums: dict[str, float] = defaultdict(float)
        self.least_mass, self.positions = 1.0, 0

    @torch.no_grad()
    def add(self, models: Mapping[str, ChunkedLogits]) -> None:
        """Take in the n states of a microbatch, as all four models read them."""
        n = len(models["student"].hidden)
        for at in logit_chunks(n, self.chunk):
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

    def log_values(self, ranks: TrainingProcesses) -> dict[str, float]:
        """The logged values, over the states of all ranks, the same on each."""
        sums = ranks.reduce_values({**self.sums, "positions": self.positions})
        positions = sums.pop("positions")
        least = ranks.reduce_values({"support/teacher_mass_min": self.least_mass}, ReduceOp.MIN)
        return {name: value / positions for name, value in sums.items()} | least


Predictions = list[tuple[slice, Support, Tensor]]
"""Positions, and a student's distributions there on its own top-K: N x K numbers, not N x V."""
KEPT_OF_WHOLE = 1024
"""K of what is kept of the old student where the loss is on the whole vocabulary."""


@torch.no_grad()
def _predictions_of(student: ChunkedLogits, top_k: int | None, chunk: int) -> Predictions:
    """A student's predictions at every position, on its top-K, or top-`KEPT_OF_WHOLE` of None."""
    kept = top_k or KEPT_OF_WHOLE
    predictions = []
    for at in logit_chunks(len(student.hidden), chunk):
        logits_nV = student.logits(at)
        support = union_support([logits_nV], kept)
        predictions.append((at, support, support.restrict(logits_nV)))
    return predictions


@torch.no_grad()
def _kl_of_update(before: Predictions, after: ChunkedLogits) -> float:
    """Sum over the positions of KL(old || new), in nats."""
    total = 0.0
    for at, support, log_old in before:
        log_new = support.restrict(after.logits(at))
        # forward_kl(p, q) is KL(q || p): here the new student stands for p, the old one for q.
        total += forward_kl(log_new, log_old).double().sum().item()
    return total


@dataclass
class Measurement:
    """The log's measurement of one step: none, or the visited states and the student's update.

    A method that trains on solutions, which the student need not visit, is measured on as many
    rollouts that nothing is trained on.
    """

    run: TrainingRun
    args: LoopArguments
    step: int
    before: list[tuple[Packed, Predictions]] = field(default_factory=list)

    @property
    def due(self) -> bool:
        """Whether the step is measured."""
        return self.step % self.args.diagnose_every == 0

    @property
    def reads_batch(self) -> bool:
        """Whether the states are those that the step trains on, and all models must read them."""
        return self.due and self.run.objective.rollouts != "solution"

    @torch.no_grad()
    def before_update(
        self,
        rollouts: Rollouts,
        microbatches: list[Microbatch],
        student_states: list[Tensor],
        references: list[dict[str, ChunkedLogits]],
    ) -> dict[str, float]:
        """Values of `_StateDiagnosis` at this rank's microbatches; within `passes`."""
        run, args = self.run, self.args
        if not self.due:
            return {}
        if self.reads_batch:
            students = (ChunkedLogits(run.student, states) for states in student_states)
            parts = zip(microbatches, references, students, strict=True)
            visited = ((each, {**models, "student": student}) for each, models, student in parts)
        else:
            _, sent, sampled = run.collect(args, self.step, True, len(rollouts.responses))
            visited = ((each, _models_at(run, each, sent)) for each in sampled)
        diagnosis = _StateDiagnosis(args.top_k, args.chunk, run.objective.needs)

        def diagnose(models: dict[str, ChunkedLogits]) -> Predictions:
            diagnosis.add(models)
            return _predictions_of(models["student"], args.top_k, args.chunk)

        for microbatch, models in visited:
            before = run.policy.with_head(partial(diagnose, models))
            self.before.append((microbatch.student, before))
        return diagnosis.log_values(run.ranks)

    @torch.no_grad()
    def after_update(self) -> dict[str, float]:
        """K-FAC's spectrum, and the mean KL(old || new) of the update at the states, in nats."""
        if not self.due:
            return {}
        run, kl, positions = self.run, 0.0, 0
        # As the old student was run; it matters in half precision alone.
        alike = self.reads_batch and run.every_position and run.policy.compute != torch.float32
        with run.policy.passes():
            for packed, before in self.before:
                kl += _kl_of_update(before, policy_response_logits(run.student, packed, alike))
                positions += len(packed.token)
        sums = run.ranks.reduce_values({"kl": kl, "positions": positions})
        spectrum = {f"curvature/{k}": v for k, v in run.update_rule.spectrum().items()}
        return spectrum | {"update/kl_old_new": sums["kl"] / sums["positions"]}


@torch.no_grad()
def _models_at(
    run: TrainingRun, microbatch: Microbatch, hidden_states: HiddenStates
) -> dict[str, ChunkedLogits]:
    """All models at the states of a microbatch of the student's that nothing is trained on."""
    models = run.reference_logits(microbatch, hidden_states, measured=True)
    return {**models, "student": policy_response_logits(run.student, microbatch.student)}


@torch.no_grad()
def measure_student(run: TrainingRun, args: LoopArguments, step: int) -> dict[str, float]:
    """Overlap, mismatch, drift and support of the student after `step` updates, for the log.

    They are means over `args.final_rollouts` fresh rollouts, one to each of the next problems of a
    method with one rollout a problem. The anchor is the one of the last step. Nothing of the run
    changes: the same measurement follows a run of `step` steps and the first `step` of a longer
    one. The rollouts' summary is among the values.
    """
    diagnosis = _StateDiagnosis(args.top_k, args.chunk, run.objective.needs)
    with run.passes():
        rollouts, sent, microbatches = run.collect(args, step, True, args.final_rollouts)
        for microbatch in microbatches:  # one at a time: the states of all would not fit
            run.policy.with_head(partial(diagnosis.add, _models_at(run, microbatch, sent)))
    return diagnosis.log_values(run.ranks) | rollouts.summary()
