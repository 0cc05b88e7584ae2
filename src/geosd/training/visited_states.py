"""The states that the student's own rollouts visit, as all models read them, without gradients.

n = response positions of a microbatch, D = hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from geosd.training.chunked_logits import ChunkedLogits, recomputes, response_logits
from geosd.training.packing import Microbatch, split_into_microbatches
from geosd.training.rollouts import HiddenStates, Rollouts
from geosd.training.run import TrainingArguments, TrainingRun


@dataclass(frozen=True)
class VisitedStates:
    """The states of one microbatch of the student's rollouts.

    Attributes:
        microbatch: The rollouts.
        student: The student's hidden states [n, D] at them.
        references: Teacher, anchor and pi_0 at them.
    """

    microbatch: Microbatch
    student: Tensor
    references: dict[str, ChunkedLogits]

    def models(self, student: nn.Module) -> dict[str, ChunkedLogits]:
        """All four models at these states; `student` has its output head, gathered."""
        return {**self.references, "student": ChunkedLogits(student, self.student)}


@torch.no_grad()
def reference_logits(
    run: TrainingRun,
    microbatch: Microbatch,
    hidden_states: HiddenStates,
    measured: bool,
    every_position: bool,
) -> dict[str, ChunkedLogits]:
    """Teacher, anchor and pi_0, as far as the objective or the log needs them; without gradients.

    Only the teacher reads the privileged prompt; anchor and pi_0 read the student's. A measured
    step looks through all of them, so that overlap and drift compare between methods. A model
    whose hidden states a rollout worker has sent is not run again.

    Args:
        run: The parts.
        microbatch: The rollouts.
        hidden_states: Of a rollout worker.
        measured: Whether the step is measured.
        every_position: Whether K-FAC has the student run over every token of every row. In half
            precision anchor and pi_0 are then run so, too: another order of the same sums would
            set equal weights apart.
    """
    every_position = every_position or recomputes(run.student)
    alike = every_position and next(run.student.parameters()).dtype != torch.float32
    models, needs = run.reference_models, run.objective.needs
    inputs = {
        "teacher": (models.teacher, microbatch.teacher),
        "anchor": (models.anchor, microbatch.student),
        "reference": (models.reference, microbatch.student),
    }
    logits = {}
    for name, (model, packed) in inputs.items():
        if name in hidden_states:
            logits[name] = ChunkedLogits(model, torch.cat(hidden_states[name][microbatch.rows]))
        elif measured or name in needs:
            logits[name] = response_logits(model, packed, alike and name != "teacher")
    return logits


def sample_for_measurement(
    run: TrainingRun, args: TrainingArguments, step: int, rollouts: int
) -> tuple[Rollouts, HiddenStates, list[Microbatch]]:
    """Rollouts of the student as it is, which nothing is trained on.

    Args:
        run: The parts.
        args: Numbers of the loop.
        step: From whose first problem on the problems are taken, one rollout each.
        rollouts: How many.

    Returns:
        The rollouts, hidden states that a worker has computed, and this rank's microbatches.
    """
    device = next(run.student.parameters()).device
    sampled, hidden_states = run.rollout_source.collect(step, True, rollouts)
    microbatches = split_into_microbatches(
        sampled, run.ranks.rank, run.ranks.size, args.microbatch, run.encoding.pad_id, device
    )
    return sampled, hidden_states, microbatches


@torch.no_grad()
def visited_states(
    run: TrainingRun, microbatch: Microbatch, hidden_states: HiddenStates
) -> VisitedStates:
    """What all models make of a microbatch of the student's rollouts."""
    references = reference_logits(
        run, microbatch, hidden_states, measured=True, every_position=False
    )
    student = response_logits(run.student, microbatch.student).hidden
    return VisitedStates(microbatch, student, references)
