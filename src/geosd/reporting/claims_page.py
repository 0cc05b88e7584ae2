"""The ledger of the paper's claims as files, claims.md and claims.csv, and in one sentence."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from geosd.claims.finding import ALL_MODELS, NOT_JUDGED, WORDS, Finding
from geosd.claims.metrics import unit_of_metric
from geosd.files import write_text
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.tables import MISSING, markdown_table
from geosd.scores.tidy import COLUMNS

DECIMALS = {"points": 1, "rad": 3, "norm": 3}
"""How effects are printed, by unit."""
MARKS = dict(zip(WORDS, "✓✗?–", strict=True))
"""What stands for a word where a claim has a cell for each model."""
USUAL = 0.95
"""The confidence of an interval that does not say its own."""
NO_WORDS = "This study is not meant to judge the paper's claims"
"""Why a ledger has estimates alone; `verdicts` of the study in params.yaml says so."""


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
    write_text(table, ledger_frame(findings).to_csv(index=False))
    return [text, table]


def ledger_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """The file claims.csv as a DataFrame: every finding of the ledger a row, at full precision."""
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
    parts.append(SENTENCES["legend"] if judged else f"{NO_WORDS}.")
    parts.append(f"![The claims. {SENTENCES['forest']}](claims{'' if study else '_all'}.svg)")
    ledger = ledger_frame(findings)
    if len(primary := ledger[ledger["part"] == "primary"]):
        parts += ["## The primary claims", _wrapped(SENTENCES["primary"]), claims_by_model(primary)]
    if judged:
        parts.append(_wrapped(counts_in_words(ledger)))
    about = [*(["of_all_studies"] if study is None else []), "every_claim"]
    about += ["others"] if judged else []
    parts += ["## The other claims", *(_wrapped(SENTENCES[name]) for name in about)]
    parts += _tables(ledger, "other", study)
    if construction := [f for f in findings if f.part == "by construction" and f.exercised]:
        parts += ["## Claims that hold by construction", "They are not counted."]
        parts += _tables(ledger, "by construction", study)
        reasons = {f.claim.statement: f.claim.why_by_construction(f.model) for f in construction}
        parts.append("\n".join(_item(f"{name}: {why}.") for name, why in reasons.items()))
    if costs := [f for f in findings if f.part == "computed" and f.exercised]:
        lines = [["word", "claim", "computed", "paper"], *map(_cost_line, costs)]
        parts += ["## Costs, computed", markdown_table(lines, left=2)]
    parts += ["## What the claims say", *_words([f for f in findings if f.exercised])]
    rest = [finding for finding in findings if not finding.exercised]
    return "\n\n".join([*parts, *_rest(rest, study, kind)]) + "\n"


def claims_by_model(rows: pd.DataFrame) -> str:
    """Rows of a ledger as a table: a row a claim, a column a model, its word first.

    The word is that of the row over all models, or the one that all models have.
    """
    judged, models = NOT_JUDGED not in set(rows["word"]), list(rows["model"].unique())
    effects = models if len(models) > 1 else ["effect"]
    lines = [["word", "claim", "quantity", *effects, "paper", "n"]]
    for _, of_claim in rows.groupby("claim", sort=False):
        cells = {row["model"]: row for row in of_claim.to_dict("records")}
        first, words = next(iter(cells.values())), set(of_claim["word"])
        alone = first["model"] == ALL_MODELS or len(words) == 1
        quantity = quantity_words(first)
        marked = judged and len(models) > 1
        effects = [_effect_cell(cells.get(model), marked, quantity) for model in models]
        word = first["word"] if alone else "by model"
        numbers = [*effects, paper_words(first), _runs(first)]
        lines.append([word, first["statement"], quantity or MISSING, *numbers])
    table = lines if judged else [line[1:] for line in lines]
    note = f"Model: {models[0]}.\n\n" if len(models) == 1 else ""
    return note + markdown_table(table, left=2 + judged)


def _effect_cell(row: Mapping[str, Any] | None, marked: bool, quantity: str) -> str:
    """An effect with its interval, the mark of its word before it if asked.

    Where it is of another quantity than the row's, that stands behind it.
    """
    if row is None or row["word"] == "not exercised":
        return MISSING
    effect = " ".join(words for words in interval_words(row) if words != MISSING)
    if (own := quantity_words(row)) != quantity:
        effect = f"{effect} ({own})"
    return f"{MARKS[row['word']]} {effect}" if marked else effect


_COMPARED = re.compile(r" (?:>|<|within \+-) ?[-+.\de]+(?:, (?P<shared>.*))?$")
"""The end of a comparison in words (`geosd.claims.claim.Comparison`): what it is compared with."""
_AXES = {"ood_avg": "OOD", "id": "ID"}


def quantity_words(row: Mapping[str, Any]) -> str:
    """What the effect of a row of a ledger is a value of, as `OOD pass@k: geosd - fwdkl`."""
    comparison = str(row["comparison"])
    end = _COMPARED.search(comparison)
    if end is None or not end["shared"]:
        return comparison[: end.start()] if end else comparison
    shared = end["shared"]
    metric, _, benchmark = shared.partition(" of ")
    benchmark, over, baseline = benchmark.partition(" over ")
    if benchmark in _AXES:
        shared = f"{_AXES[benchmark]} {metric}{over}{baseline}"
    return f"{shared}: {comparison[: end.start()]}"


def counts_in_words(ledger: pd.DataFrame) -> str:
    """How many claims have each word, primary ones and those by construction left out."""
    others, costs = (ledger[ledger["part"] == part] for part in ("other", "computed"))
    parts = [f"Of the other claims {_counted(others)}."] if len(others) else []
    parts += [f"Of the costs {_counted(costs)}."] if (costs["word"] != WORDS[3]).any() else []
    held = (others["holds_paper"] == "yes").sum()
    if numbers := held + (others["holds_paper"] == "no").sum():
        parts.append(f"The interval holds the paper's number in {held} of {numbers} rows.")
    return " ".join(parts)


def _counted(rows: pd.DataFrame) -> str:
    """How many claims have each word, by their first rows: `3 agree, 1 is opposite`."""
    counts = rows.drop_duplicates("claim")["word"].value_counts()
    one = {word: word if word == "agrees" else f"is {word}" for word in WORDS}
    more = {word: "agree" if word == "agrees" else f"are {word}" for word in WORDS}
    words = [f"{n} {(one if n == 1 else more)[w]}" for w in WORDS if (n := counts.get(w, 0))]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def finding_in_words(ledger: pd.DataFrame) -> str:
    """What a study found, in one sentence with effect, interval, runs and the paper's number.

    A main study has GeoSD's change in and out of distribution, another how its claims stand and the
    first of them. Empty if nothing was exercised.
    """
    exercised = ledger[ledger["word"] != "not exercised"]
    rows = exercised[exercised["part"].isin(("primary", "other"))]
    special = rows[rows["designed_for"] != "main"]
    rows = special if len(special) and rows["study"].nunique() == 1 else rows
    gains = [rows[rows["claim"] == f"geosd-{at}-gain"].to_dict("records") for at in ("id", "ood")]
    quantity = ""
    if all(gains):
        changes = []
        for (row, *_), where in zip(gains, ("in", "out of"), strict=True):
            verb = "gains" if _number(row["low"]) > 0 else "may gain or lose"
            verb = "loses" if _number(row["high"]) < 0 else verb
            changes.append(f"{verb} {where} distribution, {_effect(row)}")
        first, words = gains[0][0], f"Against the base model GeoSD {', and '.join(changes)}"
        papers = [number for row, *_ in gains if (number := paper_words(row)) != MISSING]
    elif len(rows):
        first, words = rows.iloc[0].to_dict(), ""
        if NOT_JUDGED not in set(rows["word"]):
            words = f"Of this study's claims {_counted(rows)}; the first, {first['word']}: "
        words += f"{first['statement']}, {_effect(first)}"
        quantity = f"{quantity_words(first)}; "
        papers = [number for number in [paper_words(first)] if number != MISSING]
    else:
        return ""
    units = first["units"]
    bases = "" if units in (first["n_a"], first["n_b"]) else f" on {units} base models"
    where = "" if first["model"] == ALL_MODELS else f", {first['model']}"
    beside = f"; the paper: {' and '.join(papers)}" if papers else ""
    return f"{words} ({quantity}{first['n_a']} runs{bases}{where}{beside})."


def _effect(row: Mapping[str, Any]) -> str:
    """An effect with its unit and interval."""
    effect, interval = interval_words(row)
    unit = f" {row['unit']}" if row["unit"] else ""
    return f"{effect}{unit}{'' if interval == MISSING else f' {interval}'}"


def _runs(row: Mapping[str, Any]) -> str:
    n = str(row["n_a"]) if row["n_b"] in (0, row["n_a"]) else f"{row['n_a']}, {row['n_b']}"
    return f"{n}/{row['units']}" if row["units"] not in (row["n_a"], row["n_b"]) else n


def paper_words(row: Mapping[str, Any]) -> str:
    """The paper's number of a row of a ledger as printed."""
    paper, decimals = _number(row["paper_effect"]), 1 if row["unit"] == "points" else 2
    return MISSING if math.isnan(paper) else f"{paper:+.{decimals}f}"


