"""One update: responses, what each model says of them, the loss, the step, the log's values.

A step's responses are cut into parts: over the ranks, and on each rank into passes that fit in
memory. A loss whose weights depend on the whole step (TIP's selection) is exact nonetheless: the
models boil each position down to a few scalars; the scalars of all parts are put together; the
method makes one loss of them, and its derivative by each scalar is what the part that the scalar
came from is differentiated with. Only scalars travel, and every rank has the same loss.

N = response positions of the step.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from geosd.objectives.objective import Batch, Objective, Terms
from geosd.objectives.reduce import mean_loss
from geosd.optim.distributed import whole
from geosd.optim.warmup import warmup
from geosd.seeds import seed_of
from geosd.training.chunked_logits import (
    Before,
    View,
    diagnose,
    local_quantities,
    states_at,
    view,
)
from geosd.training.fsdp import reshard, through
from geosd.training.microbatches import Part, parts_of, sequence_of, terms_of_mean
from geosd.training.rollouts import Rollouts
from geosd.training.run import Recipe, Run

Local = dict[str, Tensor]
"""An objective's scalars, each [n] of a part or [N] of the step."""


def update_once(run: Run, recipe: Recipe, step: int) -> dict[str, float]:
    """One update; what the log says of it.

    A sharded student is gathered in its compute precision; another one computes in bfloat16 under
    autocast.
    """
    device = next(run.student.parameters()).device
    cast = recipe.precision == "bfloat16" and not isinstance(run.student, FSDPModule)
    with torch.autocast(device.type, torch.bfloat16, enabled=cast):
        return _update_once(run, recipe, step, device)


def _update_once(run: Run, recipe: Recipe, step: int, device: torch.device) -> dict[str, float]:
    run.copies.before(step)
    measured = step % recipe.diagnose_every == 0 or step + 1 == recipe.steps
    rollouts, seen = run.experience.collect(step, measured)
    ranks, pad_id = run.ranks, run.encoding.pad_id
    parts = parts_of(rollouts, ranks.rank, ranks.size, recipe.microbatch, pad_id, device)
    frozen = [_frozen_views(run, part, seen, measured) for part in parts]
    work = _Step(run, recipe, step, rollouts, parts, frozen, sequence_of(rollouts, device))

    run.update.zero_grad()
    loss, terms, hidden = work.differentiate()
    values = _values(loss, terms, rollouts, work.sequence, recipe)
    before = []
    if measured:
        diagnosed, before = through(run.student, lambda whole: work.look(whole, hidden))
        values |= work.added(diagnosed)
        reshard(run.student)  # or the pass after the update would read the weights before it
    rate = recipe.learning_rate * warmup(step, recipe.warmup_steps)
    values |= {"update/learning_rate": rate, "update/gradient_norm": _gradient_norm(run.student)}
    run.update.step(rate)
    values["update/relative_size"] = run.update.relative_step()
    if measured:
        values |= {f"curvature/{name}": value for name, value in run.update.spectrum().items()}
        values |= work.added([{"update/kl_old_new": work.moved(before)}])
    reshard(run.student)
    run.copies.reshard()
    return values


