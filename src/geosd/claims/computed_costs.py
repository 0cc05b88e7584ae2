"""The costs that the paper prints, computed anew: what its claims on costs are held to.

Names are `<quantity> of <model>`; memory in GB of 10^9 bytes, operations in model-pass units, times
and shares of standard OPSD as ratios and percent. Models and settings are those of the paper's own
tables (`published.yaml`), so a study of another model computes the same numbers.
"""

from __future__ import annotations

from geosd.claims.published import published
from geosd.costs.update_cost import (
    GB,
    UpdateSize,
    kfac_units,
    logits_bytes,
    memory,
    rule_of_thumb,
)
from geosd.models.published_architectures import architecture

MODEL = "qwen3-8b"
"""The model of the paper's tables of one size."""


def quantities(update: UpdateSize, top_k: int, blocks: int, subsample: float) -> dict[str, float]:
    """Every number that a claim on costs is held to, by name.

    Args:
        update: Size of an update.
        top_k: K; the logits that travel are the union of student, teacher and anchor at most.
        blocks: The paper's g at 8B.
        subsample: The paper's s.

    Source: paper, Compute overhead; Tables flops, memory_methods, kfac_memory; Appendix Memory.
    """
    found: dict[str, float] = {}
    for name, row in published()["kfac_memory"]["rows"].items():
        held = memory(architecture(name), row["blocks"], row["storage"])
        found |= {
            f"unblocked covariances of {name}": held.full / GB,
            f"K-FAC state of {name}": held.kfac / GB,
            f"anchor of {name}": held.snapshot / GB,
            f"method's state of {name}": held.extra / GB,
            f"increase of {name}": held.increase,
        }
        if name == MODEL:
            found |= {
                f"common footprint of {name}": held.base / GB,
                f"whole footprint of {name}": held.total / GB,
                f"memory ratio of {name}": held.total / held.base,
                f"K-FAC share of {name}": 100 * held.kfac / held.base,
            }
    kfac = kfac_units(architecture(MODEL), update, blocks, subsample).total
    opsd, geosd = rule_of_thumb(update), rule_of_thumb(update, kfac)
    return found | {
        f"K-FAC operations of {MODEL}": kfac,
        f"operations ratio of {MODEL}": geosd.total / opsd.total,
        f"logits of an update of {MODEL}": logits_bytes(update, 3 * top_k) / GB,
    }