def interval_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """Effect and interval of a row of a ledger as printed.

    They have the decimals of their unit, and more where these would not show on which side of a
    margin, or of the paper's number, an end of the interval lies: what is printed decides. Behind
    an interval stands its confidence where that is another than 95 %: one effect has one interval
    of a confidence.
    """
    names = ("effect", "low", "high", "claimed_from", "claimed_to", "paper_effect")
    effect, low, high, *bounds = (_number(row[name]) for name in names)
    if math.isnan(effect):
        return MISSING, MISSING
    decimals = DECIMALS.get(str(row["unit"]), 3)
    if math.isnan(low):
        return format(effect, f"+z.{decimals}f"), MISSING  # what rounds to zero has a plus
    pairs = [(end, bound) for end in (low, high) for bound in bounds if not math.isnan(bound)]
    while decimals < 9 and any(
        np.sign(end - bound) != np.sign(round(end, decimals) - bound) for end, bound in pairs
    ):
        decimals += 1
    form = f"+z.{decimals}f"
    ends = f"[{format(low, form)}, {format(high, form)}]"
    confidence = _number(row.get("confidence", ""))
    if math.isnan(confidence) or math.isclose(confidence, USUAL):
        return format(effect, form), ends
    return format(effect, form), f"{ends} at {100 * confidence:.4g} %"


