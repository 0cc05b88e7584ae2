"""The one training loop, and one step of it, in the order of the paper's algorithm.

A method is an objective and an update rule; nothing else differs. `train_step` calls, in this order

    rollouts                         rollouts.LocalRollouts.collect
    teacher, anchor, pi_0            run.TrainingRun.reference_logits, policy.ReferenceModels
    student on the union support     chunked_logits.chunked_position_scalars,
    objectives.*.per_position loss, backward                   TrainStepLoss.backward,
    objectives.*.combine K-FAC, AdamW                     optim.update.UpdateRule.step,
    optim.kfac.KFAC.step values for the log               measurement.Measurement

A step's responses are cut into microbatches: over the ranks, and on each rank into passes that fit
in memory. A loss whose weights depend on the whole step (TIP's selection) is exact nonetheless: the
models reduce each position to a few scalars; the scalars of all microbatches are put together; the
method makes one loss of them, and its derivative by each scalar is the gradient from which that
scalar's microbatch is differentiated. Only scalars travel, and every rank has the same loss.

Everything random is drawn from (seed, purpose, step), so a run that is killed and started again
ends with the same bits as one that was never killed.

N = response positions of the step, n = of one microbatch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from tqdm import tqdm

from geosd.objectives.objective import Objective, ObjectiveBatch, ObjectiveTerms
from geosd.objectives.reduce import mean_loss, mean_loss_terms
from geosd.optim.update import warmup
from geosd.preemption import PreemptionError
from geosd.sampling.paused_part import PartLeftError
from geosd.seeds import seed_of
from geosd.training.arguments import LoopArguments
from geosd.training.chunked_logits import (
    ChunkedLogits,
    chunked_hidden_states,
    chunked_position_scalars,
)
from geosd.training.fsdp import full_model
from geosd.training.measurement import Measurement, measure_student
from geosd.training.microbatches import Microbatch, microbatch_responses_per_rank
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.rollouts import LocalRollouts, Rollouts
from geosd.training.run import TrainingRun

if TYPE_CHECKING:  # `make gpu-check` takes a step where neither pandas nor DVCLive is
    from geosd.training.step_log import StepLog

Scalars = dict[str, Tensor]
"""An objective's scalars, each [n] of a microbatch or [N] of the step."""


