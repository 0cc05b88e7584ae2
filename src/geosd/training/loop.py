"""The one training loop. A method is an objective and an update rule; nothing else differs.

A step: fresh responses of the current student; student, teacher and the frozen copies look at the
same response positions; the objective's loss over them; one update; the step log. Everything random
is drawn from (seed, purpose, step), so a run that is killed and started again is the run that was
never killed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tqdm import tqdm

from geosd.training.fsdp import load_whole_weights, whole_model, whole_weights
from geosd.training.preemption import ToBeContinued
from geosd.training.resume_state import ResumeState
from geosd.training.run import Recipe, Run
from geosd.training.snapshots import Snapshots
from geosd.training.step import update_once
from geosd.training.step_log import StepLog

OpenLog = Callable[[int], StepLog]
"""first step -> the step log, opened there."""


def never() -> bool:
    """Nobody asks the run to stop."""
    return False


def train(
    run: Run,
    recipe: Recipe,
    resume: ResumeState,
    open_log: OpenLog,
    snapshots: Snapshots | None = None,
    stopping: Callable[[], bool] = never,
) -> StepLog | None:
    """Train the student in place.

    Every rank calls this; the first one alone logs and writes.

    Args:
        run: The parts.
        recipe: Steps, learning rate, supports.
        resume: Where the state is kept, and continued from if it is this run's, on as many ranks as
            there are now.
        open_log: Opens the step log at the first step that will be done.
        snapshots: Where weights are kept on the way; None keeps none. A state whose snapshots are
            gone is not continued, so that a run that ends has them all.
        stopping: Asked after each step whether the run should end there.

    Returns:
        The closed step log; None on other ranks than the first.

    Raises:
        ToBeContinued: The run was asked to stop; its state is saved.
    """
    ranks = run.ranks
    kept = resume.load()
    whole = kept is not None and (snapshots is None or snapshots.whole_until(kept[0]))
    start = ranks.told(lambda: kept[0] if whole else 0)
    if start:
        _restore(run, kept[1])
    if snapshots is not None and start == 0 and ranks.first:
        snapshots.clear()
    log = open_log(start) if ranks.first else None
    steps = tqdm(
        range(start, recipe.steps),
        initial=start,
        total=recipe.steps,
        mininterval=2,
        disable=not ranks.first,
    )
    for step in steps:
        values = update_once(run, recipe, step)
        if log is not None:
            log.write(values)
        steps.set_postfix_str(f"loss {values['loss/total']:.4f}", refresh=False)
        done = step + 1
        if snapshots is not None and done in snapshots.steps:
            # Before the state: what goes on from it has them already.
            if (model := whole_model(run.student)) is not None:
                snapshots.keep(done, model)
        ended = ranks.any(stopping()) and done < recipe.steps
        if ended or done % recipe.save_every == 0 or done == recipe.steps:
            state = _state(run)
            if ranks.first:
                resume.save(done, state)
        if ended:
            if log is not None:
                log.close()
            ranks.wait()
            raise ToBeContinued(done)
    if log is not None:
        log.close()
    return log


def _state(run: Run) -> dict[str, Any]:
    return {
        "student": whole_weights(run.student),
        "update": run.update.state_dict(),
        "copies": run.copies.state_dict(),
    }


@torch.no_grad()
def _restore(run: Run, state: dict[str, Any]) -> None:
    load_whole_weights(run.student, state["student"])
    run.update.load_state_dict(state["update"])
    run.copies.load_state_dict(state["copies"])
