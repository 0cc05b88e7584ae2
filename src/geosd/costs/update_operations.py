"""Operations of an update, computed from a model's dimensions, in model-pass units.

One model-pass unit is N B_tok operations, N the parameter count and B_tok the tokens of the
student's sequences in an update; a multiplication and its addition are two.
"""

from dataclasses import dataclass

from geosd.models.architectures import Architecture
from geosd.optim.factor_sizes import FactorDimensions
from geosd.optim.layer_selection import layers_of_shared_input
from geosd.optim.partition import partition

FORWARD = 2.0
"""Units of a forward pass: each parameter is multiplied and added once a token."""
BACKWARD = 4.0
"""Units of a backward pass: one such pass for the inputs' gradients, one for the weights'."""
NEWTON_SCHULZ = 5
"""Iterations of `torch.optim.Muon` by default."""


def update_projection_sizes(model: Architecture) -> FactorDimensions:
    """The widths of the seven projections, from which an update and its factors are counted."""
    return FactorDimensions(
        model.layers, model.hidden, model.ffn, model.heads, model.kv_heads, model.head
    )


@dataclass(frozen=True)
class UpdateOperationsSize:
    """The student's sequences of one update, and the tokens of one of them."""

    sequences: int = 8
    tokens: int = 4096
    """The paper gives the cap of 4096 and no mean."""
    teacher_ratio: float = 1.5
    """Length of the teacher's sequence, which holds the solution too, in lengths of the student's.
    Not given; 1.5 is what the paper's 3 units imply."""

    @property
    def total(self) -> int:
        """B_tok: tokens of the student's sequences in an update."""
        return self.sequences * self.tokens


def forward_units(model: Architecture, tokens: float) -> float:
    """Model-pass units of a forward pass, counted operation by operation.

    The rule of thumb counts the embedding, which is looked up and not multiplied, and leaves out
    attention, in which each query meets half of the sequence on average:
    2 (projections + d V) + 4 L d_q tokens / 2 operations a token, over N.

    `tokens` is the sequence's length; sliding windows, which would save attention, are not counted.
    """
    matrices = 2 * (model.projections + model.hidden * model.vocabulary)
    attention = 4 * model.layers * model.queries * tokens / 2
    return (matrices + attention) / model.parameters


@dataclass(frozen=True)
class _KfacUnits:
    """Model-pass units that K-FAC adds to an update."""

    covariance: float
    """a a^T and delta delta^T summed over the subsampled tokens."""
    inverse: float
    """Factorising and inverting every damped block, d^3 operations for a block of d."""
    precondition: float
    """G^-1 dW A^-1 of every projection."""

    @property
    def total(self) -> float:
        """The sum of the three."""
        return self.covariance + self.inverse + self.precondition


def kfac_units(
    model: Architecture,
    update: UpdateOperationsSize,
    blocks: int = 16,
    subsample: float = 1 / 8,
    *,
    share_inputs: bool = False,
) -> _KfacUnits:
    """Model-pass units that K-FAC adds to an update, counted operation by operation.

    Covariances scale with the tokens, inverses and products do not, so their share falls as an
    update grows. `blocks` is the paper's g (1 is dense), `subsample` its s, the share of the tokens
    that enter the covariances; `share_inputs` as in `costs.memory_and_disk.total_training_memory`.
    """
    layers = list(update_projection_sizes(model).projections())
    names = [name for name, _, _ in layers]
    input_owners = layers_of_shared_input(names) if share_inputs else {name: name for name in names}
    squares = cubes = products = 0
    for name, inputs, outputs in layers:
        sides = (outputs, inputs) if input_owners[name] == name else (outputs,)
        squares += sum(_power(side, blocks, 2) for side in sides)
        cubes += sum(_power(side, blocks, 3) for side in sides)
        products += 2 * inputs * _power(outputs, blocks, 2)
        products += 2 * outputs * _power(inputs, blocks, 2)
    unit = model.parameters * update.total
    return _KfacUnits(
        covariance=2 * squares * subsample / model.parameters,
        inverse=cubes / unit,
        precondition=products / unit,
    )


def muon_units(model: Architecture, update: UpdateOperationsSize) -> float:
    """Model-pass units that Muon adds to an update.

    Each of five Newton-Schulz iterations on a matrix [m, n], m <= n, multiplies X X^T, its square,
    and their sum with X: 4 m^2 n + 2 m^3 operations.
    """
    operations = 0
    for _, inputs, outputs in update_projection_sizes(model).projections():
        m, n = sorted((inputs, outputs))
        operations += NEWTON_SCHULZ * (4 * m**2 * n + 2 * m**3)
    return operations / (model.parameters * update.total)


def tokens_for_update_operations(
    model: Architecture, update: UpdateOperationsSize, units: float, blocks: int, subsample: float
) -> float:
    """Mean tokens of a response at which K-FAC adds a given number of units to an update."""
    at = kfac_units(model, update, blocks, subsample)
    return update.tokens * (at.inverse + at.precondition) / (units - at.covariance)


def _power(side: int, blocks: int, exponent: int) -> int:
    """Sum of size ** exponent over a factor's blocks."""
    return sum(run.count * run.size**exponent for run in partition(side, blocks))


@dataclass(frozen=True)
class UpdateUnits:
    """Model-pass units of an update by component; None where a method has none.

    The student has a forward and a backward pass, teacher and anchor a forward pass each.
    """

    student: float
    teacher: float
    anchor: float | None = None
    kfac: float | None = None
    muon: float | None = None

    @property
    def total(self) -> float:
        """The sum over components."""
        update_rule = (self.kfac or 0) + (self.muon or 0)
        return self.student + self.teacher + (self.anchor or 0) + update_rule


def units_by_rule(update: UpdateOperationsSize, kfac: float | None = None) -> UpdateUnits:
    """Units of an update by the rule 2 forward, 4 backward; an anchor's pass if `kfac` is given."""
    teacher = FORWARD * update.teacher_ratio
    return UpdateUnits(FORWARD + BACKWARD, teacher, None if kfac is None else FORWARD, kfac)


def units_counted(
    model: Architecture, update: UpdateOperationsSize, kfac: float | None = None
) -> UpdateUnits:
    """Units of an update counted operation by operation; a backward pass is two forward passes."""
    student = forward_units(model, update.tokens)
    longer = update.teacher_ratio
    teacher = longer * forward_units(model, longer * update.tokens)
    return UpdateUnits(3 * student, teacher, None if kfac is None else student, kfac)
