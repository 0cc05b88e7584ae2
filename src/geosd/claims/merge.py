"""One ledger over several studies: each claim as the study that is designed for it judges it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.claims.claim import Claim
from geosd.claims.finding import NO_STUDY, NOT_JUDGED, Finding
from geosd.scores.tidy import COLUMNS

NUMBERS = ("effect", "low", "high", "confidence", "claimed_from", "claimed_to", "paper_effect")
"""Numbers of a finding that its ledger has as text."""
DERIVED = ("part", "word", "holds_paper")
"""Columns of a ledger that follow from the others."""


def merge_ledgers(
    claims: Sequence[Claim], ledgers: Mapping[str, pd.DataFrame], kinds: Mapping[str, str]
) -> list[Finding]:
    """Merge the ledgers of several studies: a finding for each claim and model.

    Claims keep their order, and intervals are those of the studies. `ledgers` are their tidy
    tables `claims` by study; of each only the claims count that its study's kind (`kinds`, by
    study) is designed for. A claim whose study is not among the ledgers is not exercised.

    Raises:
        ValueError: A ledger is another study's, was judged by other claims than today's, has a word
            that is not that of its interval, or is of the kind of another, so that a claim would be
            judged twice.
    """
    known = {claim.id: claim for claim in claims}
    findings: dict[str, list[Finding]] = {}
    study_of_kind: dict[str, str] = {}
    for study, table in ledgers.items():
        _check_ledger(study, table, known)
        kind = kinds[study]
        if kind in study_of_kind:
            raise ValueError(
                f"Studies {study_of_kind[kind]} and {study} are both of kind {kind}: each claim is"
                " judged once.\nHint: give one ledger of each kind."
            )
        study_of_kind[kind] = study
        for row in table.to_dict("records"):
            claim = known[row["claim"]]
            if claim.study_kind == kind:
                findings.setdefault(claim.id, []).append(_finding(claim, row))
    for claim in claims:
        if claim.id not in findings:
            note = claim.unmeasured or f"the ledger of a study of kind {claim.study_kind}"
            findings[claim.id] = [Finding(claim, NO_STUDY, note=f"needs {note}")]
    return [finding for claim in claims for finding in findings[claim.id]]


def _check_ledger(study: str, table: pd.DataFrame, known: Mapping[str, Claim]) -> None:
    """Refuse a ledger of another study, of other claims, or without words."""
    others = sorted(set(table["study"]) - {study})
    if others:
        raise ValueError(
            f"The ledger claims.csv of study {study} is that of {', '.join(others)}.\nHint: let the"
            " workflow run `claims` again for this study."
        )
    unknown = sorted(set(table["claim"]) - set(known))
    if unknown:
        raise ValueError(
            f"The ledger claims.csv of study {study}: claim {', '.join(unknown)} is not in the"
            " ledger of today.\nHint: let the workflow run `claims` again for this study."
        )
    if NOT_JUDGED in set(table["word"]):
        raise ValueError(
            f"The ledger claims.csv of study {study} has estimates and no words: its study is not"
            " meant to judge claims.\nHint: name studies whose entry says `verdicts: true`."
        )


def _finding(claim: Claim, row: Mapping[str, Any]) -> Finding:
    same = {name: row[name] for name in COLUMNS["claims"] if name not in ("claim", *NUMBERS)}
    numbers = {name: float(row[name] or "nan") for name in NUMBERS}
    said = {name: same.pop(name) for name in DERIVED}
    finding = Finding(claim, **same, **numbers)
    follows = {name: getattr(finding, name) for name in DERIVED}
    if said != follows:
        raise ValueError(
            f"The ledger claims.csv of study {row['study']}: {claim.id} on {finding.model} has"
            f" {said}; from its interval follows {follows}.\nHint: let the workflow run `claims`"
            " again for this study."
        )
    return finding
