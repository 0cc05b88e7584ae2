"""The ledger of the paper's claims as files, claims.md and claims.csv."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from geosd.claims.metrics import unit_of_metric
from geosd.claims.word import COSTS, NO_STUDY, NOT_JUDGED, WORDS, Finding
from geosd.files import atomic_write, write_text
from geosd.reporting.tables import MISSING, markdown_table
from geosd.scores.tidy import COLUMNS

DECIMALS = {"points": 1, "rad": 3, "norm": 3}
"""How effects are printed, by unit."""
LEGEND = (
    "The interval decides the word: **agrees** if it lies on the side of the margin that the paper"
    " claims, **opposite** if it lies on the other side, **too small to tell** if it holds the"
    " margin; **not exercised** if the study lacks what the claim needs."
)
ABOUT = (
    "The margin is 0, or stands in the claim. Where a claim has several comparisons the row shows"
    " the one that decides: an opposite one first, then one that is too small to tell, then the"
    " weakest. Effects are in percentage points (drift: radians; gradients: their norm). An"
    " interval has 95 %, for all comparisons of a row together. `in interval` says whether it holds"
    " the paper's number. n is the runs of each side (states: problems), after a slash the base"
    " models where these are the unit. The rules are in docs/claims.md."
)
PRIMARY = (
    "These three were named in advance. Each is corrected over the models by Holm's method, as in"
    " the paper, so the intervals have the confidence that stands in the last column."
)
OTHERS = (
    "These rows are not corrected for their number: of rows whose claim lies at its margin, one in"
    " twenty has a wrong word."
)
NO_WORDS = "This study is not meant to judge the paper's claims"
"""Why a ledger has estimates alone; `verdicts` of the study in params.yaml says so."""
OF_ALL = "Every claim is judged once, by the study that is designed for it."


def write_ledger(
    findings: Sequence[Finding],
    study: str | None,
    folder: Path | str,
    kind: str | None = None,
    name: str = "claims",
) -> list[Path]:
    """Write the ledger of claims as Markdown and CSV; `study` is None for that over several."""
    if study is not None:
        findings = [replace(finding, study=study) for finding in findings]
    text, table = Path(folder) / f"{name}.md", Path(folder) / f"{name}.csv"
    write_text(text, ledger_markdown(findings, study, kind))
    with atomic_write(table) as temporary:
        ledger_frame(findings).to_csv(temporary, index=False)
    return [text, table]


def ledger_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """The ledger of claims as a DataFrame, every finding a row, at full precision."""
    names = [name for name in COLUMNS["claims"] if name not in ("claim", "note")]
    return pd.DataFrame(
        {
            "claim": f.claim.id,
            **{name: getattr(f, name) for name in names},
            "unit": "" if f.claim.computed or not f.metric else unit_of_metric(f.metric),
            "statement": f.claim.statement,
            "place": f.claim.place,
            "designed_for": f.claim.study_kind,
            "note": f.note,
        }
        for f in findings
    )


def ledger_markdown(findings: Sequence[Finding], study: str | None, kind: str | None = None) -> str:
    """The ledger of claims as Markdown: primary claims, counts, the other claims, their words.

    `study` is None for the ledger over several; `kind` is what the study is designed for.
    """
    judged = all(finding.judged or finding.claim.computed for finding in findings)
    title = f"# {'The paper' if judged else 'Estimates for the paper'}'s claims"
    parts = [title + ("" if study is None else f" in study {study}")]
    parts += [_wrapped(text) for text in ([LEGEND] if judged else [f"{NO_WORDS}."])]
    if primary := [f for f in findings if f.part == "primary"]:
        parts += ["## The primary claims", _wrapped(PRIMARY), _table(primary, judged)]
    if judged:
        parts += ["## How many other rows have each word", counts_markdown(ledger_frame(findings))]
    about = [OF_ALL, ABOUT] if study is None else [ABOUT]
    parts += ["## The other claims", *map(_wrapped, [*about, *([OTHERS] if judged else [])])]
    parts += _tables([f for f in findings if f.part == "other" and f.exercised], study, judged)
    if construction := [f for f in findings if f.part == "by construction" and f.exercised]:
        parts += ["## Claims that hold by construction", "They are not counted."]
        parts += _tables(construction, study, judged)
        reasons = {f.claim.id: f.claim.why_by_construction(f.model) for f in construction}
        parts.append("\n".join(_item(f"{name}: {why}.") for name, why in reasons.items()))
    if costs := [f for f in findings if f.part == "computed" and f.exercised]:
        lines = [["claim", "word", "computed", "paper"], *map(_cost_line, costs)]
        parts += ["## Costs, computed", markdown_table(lines, left=2)]
    parts += ["## What the claims say", *_words([f for f in findings if f.exercised])]
    rest = [finding for finding in findings if not finding.exercised]
    return "\n\n".join([*parts, *_rest(rest, study, kind)]) + "\n"


def word_counts(ledger: pd.DataFrame) -> pd.DataFrame:
    """How many rows of a ledger have each word: a row for each model, all models and costs.

    Left out are primary claims, and those that hold by construction.
    """
    counted = ledger[ledger["part"].isin(("other", "computed"))]
    counts = pd.crosstab(counted["model"], counted["word"])
    known = [word for word in (*WORDS, NOT_JUDGED) if word in counts or word in WORDS]
    order = [model for model in counted["model"].unique() if model not in (COSTS, NO_STUDY)]
    counts = counts.reindex(index=[*order, *counts.index.intersection([COSTS, NO_STUDY])])
    return counts.reindex(columns=known, fill_value=0).rename_axis(index=None, columns=None)


def counts_markdown(ledger: pd.DataFrame) -> str:
    """`word_counts` as a table, and how often an interval holds the paper's number."""
    counts = word_counts(ledger)
    lines = [["model", *counts], *([str(n) for n in row] for row in counts.itertuples())]
    others = ledger[ledger["part"] == "other"]
    held = (others["holds_paper"] == "yes").sum()
    numbers = held + (others["holds_paper"] == "no").sum()
    words = f"Of {numbers} rows with a number of the paper, the interval holds it in {held}."
    return f"{markdown_table(lines, left=1)}\n\n{words}"