def _number(cell: Any) -> float:
    return math.nan if cell == "" else float(cell)


def _tables(ledger: pd.DataFrame, part: str, study: str | None) -> list[str]:
    """Tables of the exercised rows of a part: one of a study, or one for each of several."""
    rows = ledger[(ledger["part"] == part) & (ledger["word"] != "not exercised")]
    if study is not None:
        return [claims_by_model(rows)] if len(rows) else []
    by_study = rows.groupby("study", sort=False)
    return [text for name, of in by_study for text in (f"### Study {name}", claims_by_model(of))]


def _cost_line(finding: Finding) -> list[str]:
    one = next(c for c in finding.claim.computed if c.quantity == finding.metric)
    computed = f"{finding.effect:.{one.decimals + 1}f}"
    return [finding.word, finding.claim.statement, computed, one.printed]


def _words(findings: Sequence[Finding]) -> list[str]:
    paragraphs = []
    for claim, rows in groupby(findings, key=lambda finding: finding.claim):
        lines = [f"**{claim.statement}** (`{claim.id}`).", f"“{claim.quote}” ({claim.place})."]
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
        if (named := f"{claim.statement} (`{claim.id}`)") not in needs.setdefault(reason, []):
            needs[reason].append(named)
    items = [_item(f"{reason}: {'; '.join(claims)}.") for reason, claims in needs.items()]
    return ["## Not exercised", "\n".join(items)]


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    filled = textwrap.TextWrapper(96, first, others, break_long_words=False, break_on_hyphens=False)
    return filled.fill(text)


def _item(text: str) -> str:
    return _wrapped(text, "- ", "  ")
