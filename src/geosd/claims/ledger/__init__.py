"""The paper's checkable claims, one module for each part of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.claims.claim import Claim
from geosd.claims.ledger import (
    ablation,
    accuracy,
    consensus,
    costs,
    mechanism,
    privilege,
    sizes,
    stepsize,
)

SECTIONS = (accuracy, consensus, mechanism, ablation, privilege, sizes, stepsize, costs)


def ledger() -> tuple[Claim, ...]:
    """Every claim, in the order in which they are printed."""
    return with_unique_ids([claim for section in SECTIONS for claim in section.CLAIMS])


def with_unique_ids(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims.

    Raises:
        ValueError: Two claims have one id.
    """
    ids = [claim.id for claim in claims]
    if repeated := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(
            f"the ledger: {', '.join(sorted(repeated))} occurs twice.\nHint: ids must be unique."
        )
    return tuple(claims)
