"""The ledger of the paper's claims as files, claims.md and claims.csv."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.claims.finding import ALL_MODELS, NOT_JUDGED, WORDS, Finding
from geosd.claims.metrics import unit_of_metric
from geosd.files import write_text
from geosd.reporting.claims_numbers import (
    numbers_of_interval,
    numbers_of_paper,
    numbers_of_quantity,
    numbers_of_runs,
)
from geosd.reporting.claims_sentences import claims_counts_sentence
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.tables import MISSING, markdown_table
from geosd.scores.tidy import COLUMNS

MARKS = dict(zip(WORDS, "✓✗?–", strict=True))
"""What stands for a word where a claim has a cell for each model."""
NO_WORDS = "This study is not meant to judge the paper's claims"
"""Why a ledger has estimates alone; `verdicts` of the study in params.yaml says so."""


def write_claims_page(
    findings: Sequence[Finding],
    study: str | None,
    folder: Path | str,
    kind: str | None = None,
    name: str = "claims",
) -> list[Path]:
    """Write the ledger of claims as Markdown and CSV; `study` is None for that over several."""
    if study is not None:
        findings = [replace(finding, study=study) for finding in findings]
    text = Path(folder) / f"{name}.md"
    table = Path(folder) / f"{name}.csv"
    write_text(text, claims_page_markdown(findings, study, kind))
    write_text(table, claims_page_frame(findings).to_csv(index=False))
    return [text, table]


def claims_page_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """The file claims.csv as a DataFrame: every finding of the ledger a row, at full precision."""
    return pd.DataFrame([_ledger_row(finding) for finding in findings])


def _ledger_row(finding: Finding) -> dict[str, Any]:
    claim = finding.claim
    has_unit = finding.metric and not claim.computed
    row: dict[str, Any] = {"claim": claim.id}
    for name in COLUMNS["claims"]:
        if name not in ("claim", "note"):
            row[name] = getattr(finding, name)
    row["unit"] = unit_of_metric(finding.metric) if has_unit else ""
    row["statement"] = claim.statement
    row["place"] = claim.place
    row["designed_for"] = claim.study_kind
    row["note"] = finding.note
    return row


def claims_page_markdown(
    findings: Sequence[Finding], study: str | None, kind: str | None = None
) -> str:
    """The ledger of claims as Markdown: primary claims, counts, the other claims, their words.

    `study` is None for the ledger over several; `kind` is what the study is designed for.
    """
    judged = all(finding.judged or finding.claim.computed for finding in findings)
    exercised = [finding for finding in findings if finding.exercised]
    rest = [finding for finding in findings if not finding.exercised]
    ledger = claims_page_frame(findings)
    parts = [
        *_head(judged, study),
        *_primary_claims(ledger),
        *([_wrapped(claims_counts_sentence(ledger))] if judged else []),
        *_other_claims(ledger, judged, study),
        *_claims_by_construction(ledger, exercised, study),
        *_costs(exercised),
        "## What the claims say",
        *_words(exercised),
        *_rest(rest, study, kind),
    ]
    return "\n\n".join(parts) + "\n"


def _head(judged: bool, study: str | None) -> list[str]:
    """Title, legend and forest plot."""
    title = "# The paper's claims" if judged else "# Estimates for the paper's claims"
    picture = "claims_all.svg"
    if study is not None:
        title += f" in study {study}"
        picture = "claims.svg"
    legend = SENTENCES["legend"] if judged else f"{NO_WORDS}."
    return [title, legend, f"![The claims. {SENTENCES['forest']}]({picture})"]


def _primary_claims(ledger: pd.DataFrame) -> list[str]:
    primary = ledger[ledger["part"] == "primary"]
    if primary.empty:
        return []
    return ["## The primary claims", _wrapped(SENTENCES["primary"]), claims_page_by_model(primary)]


def _other_claims(ledger: pd.DataFrame, judged: bool, study: str | None) -> list[str]:
    parts = ["## The other claims"]
    if study is None:
        parts.append(_wrapped(SENTENCES["of_all_studies"]))
    parts.append(_wrapped(SENTENCES["every_claim"]))
    if judged:
        parts.append(_wrapped(SENTENCES["others"]))
    return parts + _tables(ledger, "other", study)


def _claims_by_construction(
    ledger: pd.DataFrame, exercised: Sequence[Finding], study: str | None
) -> list[str]:
    """What must hold, with the reason."""
    findings = [finding for finding in exercised if finding.part == "by construction"]
    if not findings:
        return []
    reasons = {}
    for finding in findings:
        reasons[finding.claim.statement] = finding.claim.why_by_construction(finding.model)
    return [
        "## Claims that hold by construction",
        "They are not counted.",
        *_tables(ledger, "by construction", study),
        "\n".join(_item(f"{statement}: {reason}.") for statement, reason in reasons.items()),
    ]


def _costs(exercised: Sequence[Finding]) -> list[str]:
    costs = [finding for finding in exercised if finding.part == "computed"]
    if not costs:
        return []
    lines = [["word", "claim", "computed", "paper"]]
    lines += [_cost_line(finding) for finding in costs]
    return ["## Costs, computed", markdown_table(lines, left=2)]


def claims_page_by_model(rows: pd.DataFrame) -> str:
    """Rows of a ledger as a table: a row a claim, a column a model, its word first.

    The word is that of the row over all models, or the one that all models have.
    """
    judged = NOT_JUDGED not in set(rows["word"])
    models = list(rows["model"].unique())
    by_model = len(models) > 1
    lines = [["word", "claim", "quantity", *(models if by_model else ["effect"]), "paper", "n"]]
    for _, of_claim in rows.groupby("claim", sort=False):
        cells = {row["model"]: row for row in of_claim.to_dict("records")}
        lines.append(_claim_line(cells, models, marked=judged and by_model))
    if judged:
        table = markdown_table(lines, left=3)
    else:
        table = markdown_table([line[1:] for line in lines], left=2)
    return f"Model: {models[0]}.\n\n{table}" if len(models) == 1 else table


def _claim_line(
    cells: Mapping[str, Mapping[str, Any]], models: Sequence[str], *, marked: bool
) -> list[str]:
    """The line of a claim, of whose rows `cells` has that of each model."""
    first = next(iter(cells.values()))
    one_word = len({row["word"] for row in cells.values()}) == 1
    word = first["word"] if one_word or first["model"] == ALL_MODELS else "by model"
    quantity = numbers_of_quantity(first)
    effects = [_effect_cell(cells.get(model), marked, quantity) for model in models]
    return [
        word,
        first["statement"],
        quantity or MISSING,
        *effects,
        numbers_of_paper(first),
        numbers_of_runs(first),
    ]


def _effect_cell(row: Mapping[str, Any] | None, marked: bool, quantity: str) -> str:
    """An effect with its interval, the mark of its word before it if asked.

    Where it is of another quantity than the row's, that stands behind it.
    """
    if row is None or row["word"] == "not exercised":
        return MISSING
    words = [part for part in numbers_of_interval(row) if part != MISSING]
    own_quantity = numbers_of_quantity(row)
    if own_quantity != quantity:
        words.append(f"({own_quantity})")
    cell = " ".join(words)
    return f"{MARKS[row['word']]} {cell}" if marked else cell


def _tables(ledger: pd.DataFrame, part: str, study: str | None) -> list[str]:
    """Tables of the exercised rows of a part: one of a study, or one for each of several."""
    rows = ledger[(ledger["part"] == part) & (ledger["word"] != "not exercised")]
    if rows.empty:
        return []
    if study is not None:
        return [claims_page_by_model(rows)]
    tables = []
    for name, of_study in rows.groupby("study", sort=False):
        tables += [f"### Study {name}", claims_page_by_model(of_study)]
    return tables


def _cost_line(finding: Finding) -> list[str]:
    quantities = {cost.quantity: cost for cost in finding.claim.computed}
    cost = quantities[finding.metric]
    computed = f"{finding.effect:.{cost.decimals + 1}f}"
    return [finding.word, finding.claim.statement, computed, cost.printed]


def _words(findings: Sequence[Finding]) -> list[str]:
    """A paragraph a claim: its statement, the paper's words, and what its effects are of."""
    paragraphs = []
    for claim, rows in groupby(findings, key=lambda finding: finding.claim):
        models_by_basis: dict[str, list[str]] = {}
        for finding in rows:
            basis = finding.comparison
            if finding.note:
                basis += f" ({finding.note})"
            models_by_basis.setdefault(basis, []).append(finding.model)
        lines = [
            _wrapped(f"**{claim.statement}** (`{claim.id}`)."),
            _item(f"“{claim.quote}” ({claim.place})."),
        ]
        for basis, models in models_by_basis.items():
            lines.append(_item(f"{', '.join(models)}: rests on {basis}."))
        paragraphs.append("\n".join(lines))
    return paragraphs


def _rest(findings: Sequence[Finding], study: str | None, kind: str | None) -> list[str]:
    """Claims that were not exercised, each once, by what it needs or by who else has it."""
    if not findings:
        return []
    claims_by_reason: dict[str, list[str]] = {}
    for finding in findings:
        claim = finding.claim
        reason = finding.note
        of_this_kind = study is None or kind == claim.study_kind
        if not of_this_kind and not claim.unmeasured:
            reason = f"a study of kind {claim.study_kind} has what these need"
        claims = claims_by_reason.setdefault(reason, [])
        named = f"{claim.statement} (`{claim.id}`)"
        if named not in claims:
            claims.append(named)
    items = [
        _item(f"{reason}: {'; '.join(claims)}.") for reason, claims in claims_by_reason.items()
    ]
    return ["## Not exercised", "\n".join(items)]


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    filled = textwrap.TextWrapper(96, first, others, break_long_words=False, break_on_hyphens=False)
    return filled.fill(text)


def _item(text: str) -> str:
    return _wrapped(text, "- ", "  ")
