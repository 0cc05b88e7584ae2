"""The paper's checkable claims, one module for each part of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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
    """Every claim of the paper that is judged, in the order in which they are printed."""
    entries = [entry for section in SECTIONS for entry in section.CLAIMS.items()]
    return with_unique_ids([replace(claim, id=name) for name, claim in entries])


def with_unique_ids(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims themselves; two of one id are refused."""
    ids = [claim.id for claim in claims]
    if repeated := {name for name in ids if ids.count(name) > 1}:
        raise ValueError(
            f"the ledger: {', '.join(sorted(repeated))} occurs twice.\nHint: ids must be unique."
        )
    return tuple(claims)