def train(
    run: TrainingRun,
    args: LoopArguments,
    resume: ResumeState,
    open_log: Callable[[int], StepLog],
    snapshots: Snapshots | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> StepLog | None:
    """The training loop: take every step of a run, log it, and save states and snapshots.

    The log ends with a row of its own: the measurement of the student after the last step. Every
    rank calls this; only the first one logs and writes, and gets the closed log.

    Args:
        resume: Where the state is kept, and continued from if it is this run's, on as many ranks.
        open_log: Opens the step log at the first step that will be done.
        snapshots: Where weights are kept on the way; a state whose snapshots are gone is not
            continued.
        stop_requested: Called after each step, and where the step may be left before each token of
            its rollouts; true ends the run there.

    Raises:
        PreemptionError: The scheduler sent SIGTERM; the state of the run is saved.
        TrainingDivergedError: More steps were skipped than `args` allows; the state is saved.
        ValueError: The ranks cannot share the rollouts of the last measurement evenly.
    """
    ranks, total = run.ranks, args.steps
    microbatch_responses_per_rank(
        args.final_rollouts, ranks.size
    )  # or the run would fail at its end
    usable = snapshots.complete_until if snapshots is not None else lambda step: True
    start, state = resume.load(total, ranks, usable) or (0, None)
    if state is not None:
        run.load_state_dict(state)
    elif snapshots is not None and ranks.is_main:
        snapshots.clear()
    log = open_log(start) if ranks.is_main else None
    silent = not ranks.is_main
    steps = tqdm(range(start, total), initial=start, total=total, mininterval=2, disable=silent)
    run = _leaving_rollouts(run, stop_requested)
    for step in steps:
        try:
            values = train_step(run, args, step)
        except PartLeftError:  # nothing of the step has been learned from yet
            if log is not None and step > start:
                log.sync()
                resume.save(step, run.state_dict())
            if log is not None:
                log.close()
            raise PreemptionError(_asked_to_stop(step)) from None
        if log is not None:
            log.write(values)
        steps.set_postfix_str(f"loss {values['loss/total']:.4f}", refresh=False)
        done = step + 1
        # Snapshots before the state: a run that continues from it has them already.
        if snapshots is not None and done in snapshots.steps:
            measured = measure_student(run, args, done)
            model = full_model(run.student)
            if model is not None:
                snapshots.save(done, model, measured)
        stopped = ranks.any(stop_requested()) and done < total
        diverged = run.skipped.count > args.max_skipped_steps
        if stopped or diverged or done % args.save_every == 0 or done == total:
            state = run.state_dict()
            if log is not None:
                log.sync()  # as snapshots: before the state
                resume.save(done, state)
        run.skipped.check(args.max_skipped_steps, total, str(resume.path))
        if stopped:
            if log is not None:
                log.close()
            ranks.barrier()
            raise PreemptionError(_asked_to_stop(done))
    run.skipped.check(args.max_skipped_steps, total, str(resume.path))  # of a run that was done
    values = measure_student(run, args, total)
    if log is not None:
        log.write(values)
        log.close()
    return log


def _leaving_rollouts(run: TrainingRun, stop_requested: Callable[[], bool]) -> TrainingRun:
    """The run with steps that end in the middle of their rollouts, which take most of the time.

    Not where several processes would have to leave together, nor where the step has already moved
    a teacher that is an average of students.
    """
    source = run.rollout_source
    alone = run.ranks.size == 1 and isinstance(source, LocalRollouts)
    if not alone or run.reference_models.average is not None:
        return run
    return replace(run, rollout_source=replace(source, stop_requested=stop_requested))


def _asked_to_stop(done: int) -> str:
    return f"asked to stop after {done} steps; start again to go on from there"


def train_step(run: TrainingRun, args: LoopArguments, step: int) -> dict[str, float]:
    """One step: sample, compare, differentiate, update; the result is its values for the log."""
    measurement = Measurement(run, args, step)
    run.reference_models.refresh(step)
    run.update_rule.zero_grad()
    with run.passes():
        # Responses of the current student, and the microbatches of this rank.
        rollouts, sent, microbatches = run.collect(args, step, measurement.reads_batch)

        # Teacher, anchor and pi_0 at the response positions.
        references = [
            run.reference_logits(each, sent, measurement.reads_batch, run.every_position)
            for each in microbatches
        ]

        # The student, the loss on the union support, and its gradient.
        step_loss = TrainStepLoss(run, args, step, rollouts, microbatches, references)
        loss, terms, student_states = step_loss.backward()
        values = step_loss.log_values(loss, terms)
        values |= measurement.before_update(rollouts, microbatches, student_states, references)

    # K-FAC and AdamW.
    values |= _take_update(step_loss, values["loss/total"], student_states)
    return values | measurement.after_update()


@dataclass(frozen=True)
class TrainStepLoss:
    """The loss of one step over microbatches, this rank's; `references` have no gradients."""

    run: TrainingRun
    args: LoopArguments
    step: int
    rollouts: Rollouts
    microbatches: list[Microbatch]
    references: list[dict[str, ChunkedLogits]]

    @cached_property
    def index(self) -> Tensor:
        """The response of each position of the step [N]."""
        device = self.microbatches[0].student.ids.device
        lengths = [len(response) for response in self.rollouts.responses]
        rows_B = torch.arange(len(lengths), device=device)
        lengths_B = torch.tensor(lengths, device=device)
        # The size is known here; without it the device would be waited for.
        return rows_B.repeat_interleave(lengths_B, output_size=sum(lengths))

    def backward(self) -> tuple[Tensor, ObjectiveTerms, list[Tensor]]:
        """Differentiate the step's loss; the loss, its terms, and the student's hidden states."""
        single = len(self.microbatches) == 1
        if not single:
            _, _, grads = self._loss_and_grads(self._first_pass_scalars())
        lengths = [len(response) for response in self.rollouts.responses]
        terms_B = mean_loss_terms(
            torch.tensor(lengths, device=self.index.device), self.args.loss_mean
        )
        all_scalars, all_hidden = [], []
        for microbatch, references in zip(self.microbatches, self.references, strict=True):
            terms_b = terms_B[microbatch.rows]
            with self.run.update_rule.observe(
                microbatch.student.mask,
                terms_b,
                seed_of(self.run.seed, "curvature", self.step),
                (microbatch.tokens_before, microbatch.step_tokens),
            ):
                scalars, hidden_nD = self._student_scalars(microbatch, references)
                if single:
                    loss, terms, grads = self._loss_and_grads(self._gather([scalars]))
                used = {
                    name: grads[name][microbatch.positions]
                    for name, value in scalars.items()
                    if value.requires_grad and grads.get(name) is not None
                }
                torch.autograd.backward([scalars[name] for name in used], list(used.values()))
            all_scalars.append({name: value.detach() for name, value in scalars.items()})
            all_hidden.append(hidden_nD)
        if not single:
            loss, terms, _ = self._loss_and_grads(self._gather(all_scalars))
        return loss, terms, all_hidden

    def _student_scalars(
        self, microbatch: Microbatch, references: dict[str, ChunkedLogits]
    ) -> tuple[Scalars, Tensor]:
        """The scalars [n] with gradients to the student, and its hidden states [n, D] without."""
        objective, args = self.run.objective, self.args
        needed = {name: each for name, each in references.items() if name in objective.needs}

        def forward() -> tuple[Scalars, Tensor]:
            student, every = self.run.student, self.run.every_position
            hidden_nD = chunked_hidden_states(student, microbatch.student, every_position=every)
            logits = {"student": ChunkedLogits(student, hidden_nD), **needed}
            token_n = microbatch.student.token
            scalars = chunked_position_scalars(objective, logits, token_n, args.top_k, args.chunk)
            return scalars, hidden_nD.detach()

        return self.run.policy.with_head(forward)

    def _first_pass_scalars(self) -> Scalars:
        """The step's scalars before any pass with gradients, as far as the gradients need them.

        Where every position counts alike, the loss's derivative does not depend on the scalars.
        """
        if type(self.run.objective).combine is Objective.combine:
            return {"loss": torch.zeros(len(self.index), device=self.index.device)}
        with torch.no_grad():
            pairs = zip(self.microbatches, self.references, strict=True)
            return self._gather([self._student_scalars(*pair)[0] for pair in pairs])

    def _gather(self, by_microbatch: list[Scalars]) -> Scalars:
        """The step's scalars [N] from those of this rank's microbatches and of the other ranks."""
        gathered = {}
        for name, value_n in by_microbatch[0].items():
            gathered[name] = value_n.new_zeros(len(self.index))
            for microbatch, scalars in zip(self.microbatches, by_microbatch, strict=True):
                gathered[name][microbatch.positions] = scalars[name].detach()
            self.run.ranks.all_reduce(gathered[name])
        return gathered

    def _loss_and_grads(
        self, scalars: Scalars
    ) -> tuple[Tensor, ObjectiveTerms, dict[str, Tensor | None]]:
        """The loss, its terms, and its derivatives [N] by each of the step's scalars."""
        leaves = {name: value.detach().requires_grad_() for name, value in scalars.items()}
        reward = torch.tensor(self.rollouts.rewards, device=self.index.device)
        batch = ObjectiveBatch(self.index, reward, self.run.student.config.vocab_size)
        terms = self.run.objective.combine(leaves, batch)
        loss = self._mean(terms.loss, terms.weight)
        grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        return loss.detach(), terms, dict(zip(leaves, grads, strict=True))

    def _mean(self, each: Tensor, weight: Tensor) -> Tensor:
        """The step's mean of a value [N] of each position."""
        sequences = len(self.rollouts.responses)
        return mean_loss(each, weight, self.index, self.args.loss_mean, sequences)

    def log_values(self, loss: Tensor, terms: ObjectiveTerms) -> dict[str, float]:
        """The loss, its parts and the rollouts, for the log."""
        parts = [self._mean(each, terms.weight) for each in terms.parts.values()]
        total, *means = torch.stack([loss, *parts]).tolist()  # the device is waited for once
        values = {"loss/total": total, **terms.metrics}
        for name, mean in zip(terms.parts, means, strict=True):
            values[f"loss/{name}"] = mean
        return values | self.rollouts.summary()

    def method_at_fault(self, loss: float, student_states: list[Tensor]) -> str | None:
        """The objective's class, if the loss is not finite though all models are on every rank."""
        if math.isfinite(loss):
            return None
        others = (each.hidden for models in self.references for each in models.values())
        finite = all(bool(hidden.isfinite().all()) for hidden in (*student_states, *others))
        return None if self.run.ranks.any(not finite) else type(self.run.objective).__name__


def _take_update(
    step_loss: TrainStepLoss, loss: float, student_states: list[Tensor]
) -> dict[str, float]:
    """Take the step, if loss, gradient and factors are finite; its size, for the log."""
    run, args, step = step_loss.run, step_loss.args, step_loss.step
    rule = run.update_rule
    rate = args.learning_rate * warmup(step, args.warmup)
    norm = run.policy.gradient_norm()
    values = {"update/learning_rate": rate, "update/gradient_norm": norm}
    reason = None
    if math.isfinite(loss) and math.isfinite(norm):
        try:
            rule.step(rate)
        except (FloatingPointError, torch.linalg.LinAlgError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
    else:
        reason = f"the loss is {loss:g}, the gradient's norm {norm:g}"
    if reason is not None:
        rule.skip()
        problems = (problem.id for problem in step_loss.rollouts.problems)
        run.skipped.add(step, problems, reason, step_loss.method_at_fault(loss, student_states))
        return values | {"update/relative_size": 0.0, "update/skipped": 1.0}
    values["update/relative_size"] = rule.relative_step()
    if rule.blocks_in_float64:
        values["curvature/float64_blocks"] = rule.blocks_in_float64
    return values
