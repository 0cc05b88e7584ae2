"""One ledger over several studies: each claim as the study that is designed for it judges it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from geosd.claims.claim import Claim
from geosd.claims.verdicts import VERDICTS, Finding, holm_corrected
from geosd.scores.tidy_files import read_tidy

NUMBERS = ("effect", "low", "high", "p", "paper_effect")


def merge_ledgers(
    claims: Sequence[Claim], ledgers: Sequence[Path], kind_of: Callable[[str], str]
) -> list[Finding]:
    """Merge the ledgers of several studies: a finding for each claim and model.

    Claims keep their order. Holm runs over all of them, so that a verdict may be weaker here than
    in its study; what an interval refutes stays refuted. A claim whose study is not among the
    ledgers is not tested.

    Args:
        claims: All claims.
        ledgers: The `claims.csv` of studies of different kinds; of each only the claims count that
            its kind is designed for.
        kind_of: The kind of a study by its name.

    Raises:
        ValueError: A file is no ledger, was judged by other claims than these, or is of the kind
            of another, so that a claim would be judged twice.
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
            note = f"needs the ledger of a study of kind {claim.study_kind}"
            findings[claim.id] = [Finding(claim, claim.study_kind, "not tested", note=note)]
    return holm_corrected([f for claim in claims for f in findings[claim.id]], by_family=False)


def _finding(claim: Claim, row: dict[str, Any], path: Path) -> Finding:
    verdict = row["verdict"]
    if verdict not in VERDICTS:
        raise ValueError(
            f"{path}: {verdict!r} is no verdict; allowed are {', '.join(VERDICTS)}.\nHint: let the"
            " workflow run `claims` again for this study."
        )
    if verdict == "reproduced" and not claim.computed:
        verdict = "undetermined"  # what Holm decided over the study's ledger is decided anew
    numbers = {name: float(row[name] or "nan") for name in NUMBERS}
    same = {name: row[name] for name in ("model", "metric", "n_a", "n_b", "note", "study")}
    return Finding(claim, verdict=verdict, weakest=row["weakest_comparison"], **same, **numbers)
