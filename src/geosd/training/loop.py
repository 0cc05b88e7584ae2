"""The one training loop. A method is an objective and an update rule; nothing else differs.

`geosd.training.step.train_step` is one step. Everything random is drawn from (seed, purpose, step),
so a run that is killed and started again ends with the same bits as one that was never killed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tqdm import tqdm

from geosd.training.fsdp import full_model, full_state_dict, load_full_state_dict
from geosd.training.measurement import measure_student
from geosd.training.packing import responses_per_rank
from geosd.training.resume_state import PreemptionError, ResumeState, Snapshots
from geosd.training.run import TrainingArguments, TrainingRun
from geosd.training.step import train_step
from geosd.training.step_log import StepLog

OpenLog = Callable[[int], StepLog]
"""first step -> the step log, opened there."""


def train(
    run: TrainingRun,
    args: TrainingArguments,
    resume: ResumeState,
    open_log: OpenLog,
    snapshots: Snapshots | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> StepLog | None:
    """The training loop: take every step of a run, log it, and save states and snapshots.

    The log ends with a row of its own: the measurement of the student after the last step. Every
    rank calls this; only the first one logs and writes.

    Args:
        run: The parts.
        args: Steps, learning rate, supports.
        resume: Where the state is kept, and continued from if it is this run's, on as many ranks as
            there are now.
        open_log: Opens the step log at the first step that will be done.
        snapshots: Where weights are kept on the way; None keeps none. A state whose snapshots are
            gone is not continued, so that a run that ends has them all.
        stop_requested: Called after each step; true ends the run there.

    Returns:
        The closed step log on the first rank, None on the others.

    Raises:
        PreemptionError: The scheduler sent SIGTERM; the state of the run is saved.
        TrainingDivergedError: More steps were skipped than `args` allows; the state is saved.
        ValueError: The ranks cannot share the rollouts of the last measurement evenly.
    """
    ranks = run.ranks
    responses_per_rank(args.final_rollouts, ranks.size)  # or the run would fail at its end
    start = _resume(run, args.steps, resume, snapshots)
    if snapshots is not None and start == 0 and ranks.is_main:
        snapshots.clear()
    log = open_log(start) if ranks.is_main else None
    total, silent = args.steps, not ranks.is_main
    steps = tqdm(range(start, total), initial=start, total=total, mininterval=2, disable=silent)
    for step in steps:
        values = train_step(run, args, step)
        if log is not None:
            log.write(values)
        steps.set_postfix_str(f"loss {values['loss/total']:.4f}", refresh=False)
        done = step + 1
        # Snapshots before the state: a run that continues from it has them already.
        due = snapshots is not None and done in snapshots.steps
        if due:
            measured = measure_student(run, args, done)
            if (model := full_model(run.student)) is not None:
                snapshots.save(done, model, measured)
        stopped = ranks.any(stop_requested()) and done < args.steps
        diverged = run.skipped.count > args.max_skipped_steps
        if stopped or diverged or done % args.save_every == 0 or done == args.steps:
            state = _state_dict(run)
            if ranks.is_main:
                log.sync()  # as snapshots: before the state
                resume.save(done, state)
        run.skipped.check(args.max_skipped_steps, total, str(resume.path))
        if stopped:
            if log is not None:
                log.close()
            ranks.barrier()
            raise PreemptionError(
                f"asked to stop after {done} steps; start again to go on from there"
            )
    run.skipped.check(args.max_skipped_steps, total, str(resume.path))  # of a run that was done
    values = measure_student(run, args, total)
    if log is not None:
        log.write(values)
        log.close()
    return log


@torch.no_grad()
def _resume(run: TrainingRun, steps: int, resume: ResumeState, snapshots: Snapshots | None) -> int:
    """Continue from the last state of the run: the steps that are done, 0 where there is none."""
    usable = snapshots.complete_until if snapshots is not None else lambda step: True
    saved = resume.load(steps, run.ranks, usable)
    if saved is None:
        return 0
    step, state = saved
    load_full_state_dict(run.student, state["student"])
    run.update_rule.load_state_dict(state["update_rule"])
    run.reference_models.load_state_dict(state["reference_models"])
    run.skipped.load_state_dict(state["skipped"])
    return step


def _state_dict(run: TrainingRun) -> dict[str, Any]:
    return {
        "student": full_state_dict(run.student),
        "update_rule": run.update_rule.state_dict(),
        "reference_models": run.reference_models.state_dict(),
        "skipped": run.skipped.state_dict(),
    }
