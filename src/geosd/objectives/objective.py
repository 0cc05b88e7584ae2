"""The contract between a method and the training loop.

A loss is made in two moves. `per_position` sees the distributions of some positions and boils each
down to a few scalars; the loop may call it on any chunk of positions. `combine` sees those scalars
for the whole step and decides on selection, weights and advantages.

Everywhere p = student, q = teacher, anchor = checkpoint theta_ckpt, reference = pi_0.
N = response positions of a chunk, or of the step; S = slots of the union support; B = sequences.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor

from geosd.objectives.hyperparameters import check
from geosd.registry import Registry, registered_name_hint

ResponseSource = Literal["student", "group", "solution"]


@dataclass(frozen=True, eq=False)
class ObjectiveStates:
    """Inputs of an objective at N response positions: distributions of student, teacher, anchor.

    Methods read the distributions through `student`, `teacher` and `anchor`, and the sampled
    token's log-probabilities through `sampled`, `sampled_teacher` and `sampled_reference`: all but
    the student's come detached. A field is None where no model gave it. A log-probability of the
    sampled token may be a function: no logsumexp is made for a method that does not read it.

    A chunk has as many slots as the largest union of its positions. Slots that a position does not
    fill are -inf in student, teacher and anchor: probability 0. The divergences and the entropy of
    `geosd.geometry` read them so. Another formula takes probabilities (`exp`), or logarithms from
    `geosd.geometry.floored`: -inf - -inf and 0 * -inf are NaN, in the gradient too.

    Source: the paper, section "Setup" (sec:method-setup).

    Attributes:
        log_p: [N, S] student on the union support; each row sums to one.
        log_q: [N, S] teacher.
        log_anchor: [N, S] anchor.
        token_log_p: [N] full-softmax log p(y_t) of the sampled (or solution) token.
        token_log_q: [N] the same of the teacher.
        token_log_ref: [N] the same of pi_0.
    """

    log_p: Tensor | None
    log_q: Tensor | None
    log_anchor: Tensor | None
    token_log_p: Tensor | Callable[[], Tensor]
    token_log_q: Tensor | Callable[[], Tensor] | None
    token_log_ref: Tensor | Callable[[], Tensor] | None

    @property
    def student(self) -> Tensor:
        """[N, S] log p, with gradient."""
        return self._required("log_p", "the student on a support")

    @property
    def teacher(self) -> Tensor:
        """[N, S] log q, without gradient."""
        return self._required("log_q", "the teacher").detach()

    @property
    def anchor(self) -> Tensor:
        """[N, S] log-probabilities of the anchor, without gradient."""
        return self._required("log_anchor", "the anchor").detach()

    @property
    def sampled(self) -> Tensor:
        """[N] log p(y_t), with gradient."""
        return self._required("token_log_p", "the student")

    @property
    def sampled_teacher(self) -> Tensor:
        """[N] log q(y_t), without gradient."""
        return self._required("token_log_q", "the teacher").detach()

    @property
    def sampled_reference(self) -> Tensor:
        """[N] log pi_0(y_t), without gradient."""
        return self._required("token_log_ref", "the reference").detach()

    def _required(self, name: str, model: str) -> Tensor:
        value = getattr(self, name)
        if value is None:
            raise ValueError(
                f"ObjectiveStates.{name} is None, but the objective reads {model}.\n"
                "Hint: name it in the objective's `needs`, so that the loop computes it."
            )
        return value() if callable(value) else value


@dataclass(frozen=True, eq=False)
class ObjectiveBatch:
    """An objective's inputs of a whole step."""

    sequence: Tensor
    """[N] long, the row of each position, 0..B-1."""
    reward: Tensor | None
    """[B] 0/1 float, or None where nothing was graded."""
    vocabulary: int


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """Loss terms that an objective returns: per-position losses and weights, before the mean.

    The loss [N] alone carries a gradient; a weight [N] of 0 drops the position from the mean. Parts
    [N] and metrics, scalars of the step, are for the step log.
    """

    loss: Tensor
    weight: Tensor
    parts: dict[str, Tensor] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


class Objective(ABC):
    """Base class of an objective. Subclasses are frozen dataclasses of its hyperparameters.

    The annotation of a field says what is allowed (`geosd.objectives.hyperparameters`).

    Attributes:
        rollouts: What it trains on: "student", one on-policy response per problem; "group", G
            responses to one problem; "solution", pool solutions instead of responses.
        needs: Which models besides the student it reads: of "teacher", "anchor", "reference".
    """

    rollouts: ClassVar[ResponseSource] = "student"
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]  # of every subclass

    @property
    def needs(self) -> frozenset[str]:
        """The models besides the student whose distributions the loss reads."""
        return frozenset({"teacher"})

    def __post_init__(self) -> None:
        """Check the hyperparameters; raises ValueError with what is allowed."""
        check(self)

    @abstractmethod
    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Per-position scalars, each [n], from the distributions at a chunk of n positions.

        Must treat every position alone. "loss" is the per-position loss, unless the method
        overrides `combine`.
        """

    def combine(self, scalars: dict[str, Tensor], batch: ObjectiveBatch) -> ObjectiveTerms:
        """The loss and weights of the whole step from its [N] scalars.

        By default every position counts alike, and everything but "loss" goes to the step log.
        """
        loss = scalars["loss"]
        parts = {name: value.detach() for name, value in scalars.items() if name != "loss"}
        return ObjectiveTerms(loss, torch.ones_like(loss).detach(), parts)


Method = TypeVar("Method", bound=type[Objective])
_registry: Registry[Objective] = Registry("objective", "geosd.objectives")
names = _registry.names


def register_objective(name: str) -> Callable[[Method], Method]:
    """Class decorator: make a frozen dataclass of type Objective known as `name`.

    Raises:
        TypeError: The class is not a dataclass that subclasses Objective.
        ValueError: Another class has the name, or the module has another.
    """

    def decorate(cls: Method) -> Method:
        if not (issubclass(cls, Objective) and dataclasses.is_dataclass(cls)):
            raise TypeError(
                f"{cls.__qualname__} cannot be registered as {name!r}: an objective is a dataclass"
                " that subclasses Objective.\nHint: put @register above @dataclass(frozen=True)."
            )
        return _registry.register(name)(cls)

    return decorate


def build_objective(name: str, **hyperparameters: Any) -> Objective:
    """The objective called `name`; hyperparameters not given take the method's defaults.

    Raises:
        ValueError: An unknown name or hyperparameter, or a value the method does not allow; says
            what is allowed.
    """
    cls = _registry.get(name)
    allowed = tuple(each.name for each in dataclasses.fields(cls) if each.init)
    for key in hyperparameters:
        if key not in allowed:
            hint = registered_name_hint(key, allowed) or "remove it, or correct its spelling."
            raise ValueError(
                f"objective {name!r} has no hyperparameter {key!r}; allowed are"
                f" {', '.join(allowed) or 'none'}.\nHint: {hint.strip()}"
            )
    return cls(**hyperparameters)
