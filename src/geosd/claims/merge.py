"""One ledger over several studies: each claim as the study that is designed for it judges it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from geosd.claims.claim import Claim
from geosd.claims.finding import NO_STUDY, NOT_JUDGED, Finding
from geosd.scores.tidy import COLUMNS, read_tidy

NUMBERS = ("effect", "low", "high", "confidence", "claimed_from", "claimed_to", "paper_effect")
"""Numbers of a finding that its ledger has as text."""
DERIVED = ("part", "word", "holds_paper")
"""Columns of a ledger that follow from the others."""


def merge_ledgers(
    claims: Sequence[Claim], ledgers: Sequence[Path], kind_of: Callable[[str], str]
) -> list[Finding]:
    """Merge the ledgers of several studies: a finding for each claim and model.

    Claims keep their order, and intervals are those of the studies. `ledgers` are their
    `claims.csv`; of each only the claims count that its study's kind (`kind_of`) is designed for. A
    claim whose study is not among the ledgers is not exercised.

    Raises:
        ValueError: A file is no ledger, was judged by other claims than these, has a word that is
            not that of its interval, or is of the kind of another, so that a claim would be judged
            twice.
    """
    known = {claim.id: claim for claim in claims}
    findings: dict[str, list[Finding]] = {}
    kinds: dict[str, Path] = {}
    for path in ledgers:
        table = read_tidy("claims", path)
        if unknown := sorted(set(table["claim"]) - set(known)):
            raise ValueError(
                f"{path}: claim {', '.join(unknown)} is not in the ledger of today.\nHint: let the"
                " workflow run `claims` again for this study."
            )
        if NOT_JUDGED in set(table["word"]):
            raise ValueError(
                f"{path} has estimates and no words: its study is not meant to judge claims.\nHint:"
                " give ledgers of studies whose entry in params.yaml says `verdicts: true`."
            )
        for kind in {kind_of(study) for study in table["study"]}:
            if kind in kinds:
                raise ValueError(
                    f"{path} and {kinds[kind]} are both of kind {kind}: each claim is judged once."
                    "\nHint: give one ledger of each kind."
                )
            kinds[kind] = path
        for row in table.to_dict("records"):
            claim = known[row["claim"]]
            if claim.study_kind == kind_of(row["study"]):
                findings.setdefault(claim.id, []).append(_finding(claim, row, path))
    for claim in claims:
        if claim.id not in findings:
            note = claim.unmeasured or f"the ledger of a study of kind {claim.study_kind}"
            findings[claim.id] = [Finding(claim, NO_STUDY, note=f"needs {note}")]
    return [finding for claim in claims for finding in findings[claim.id]]


def _finding(claim: Claim, row: dict[str, Any], path: Path) -> Finding:
    same = {name: row[name] for name in COLUMNS["claims"] if name not in ("claim", *NUMBERS)}
    numbers = {name: float(row[name] or "nan") for name in NUMBERS}
    said = {name: same.pop(name) for name in DERIVED}
    finding = Finding(claim, **same, **numbers)
    if said != (follows := {name: getattr(finding, name) for name in DERIVED}):
        raise ValueError(
            f"{path}: {claim.id} on {finding.model} has {said}; from its interval follows"
            f" {follows}.\nHint: let the workflow run `claims` again for this study."
        )
    return finding
