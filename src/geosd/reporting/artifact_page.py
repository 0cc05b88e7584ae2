"""ARTIFACT.md: each claim of the paper with the command, the file and the verdict; checklists.

The headings are those of the appendix that conferences of the ACM ask for with an artefact, and the
questions at its end those of the reproducibility checklist of NeurIPS.
"""

from collections.abc import Mapping
from pathlib import Path
from string import Template

import pandas as pd

from geosd.claims.finding import ALL_MODELS
from geosd.reporting.claims_numbers import claims_number, numbers_of_effect
from geosd.reporting.shipping import ShippedManifest
from geosd.reporting.tables import markdown_table

CLAIMS_PAGE = "claims.md"
NOTHING = "–"
COLUMNS = ("claim", "in the paper", "command", "file", "status", "effect")

PLURAL = {
    "agrees": "agree",
    "opposite": "are opposite",
    "too small to tell": "are too small to tell",
    "not exercised": "are not exercised",
    "by model": "differ by model",
}
TEMPLATE = Path(__file__).with_suffix(".md")


def artifact_markdown(
    ledger: pd.DataFrame, studies: Mapping[str, ShippedManifest], figures: Path
) -> str:
    """The page, with links from the repository's root.

    Args:
        ledger: The ledger over several studies, each claim judged once, as claims_all.csv.
        studies: The shipped studies by name.
        figures: Where they lie, from the root.
    """
    rows = [
        _claim_row(claim, of_claim, studies, figures)
        for claim, of_claim in ledger.groupby("claim", sort=False)
    ]
    claims = markdown_table([COLUMNS, *rows], len(COLUMNS))
    used = [name for name in dict.fromkeys(ledger["study"]) if name in studies]
    counted = pd.Series([row[4] for row in rows]).value_counts(sort=False)
    counts = ", ".join(
        f"{count} {PLURAL.get(word, word)}" for word, count in sorted(counted.items())
    )
    page = Template(TEMPLATE.read_text(encoding="utf-8"))
    return page.substitute(
        count=len(rows), counts=counts, claims=claims, costs=_costs(used, studies)
    )


def _claim_row(
    claim: str, rows: pd.DataFrame, studies: Mapping[str, ShippedManifest], figures: Path
) -> list[str]:
    """A claim's line; of several models that over all, else the first."""
    pooled = rows[rows["model"] == ALL_MODELS]
    row = (rows if pooled.empty else pooled).iloc[0].to_dict()
    one_word = rows["word"].nunique() == 1 or not pooled.empty
    word = row["word"] if one_word else "by model"
    study = row["study"]
    command, file = NOTHING, NOTHING
    if study in studies:
        command = f"`make figures STUDY={study}`"
        path = (figures / study / CLAIMS_PAGE).as_posix()
        file = f"[{path}]({path})"
    known = claims_number(row["effect"]) == claims_number(row["effect"])  # not a NaN
    effect = numbers_of_effect(row) if known else NOTHING
    return [row["statement"], row["place"], command, file, word, effect]


def _costs(names: list[str], studies: Mapping[str, ShippedManifest]) -> str:
    rows = []
    for name in names:
        made = studies[name].made
        steps = made.steps if made else NOTHING
        rows.append([f"`make run STUDY={name}`", steps])
    return markdown_table([["command", "runs and their time"], *rows], 2)