@dataclass(frozen=True)
class _Step:
    """What the passes of one step share; `frozen` and `parts` go side by side."""

    run: Run
    recipe: Recipe
    number: int
    rollouts: Rollouts
    parts: list[Part]
    frozen: list[dict[str, View]]
    sequence: Tensor

    def differentiate(self) -> tuple[Tensor, Terms, list[Tensor]]:
        """Add the loss's gradient to the student's; the loss, its terms, hidden states by part."""
        if len(self.parts) == 1:
            with self._observed(self.parts[0]):
                local, hidden = self._forward(0)
                loss, terms, slopes = self._judge(self._together([local]))
                self._backward(0, local, slopes)
            return loss, terms, [hidden]
        _, _, slopes = self._judge(self._foreseen())
        locals_, hiddens = [], []
        for number, part in enumerate(self.parts):
            with self._observed(part):
                local, hidden = self._forward(number)
                self._backward(number, local, slopes)
            locals_.append({name: value.detach() for name, value in local.items()})
            hiddens.append(hidden)
        loss, terms, _ = self._judge(self._together(locals_))
        return loss, terms, hiddens

    def _observed(self, part: Part) -> AbstractContextManager[None]:
        seed = seed_of(self.run.seed, "curvature", self.number)
        terms = terms_of_mean(part, self.rollouts, self.recipe.loss_mean)
        return self.run.update.observe(part.mine.mask, terms, seed, part.among)

    def _forward(self, number: int) -> tuple[Local, Tensor]:
        """The scalars of a part, with gradients to the student, and its hidden states without."""
        part, objective = self.parts[number], self.run.objective
        read = {name: it for name, it in self.frozen[number].items() if name in objective.needs}

        def of_student(model: nn.Module) -> tuple[Local, Tensor]:
            student = View(model, states_at(model, part.mine))
            local = local_quantities(
                objective,
                {"student": student, **read},
                part.mine.token,
                self.recipe.top_k,
                self.recipe.chunk,
            )
            return local, student.hidden.detach()

        return through(self.run.student, of_student)

    def _foreseen(self) -> Local:
        """The step's scalars before any pass that has gradients, as far as slopes depend on them.

        Where every position counts alike, slopes do not depend on them at all.
        """
        if type(self.run.objective).combine is Objective.combine:
            return {"loss": torch.zeros(len(self.sequence), device=self.sequence.device)}
        with torch.no_grad():
            return self._together([self._forward(number)[0] for number in range(len(self.parts))])

    def _together(self, locals_: list[Local]) -> Local:
        """The step's scalars [N] from those of this rank's parts, and of the other ranks'."""
        step = {}
        for name, some in locals_[0].items():
            step[name] = torch.zeros(len(self.sequence), dtype=some.dtype, device=some.device)
            for part, local in zip(self.parts, locals_, strict=True):
                step[name][part.at] = local[name].detach()
            self.run.ranks.add(step[name])
        return step

    def _judge(self, step: Local) -> tuple[Tensor, Terms, dict[str, Tensor | None]]:
        """The loss, its terms, and its derivatives [N] by each of the step's scalars."""
        leaves = {name: value.detach().requires_grad_() for name, value in step.items()}
        reward = torch.tensor(self.rollouts.rewards, device=self.sequence.device)
        vocabulary = self.run.student.config.vocab_size
        terms = self.run.objective.combine(leaves, Batch(self.sequence, reward, vocabulary))
        loss = mean_loss(terms.loss, terms.weight, self.sequence, over=self.recipe.loss_mean)
        slopes = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        return loss.detach(), terms, dict(zip(leaves, slopes, strict=True))

    def _backward(self, number: int, local: Local, slopes: dict[str, Tensor | None]) -> None:
        at = self.parts[number].at
        names = [
            name
            for name, value in local.items()
            if value.requires_grad and slopes.get(name) is not None
        ]
        torch.autograd.backward(
            [local[name] for name in names], [slopes[name][at] for name in names]
        )

    @torch.no_grad()
    def look(
        self, student: nn.Module, hiddens: list[Tensor]
    ) -> tuple[list[dict[str, float]], list[Before]]:
        """What the log says of the visited states, part by part, and the student's word on them."""
        top_k, chunk = self.recipe.top_k, self.recipe.chunk
        said, before = [], []
        for views, hidden in zip(self.frozen, hiddens, strict=True):
            mine = View(student, hidden)
            before.append(Before(mine, top_k, chunk))
            said.append(diagnose({**views, "student": mine}, top_k, chunk, len(self.sequence)))
        return said, before

    @torch.no_grad()
    def moved(self, before: list[Before]) -> float:
        """This rank's part of the mean KL(old || new) over the step's positions, in nats."""
        total = 0.0
        for part, old in zip(self.parts, before, strict=True):
            after = view(self.run.student, part.mine)
            total += old.kl_to(after, len(self.sequence))
        return total

    def added(self, parts: list[dict[str, float]]) -> dict[str, float]:
        """The sum over parts and ranks of values that each part has."""
        totals = [sum(part[name] for part in parts) for name in parts[0]]
        sums = torch.tensor(totals, dtype=torch.float64, device=self.sequence.device)
        return dict(zip(parts[0], self.run.ranks.add(sums).tolist(), strict=True))


@torch.no_grad()
def _frozen_views(
    run: Run, part: Part, seen: dict[str, list[Tensor]], measured: bool
) -> dict[str, View]:
    """The models that take no gradient, where the objective or the log asks for them.

    Only the teacher reads the privileged prompt; anchor and pi_0 read the student's. A measured
    step looks through all of them, so that overlap and drift compare between methods. What others
    have `seen` for this rank, the hidden states of each response, is not looked at again.
    """
    copies, needs = run.copies, run.objective.needs
    frozen = {
        "teacher": (copies.teacher, part.theirs),
        "anchor": (copies.anchor, part.mine),
        "reference": (copies.reference, part.mine),
    }
    views = {}
    for name, (model, packed) in frozen.items():
        if name in seen:
            views[name] = View(model, torch.cat(seen[name][part.rows]))
        elif measured or name in needs:
            views[name] = view(model, packed)
    return views


def _values(
    loss: Tensor, terms: Terms, rollouts: Rollouts, sequence: Tensor, recipe: Recipe
) -> dict[str, float]:
    """What the log says of a step's loss and responses."""
    responses = len(rollouts.responses)
    values = {"loss/total": loss.item(), **terms.metrics}
    for name, each in terms.parts.items():
        mean = mean_loss(each, terms.weight, sequence, over=recipe.loss_mean)
        values[f"loss/{name}"] = mean.item()
    values["rollout/tokens"] = sum(map(len, rollouts.responses)) / responses
    values["rollout/truncated"] = sum(rollouts.truncated) / responses
    values["rollout/accuracy"] = sum(rollouts.rewards) / responses
    return values


@torch.no_grad()
def _gradient_norm(model: nn.Module) -> float:
    """Euclidean norm of the gradient as backpropagated, before any preconditioning."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return whole(torch.nn.utils.get_total_norm(gradients)).item()