def printed_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of a ledger as it is printed, by heading."""
    effect, interval = interval_words(row)
    paper, decimals = _number(row["paper_effect"]), 1 if row["unit"] == "points" else 2
    n = str(row["n_a"]) if row["n_b"] in (0, row["n_a"]) else f"{row['n_a']}, {row['n_b']}"
    return {
        **{head: row[head] for head in ("claim", "model", "word")},
        "effect": effect,
        "interval": interval,
        "paper": MISSING if math.isnan(paper) else f"{paper:+.{decimals}f}",
        "in interval": row["holds_paper"],
        "n": f"{n}/{row['units']}" if row["units"] not in (row["n_a"], row["n_b"]) else n,
    }


def interval_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """Effect and interval of a row of a ledger as printed.

    They have the decimals of their unit, and more where these would not show on which side of a
    margin, or of the paper's number, an end of the interval lies: what is printed decides.
    """
    names = ("effect", "low", "high", "claimed_from", "claimed_to", "paper_effect")
    effect, low, high, *bounds = (_number(row[name]) for name in names)
    if math.isnan(effect):
        return MISSING, MISSING
    decimals = DECIMALS.get(str(row["unit"]), 3)
    if math.isnan(low):
        return f"{effect:+.{decimals}f}", MISSING
    pairs = [(end, bound) for end in (low, high) for bound in bounds if not math.isnan(bound)]
    while decimals < 9 and any(
        np.sign(end - bound) != np.sign(round(end, decimals) - bound) for end, bound in pairs
    ):
        decimals += 1
    return f"{effect:+.{decimals}f}", f"[{low:+.{decimals}f}, {high:+.{decimals}f}]"


def _number(cell: Any) -> float:
    return math.nan if cell == "" else float(cell)


def _tables(findings: Sequence[Finding], study: str | None, judged: bool) -> list[str]:
    """Tables of findings: one of a study, or one for each of several under its name."""
    if study is not None:
        return [_table(findings, judged)] if findings else []
    parts = []
    for name in dict.fromkeys(finding.study for finding in findings):
        of_study = [finding for finding in findings if finding.study == name]
        parts += [f"### Study {name}", _table(of_study, judged)]
    return parts


def _table(findings: Sequence[Finding], judged: bool) -> str:
    """A table of findings; a claim's name stands once, and the only model of all before it."""
    cells = [printed_cells(row) for row in ledger_frame(findings).to_dict("records")]
    if findings[0].part == "primary":
        for row, f in zip(cells, findings, strict=True):
            row["at"] = MISSING if math.isnan(f.confidence) else f"{100 * f.confidence:.1f} %"
    hidden = set() if judged else {"word"}
    models, note = {finding.model for finding in findings}, ""
    if len(models) == 1:
        hidden, note = hidden | {"model"}, f"Model: {models.pop()}.\n\n"
    heads = [head for head in cells[0] if head not in hidden]
    lines = [[row[head] for head in heads] for row in cells]
    for before, after, row in zip(findings, findings[1:], lines[1:], strict=False):
        row[0] = "" if before.claim is after.claim else row[0]
    return note + markdown_table([heads, *lines], left=1 + ("model" in heads) + ("word" in heads))


def _cost_line(finding: Finding) -> list[str]:
    one = next(c for c in finding.claim.computed if c.quantity == finding.metric)
    computed = f"{finding.effect:.{one.decimals + 1}f}"
    return [finding.claim.id, finding.word, computed, one.printed]


def _words(findings: Sequence[Finding]) -> list[str]:
    paragraphs = []
    for claim, rows in groupby(findings, key=lambda finding: finding.claim):
        lines = [
            f"**{claim.id}**: {claim.statement}.",
            f"“{claim.quote}” ({claim.place}).",
        ]
        of: dict[str, list[str]] = {}
        for finding in rows:
            note = f" ({finding.note})" if finding.note else ""
            of.setdefault(f"{finding.comparison}{note}", []).append(finding.model)
        lines += [f"{', '.join(models)}: rests on {words}." for words, models in of.items()]
        paragraphs.append("\n".join([_wrapped(lines[0]), *map(_item, lines[1:])]))
    return paragraphs


def _rest(findings: Sequence[Finding], study: str | None, kind: str | None) -> list[str]:
    """What was not exercised, each claim once, by what it needs or by who else has it."""
    if not findings:
        return []
    needs: dict[str, list[str]] = {}
    for finding in findings:
        claim = finding.claim
        here = claim.unmeasured or study is None or kind == claim.study_kind
        reason = finding.note if here else f"a study of kind {claim.study_kind} has what these need"
        if f"`{claim.id}`" not in needs.setdefault(reason, []):
            needs[reason].append(f"`{claim.id}`")
    items = [_item(f"{reason}: {', '.join(claims)}.") for reason, claims in needs.items()]
    return ["## Not exercised", "\n".join(items)]


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    filled = textwrap.TextWrapper(96, first, others, break_long_words=False, break_on_hyphens=False)
    return filled.fill(text)


def _item(text: str) -> str:
    return _wrapped(text, "- ", "  ")
