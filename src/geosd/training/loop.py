"""The one training loop. A method is an objective and an update rule; nothing else differs.

A step: fresh responses of the current student; student, teacher and the frozen copies look at the
same response positions; the objective's loss over them; one update; the step log. Everything random
is drawn from (seed, purpose, step), so a run that is killed and started again is the run that was
never killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from tqdm import tqdm

from geosd.objectives.base import Batch, Objective, Terms
from geosd.objectives.reduce import LossMean, mean_loss
from geosd.optim.schedule import warmup
from geosd.optim.update import Update
from geosd.problems.encoding import Encoding
from geosd.rollout.sampler import Sampler
from geosd.seeds import seed_of
from geosd.training.copies import Copies
from geosd.training.draws import Draws
from geosd.training.packing import Packed, pack
from geosd.training.resume import ResumeState
from geosd.training.rollouts import Gathering, Grade, Rollouts, gather
from geosd.training.snapshots import Snapshots
from geosd.training.steplog import StepLog
from geosd.training.views import Before, View, diagnose, local_quantities, view

OpenLog = Callable[[int], StepLog]
"""first step -> the step log, opened there."""


@dataclass(frozen=True)
class Recipe:
    """What the loop itself needs to know.

    Attributes:
        steps: Updates in all.
        learning_rate: After warm-up.
        warmup_steps: Steps over which the learning rate grows linearly from 0.
        top_k: K of the union support.
        loss_mean: "sequence" is the paper's 1/T inside the expectation over trajectories; "token"
            weighs every response token alike.
        save_every: Steps between saved states.
        diagnose_every: Steps between measurements that cost extra forward passes.
        chunk: Response positions whose logits are held at once.
        precision: Of forward and backward passes; the weights, their gradients and everything the
            optimiser keeps are float32 either way (paper, Table hyperparameters).
    """

    steps: int
    learning_rate: float
    warmup_steps: int
    top_k: int
    loss_mean: LossMean
    save_every: int
    diagnose_every: int
    chunk: int
    precision: Literal["bfloat16", "float32"]


@dataclass(frozen=True)
class Run:
    """Everything a run is made of; the loop only puts the parts to work.

    Attributes:
        student: The model that is trained, in place.
        objective: The method.
        update: Its update rule, over the student's parameters.
        copies: Anchor, teacher and pi_0.
        draws: Problems and solutions by step.
        gathering: Where responses come from.
        encoding: Text to ids and back.
        sampler: Samples the student as it is.
        grade: Decides whether an answer is right.
        seed: The run's seed.
    """

    student: nn.Module
    objective: Objective
    update: Update
    copies: Copies
    draws: Draws
    gathering: Gathering
    encoding: Encoding
    sampler: Sampler
    grade: Grade
    seed: int


def train(
    run: Run,
    recipe: Recipe,
    resume: ResumeState,
    open_log: OpenLog,
    snapshots: Snapshots | None = None,
) -> StepLog:
    """Train the student in place.

    Args:
        run: The parts.
        recipe: Steps, learning rate, supports.
        resume: Where the state is kept, and continued from if it is this run's.
        open_log: Opens the step log at the first step that will be done.
        snapshots: Where weights are kept on the way; None keeps none. A state whose snapshots are
            gone is not continued, so that a run that ends has them all.

    Returns:
        The closed step log.
    """
    start = 0
    kept = resume.load()
    if kept is not None and (snapshots is None or snapshots.whole_until(kept[0])):
        start, state = kept
        run.student.load_state_dict(state["student"])
        run.update.load_state_dict(state["update"])
        run.copies.load_state_dict(state["copies"])
    if snapshots is not None and start == 0:
        snapshots.clear()
    log = open_log(start)
    device = next(run.student.parameters()).device.type
    steps = tqdm(range(start, recipe.steps), initial=start, total=recipe.steps, mininterval=2)
    for step in steps:
        with torch.autocast(device, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            values = _step(run, recipe, step)
        log.write(values)
        steps.set_postfix_str(f"loss {values['loss/total']:.4f}", refresh=False)
        done = step + 1
        if snapshots is not None:  # before the state: what goes on from it has them already
            snapshots.keep(done, run.student)
        if done % recipe.save_every == 0 or done == recipe.steps:
            resume.save(done, _state(run))
    log.close()
    return log


def _state(run: Run) -> dict:
    return {
        "student": run.student.state_dict(),
        "update": run.update.state_dict(),
        "copies": run.copies.state_dict(),
    }


def _step(run: Run, recipe: Recipe, step: int) -> dict[str, float]:
    """One update; what the log says of it."""
    run.copies.before(step)
    rollouts = gather(run.gathering, run.draws, run.encoding, run.sampler, run.grade, step)
    pad_id, device = run.encoding.pad_id, next(run.student.parameters()).device
    mine = pack(rollouts.student, rollouts.responses, pad_id, device)
    theirs = pack(rollouts.teacher, rollouts.responses, pad_id, device)
    measured = step % recipe.diagnose_every == 0 or step + 1 == recipe.steps
    others = _frozen_views(run, mine, theirs, measured)

    run.update.zero_grad()
    seed = seed_of(run.seed, "curvature", step)
    terms_of_mean = _terms_of_mean(mine, recipe.loss_mean)
    with run.update.observe(mask=mine.mask, loss_terms=terms_of_mean, seed=seed):
        views = {"student": view(run.student, mine), **others}
        terms = _terms(run.objective, views, mine, rollouts, recipe)
        loss = mean_loss(terms.loss, terms.weight, mine.row, over=recipe.loss_mean)
        loss.backward()

    student = View(run.student, views["student"].hidden.detach())
    before = Before(student, recipe.top_k, recipe.chunk) if measured else None
    values = _values(loss, terms, mine, rollouts, recipe)
    if measured:
        values |= diagnose({**others, "student": student}, recipe.top_k, recipe.chunk)
    rate = recipe.learning_rate * warmup(step, recipe.warmup_steps)
    values |= {"update/learning_rate": rate, "update/gradient_norm": _gradient_norm(run.student)}
    run.update.step(rate)
    values["update/relative_size"] = run.update.relative_step()
    if before is not None:
        values |= {f"curvature/{name}": value for name, value in run.update.spectrum().items()}
        with torch.no_grad():
            values["update/kl_old_new"] = before.kl_to(view(run.student, mine))
    return values


def _terms_of_mean(packed: Packed, loss_mean: LossMean) -> Tensor:
    """How many terms the loss is a mean of, as seen from each sequence [B].

    Over sequences of means over tokens, a token of sequence b weighs 1 / (B T_b).
    """
    sequences = len(packed.ids)
    if loss_mean == "token":
        return torch.full((sequences,), float(len(packed.token)), device=packed.token.device)
    return sequences * torch.bincount(packed.row, minlength=sequences).float()


@torch.no_grad()
def _frozen_views(run: Run, mine: Packed, theirs: Packed, measured: bool) -> dict[str, View]:
    """The models that take no gradient, where the objective or the log asks for them.

    Only the teacher reads the privileged prompt; anchor and pi_0 read the student's. A measured
    step looks through all of them, so that overlap and drift compare between methods.
    """
    copies, needs = run.copies, run.objective.needs
    frozen = {
        "teacher": (copies.teacher, theirs),
        "anchor": (copies.anchor, mine),
        "reference": (copies.reference, mine),
    }
    return {name: view(*it) for name, it in frozen.items() if measured or name in needs}


def _terms(
    objective: Objective,
    views: dict[str, View],
    packed: Packed,
    rollouts: Rollouts,
    recipe: Recipe,
) -> Terms:
    read = {name: it for name, it in views.items() if name in objective.needs | {"student"}}
    local = local_quantities(objective, read, packed.token, recipe.top_k, recipe.chunk)
    student = views["student"].model
    reward = torch.tensor(rollouts.rewards, device=packed.token.device)
    return objective.combine(local, Batch(packed.row, reward, student.config.vocab_size))


def _values(
    loss: Tensor, terms: Terms, packed: Packed, rollouts: Rollouts, recipe: Recipe
) -> dict[str, float]:
    """What the log says of a step's loss and responses."""
    responses = len(rollouts.responses)
    values = {"loss/total": loss.item(), **terms.metrics}
    for name, part in terms.parts.items():
        mean = mean_loss(part, terms.weight, packed.row, over=recipe.loss_mean)
        values[f"loss/{name}"] = mean.item()
    values["rollout/tokens"] = sum(map(len, rollouts.responses)) / responses
    values["rollout/truncated"] = sum(rollouts.truncated) / responses
    values["rollout/accuracy"] = sum(rollouts.rewards) / responses
    return values


@torch.no_grad()
def _gradient_norm(model: nn.Module) -> float:
    """Euclidean norm of the gradient as backpropagated, before any preconditioning."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return torch.nn.utils.get_total_norm(gradients).item()
