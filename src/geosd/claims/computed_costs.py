"""The costs that the paper prints, computed anew to judge its claims on costs.

Names are `<quantity> of <model>`; memory in GB of 10^9 bytes, operations in model-pass units, times
and shares of standard OPSD as ratios and percent. Models and settings are those of the paper's own
tables (`published.yaml`), so a study of another model computes the same numbers.
"""

from __future__ import annotations

from geosd.claims.published import published
from geosd.costs.training_memory import GB, logits_bytes, training_memory
from geosd.costs.update_operations import UpdateSize, kfac_units, units_by_rule
from geosd.models.published_architectures import architecture

MODEL = "qwen3-8b"
"""The model of the paper's tables of one size."""


def computed_costs(
    update: UpdateSize, top_k: int, blocks: int, subsample: float
) -> dict[str, float]:
    """Compute every number that the claims on costs are judged by.

    Args:
        update: Size of an update.
        top_k: K; the logits that travel are the union of student, teacher and anchor at most.
        blocks: The paper's g at 8B.
        subsample: The paper's s.

    Source: paper, Compute overhead; Tables flops, memory_methods, kfac_memory; Appendix Memory.
    """
    numbers: dict[str, float] = {}
    for name, row in published()["kfac_memory"]["rows"].items():
        state = training_memory(architecture(name), row["blocks"], row["storage"])
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
    opsd, geosd = units_by_rule(update), units_by_rule(update, kfac)
    return numbers | {
        f"K-FAC operations of {MODEL}": kfac,
        f"operations ratio of {MODEL}": geosd.total / opsd.total,
        f"logits of an update of {MODEL}": logits_bytes(update, 3 * top_k) / GB,
    }
