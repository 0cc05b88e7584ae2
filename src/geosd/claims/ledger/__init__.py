"""The paper's checkable claims, one module for each part of the paper."""

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
    teachers,
)

MAIN = (accuracy, consensus, mechanism)
SECTIONS = (*MAIN, ablation, privilege, sizes, stepsize, teachers, costs)


def ledger() -> tuple[Claim, ...]:
    """Every claim of the paper that is judged, in the order in which they are printed."""
    entries = (entry for section in SECTIONS for entry in section.CLAIMS.items())
    return tuple(replace(claim, id=name) for name, claim in entries)
