"""What an update costs, computed from dimensions: operations in model passes, bytes of state.

Units. One model-pass unit is N B_tok operations, N the parameter count and B_tok the tokens of the
student's sequences in an update; a multiplication and its addition are two. GB are 10^9 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from geosd.models.published_architectures import Architecture
from geosd.optim.kfac_memory import Dimensions, factor_bytes
from geosd.optim.layer_selection import input_factor_owners
from geosd.optim.partition import partition

FORWARD = 2.0
"""Units of a forward pass: each parameter is multiplied and added once a token."""
BACKWARD = 4.0
"""Units of a backward pass: one such pass for the inputs' gradients, one for the weights'."""
STATE_BYTES = {"master weights": 4, "gradients": 4, "first moments": 4, "second moments": 4}
"""Bytes a parameter while training, all fp32 (the paper: fp32 master weights, AdamW). With bf16
weights and bf16 gradients beside fp32 master weights and moments the sum is the same, 16."""
SNAPSHOT_BYTES = 2
"""Bytes a parameter of the anchor: bf16 weights and nothing else."""
GB = 1e9


def dimensions(model: Architecture) -> Dimensions:
    """The part of an architecture that its seven projections depend on."""
    return Dimensions(
        model.layers, model.hidden, model.ffn, model.heads, model.kv_heads, model.head
    )


@dataclass(frozen=True)
class UpdateSize:
    """The size of one update.

    Attributes:
        sequences: The student's sequences, the paper's 8.
        tokens: Tokens of one of them; the paper gives the cap of 4096 and no mean.
        teacher_ratio: Length of the teacher's sequence, which holds the solution too, in lengths of
            the student's. Not given; 1.5 is what the paper's 3 units imply.
    """

    sequences: int = 8
    tokens: int = 4096
    teacher_ratio: float = 1.5

    @property
    def total(self) -> int:
        """B_tok."""
        return self.sequences * self.tokens


def forward_units(model: Architecture, tokens: float) -> float:
    """Units a token of a forward pass, counted operation by operation.

    The rule of thumb counts the embedding, which is looked up and not multiplied, and leaves out
    attention, in which each query meets half of the sequence on average:
    2 (projections + d V) + 4 L d_q tokens / 2 operations a token, over N.

    `tokens` is the sequence's length; sliding windows, which would save attention, are not counted.
    """
    matrices = 2 * (model.projections + model.hidden * model.vocabulary)
    attention = 4 * model.layers * model.queries * tokens / 2
    return (matrices + attention) / model.parameters


@dataclass(frozen=True)
class KfacUnits:
    """Units of an update that K-FAC adds.

    Attributes:
        covariance: a a^T and delta delta^T summed over the subsampled tokens.
        inverse: Factorising and inverting every damped block, d^3 operations for a block of d.
        precondition: G^-1 dW A^-1 of every projection.
    """

    covariance: float
    inverse: float
    precondition: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.covariance + self.inverse + self.precondition


def kfac_units(
    model: Architecture,
    update: UpdateSize,
    blocks: int = 16,
    subsample: float = 1 / 8,
    *,
    share_inputs: bool = False,
) -> KfacUnits:
    """What K-FAC adds to an update, counted operation by operation.

    Covariances scale with the tokens, inverses and products do not, so their share falls as an
    update grows. `blocks` is the paper's g (1 is dense), `subsample` its s, the share of the tokens
    that enter the covariances; `share_inputs` as in `memory`.
    """
    layers = list(dimensions(model).projections())
    names = [name for name, _, _ in layers]
    leaders = input_factor_owners(names) if share_inputs else {name: name for name in names}
    squares = cubes = products = 0
    for name, inputs, outputs in layers:
        sides = (outputs, inputs) if leaders[name] == name else (outputs,)
        squares += sum(_power(side, blocks, 2) for side in sides)
        cubes += sum(_power(side, blocks, 3) for side in sides)
        products += 2 * inputs * _power(outputs, blocks, 2)
        products += 2 * outputs * _power(inputs, blocks, 2)
    unit = model.parameters * update.total
    return KfacUnits(
        covariance=2 * squares * subsample / model.parameters,
        inverse=cubes / unit,
        precondition=products / unit,
    )


def tokens_for(
    model: Architecture, update: UpdateSize, units: float, blocks: int, subsample: float
) -> float:
    """Tokens of a response, on average, at which K-FAC adds so many units to an update."""
    at = kfac_units(model, update, blocks, subsample)
    return update.tokens * (at.inverse + at.precondition) / (units - at.covariance)


def _power(side: int, blocks: int, exponent: int) -> int:
    """Sum of size ** exponent over a factor's blocks."""
    return sum(run.count * run.size**exponent for run in partition(side, blocks))


