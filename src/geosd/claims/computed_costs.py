"""The costs that the paper prints, and the same computed anew to judge its claims on costs.

Names are `<quantity> of <model>`; memory in GB of 10^9 bytes, operations in model-pass units, times
and shares of standard OPSD as ratios and percent. Models and settings are those of the paper's own
tables (`published.yaml`), so a study of another model computes the same numbers.
"""

import math
from dataclasses import dataclass

from geosd.claims.published import published
from geosd.costs.memory_and_disk import (
    GB,
    logits_in_memory,
    memory_of_logits,
    total_training_memory,
)
from geosd.costs.update_operations import UpdateOperationsSize, kfac_units, units_by_rule
from geosd.models.architectures import architecture

MODEL = "qwen3-8b"
"""The model of the paper's tables of one size."""


@dataclass(frozen=True)
class ComputedNumber:
    """One of the paper's printed costs, which a claim computes anew.

    Attributes:
        quantity: Its name among `computed_costs`.
        printed: The paper's digits, e.g. "8.0", to agree with give or take one in the last; or an
            upper bound, e.g. "< 1".
    """

    quantity: str
    printed: str

    @property
    def value(self) -> float:
        """The printed number, or its bound."""
        return float(self.printed.removeprefix("<"))

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.printed.partition(".")[2])

    @property
    def claimed(self) -> tuple[float, float]:
        """The ends between which a computed number agrees: one in the last digit, or the bound."""
        if self.printed.startswith("<"):
            return -math.inf, self.value
        unit = 10**-self.decimals * (1 + 1e-9)
        return self.value - unit, self.value + unit

    def excess(self, computed: float) -> float:
        """How far a computed number is off the claimed ends; negative between them."""
        start, end = self.claimed
        return max(start - computed, computed - end) * 10**self.decimals

    def describe(self, computed: float) -> str:
        """Computed and printed number in words, e.g. `anchor of qwen3-8b: 16.38, printed 16.4`."""
        printed = self.printed.replace("<", "less than")
        return f"{self.quantity}: {computed:.{self.decimals + 1}f}, printed {printed}"


def computed_costs(
    update: UpdateOperationsSize, top_k: int | None, blocks: int, subsample: float
) -> dict[str, float]:
    """Compute every number that the claims on costs are judged by.

    `blocks` is the paper's g at 8B, `subsample` its s. The logits that travel are the union of
    student, teacher and anchor at most, `top_k` of each.

    Source: paper, Compute overhead; Tables flops, memory_methods, kfac_memory; Appendix Memory.
    """
    numbers: dict[str, float] = {}
    for name, row in published()["kfac_memory"]["rows"].items():
        state = total_training_memory(architecture(name), row["blocks"], row["storage"])
        numbers |= {
            f"unblocked covariances of {name}": state.full / GB,
            f"K-FAC state of {name}": state.kfac / GB,
            f"anchor of {name}": state.snapshot / GB,
            f"method's state of {name}": state.extra / GB,
            f"increase of {name}": state.increase,
        }
        if name == MODEL:
            numbers |= {
                f"common footprint of {name}": state.base / GB,
                f"whole footprint of {name}": state.total / GB,
                f"memory ratio of {name}": state.total / state.base,
                f"K-FAC share of {name}": 100 * state.kfac / state.base,
            }
    kfac = kfac_units(architecture(MODEL), update, blocks, subsample).total
    union = logits_in_memory(architecture(MODEL), top_k, models=3)
    opsd, geosd = units_by_rule(update), units_by_rule(update, kfac)
    return numbers | {
        f"K-FAC operations of {MODEL}": kfac,
        f"operations ratio of {MODEL}": geosd.total / opsd.total,
        f"logits of an update of {MODEL}": memory_of_logits(update, union) / GB,
    }