@dataclass(frozen=True)
class UpdateUnits:
    """Units of an update by component; None where a method has none.

    Attributes:
        student: Forward and backward pass of the student.
        teacher: Forward pass on the longer sequence that holds the solution.
        anchor: Forward pass of the checkpoint.
        kfac: All of K-FAC that is counted.
    """

    student: float
    teacher: float
    anchor: float | None = None
    kfac: float | None = None

    @property
    def total(self) -> float:
        """Their sum."""
        return self.student + self.teacher + (self.anchor or 0) + (self.kfac or 0)


def rule_of_thumb(update: UpdateSize, kfac: float | None = None) -> UpdateUnits:
    """An update by the rule 2 forward, 4 backward; with an anchor's pass where `kfac` is given."""
    teacher = FORWARD * update.teacher_ratio
    return UpdateUnits(FORWARD + BACKWARD, teacher, None if kfac is None else FORWARD, kfac)


def counted(model: Architecture, update: UpdateSize, kfac: float | None = None) -> UpdateUnits:
    """An update counted operation by operation; a backward pass is two forward passes."""
    student = forward_units(model, update.tokens)
    longer = update.teacher_ratio
    teacher = longer * forward_units(model, longer * update.tokens)
    return UpdateUnits(3 * student, teacher, None if kfac is None else student, kfac)


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a model's training state."""

    base: int
    """What every method keeps: weights, gradients and moments."""
    full: int
    """Dense fp32 covariances, which nobody forms."""
    kfac: int
    """Blocked covariances and their inverses."""
    snapshot: int
    """The anchor's weights."""

    @property
    def extra(self) -> int:
        """What the method adds."""
        return self.kfac + self.snapshot

    @property
    def total(self) -> int:
        """Everything."""
        return self.base + self.extra

    @property
    def increase(self) -> float:
        """What the method adds, in percent of what every method keeps."""
        return 100 * self.extra / self.base


def memory(
    model: Architecture, blocks: int, storage: str, *, share_inputs: bool = False
) -> TrainingMemory:
    """Bytes of a model's training state.

    `blocks` is the paper's g, `storage` the type of the factors, "float32" or "bfloat16".
    `share_inputs` keeps one A for q, k, v and one for gate, up, as `KFAC` does; the paper counts
    one for each projection.

    Source: the paper, Tables memory_methods and kfac_memory.
    """
    sizes = dimensions(model)
    return TrainingMemory(
        base=sum(STATE_BYTES.values()) * model.parameters,
        full=factor_bytes(sizes, 1, "float32", share_inputs=False) // 2,
        kfac=factor_bytes(sizes, blocks, storage, share_inputs=share_inputs),
        snapshot=SNAPSHOT_BYTES * model.parameters,
    )


def rounded_terms(row: TrainingMemory) -> tuple[float, float]:
    """The anchor and what the method adds in GB, by the paper's own arithmetic.

    The digits it prints follow if N is first rounded to 0.1 billion (the size in a model's
    description, e.g. 14.8B) and if the terms are added as printed.
    """
    snapshot = SNAPSHOT_BYTES * round(row.snapshot / SNAPSHOT_BYTES / GB, 1)
    return snapshot, round(row.kfac / GB, 1) + snapshot


def logits_bytes(update: UpdateSize, entries: int) -> int:
    """Bytes of an update's truncated logits: 2 of a bf16 value, 4 of its index in the vocabulary.

    `entries` are those kept of a state: K, or at most 3 K for the union of three models.
    """
    return update.total * entries * (2 + 4)
