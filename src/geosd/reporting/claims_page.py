"""The ledger of the paper's claims as files, claims.md and claims.csv."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import pandas as pd

from geosd.claims.finding import ALL_MODELS, ARITHMETIC, COSTS, NOT_JUDGED, VERDICTS, Finding
from geosd.claims.metrics import unit_of_metric
from geosd.files import atomic_write, write_text
from geosd.reporting.tables import MISSING, markdown_table
from geosd.scores.tidy import COLUMNS

FORMS = {"points": "+.1f", "rad": "+.3f", "norm": "+.3f"}
"""How effects are printed, by unit."""
ABOUT = (
    "The rules are in docs/claims.md. effect, interval and p are those of the comparison that"
    " fails most clearly, or of the weakest one; effect is in percentage points (drift: radians;"
    " gradients: their norm). p is against the claim where it is not reproduced, else for it,"
    " corrected over the rows of one kind of study; detects is the distance from the claim's margin"
    " that this design would confirm with power .8. n is the runs of each side (states: problems),"
    " after a slash the base models where these are the unit; draws is the standard deviation of"
    " the effect between draws of the base model. Undetermined is not a failure to reproduce."
)
NO_VERDICTS = "This study is not meant for verdicts on the paper's claims"
"""Why a ledger has estimates alone; `verdicts` of the study in params.yaml says so."""
ABOUT_ESTIMATES = (
    f"{NO_VERDICTS}: it has no word on whether a claim holds. effect and interval are those of one"
    " of the claim's comparisons, effect in percentage points (drift: radians; gradients: their"
    " norm). detects is the distance from the claim's margin that this design would confirm with"
    " power .8. n is the runs of each side (states: problems), after a slash the base models where"
    " these are the unit. The definitions are in docs/claims.md."
)
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
            "published": f.claim.published,
            "designed_for": f.claim.study_kind,
            "note": f.note,
        }
        for f in findings
    )


def ledger_markdown(findings: Sequence[Finding], study: str | None, kind: str | None = None) -> str:
    """The ledger of claims as Markdown: counts, tables of what was tested, each claim's words.

    `study` is None for the ledger over several; `kind` is what the study is designed for.
    """
    tested = [finding for finding in findings if finding.verdict != "not tested"]
    title = "The paper's claims" if study is None else f"The paper's claims in study {study}"
    about = [*_counts(findings), f"{OF_ALL} {ABOUT}" if study is None else ABOUT]
    if any(finding.verdict == NOT_JUDGED for finding in findings):
        title, about = f"Estimates for the paper's claims in study {study}", [ABOUT_ESTIMATES]
    parts = [f"# {title}", *map(_wrapped, about)]
    for where in dict.fromkeys((f.study, f.model) for f in tested):
        rows = [f for f in tested if (f.study, f.model) == where]
        of = f", study {where[0]}" if study is None else ""
        if where[1] == COSTS:
            lines = [["claim", "verdict", "computed", "paper"], *map(_cost_line, rows)]
            parts += ["## Costs, computed", markdown_table(lines, left=2)]
        else:
            lines = _lines(rows)
            parts += [f"## {where[1]}{of}", markdown_table(lines, 1 + ("verdict" in lines[0]))]
    if tested:
        parts += ["## What the claims say", *_words(findings, tested)]
    tested_ids = {finding.claim.id for finding in tested}
    rest = [finding for finding in findings if finding.claim.id not in tested_ids]
    return "\n\n".join([*parts, *_rest(rest, study, kind)]) + "\n"


def verdict_counts(ledger: pd.DataFrame) -> pd.DataFrame:
    """How many claims have each verdict: a row for each model, `all models` and `costs`."""
    counts = pd.crosstab(ledger["model"], ledger["verdict"])
    known = [word for word in (*VERDICTS, NOT_JUDGED, *ARITHMETIC) if word in counts]
    return counts[known].rename_axis(index=None, columns=None)


def _counts(findings: Sequence[Finding]) -> list[str]:
    """How many rows have each verdict and what they detect: of one model, of all, arithmetic."""
    apart = [f for f in findings if f.model not in (ALL_MODELS, COSTS) or f.claim.unmeasured]
    groups = {
        "": (apart, VERDICTS),
        "All models together: ": ([f for f in findings if f.model == ALL_MODELS], VERDICTS),
        "Arithmetic: ": ([f for f in findings if f.claim.computed], (*ARITHMETIC, "not tested")),
    }
    sentences = []
    for head, (rows, verdicts) in groups.items():
        counts = Counter(finding.verdict for finding in rows)
        words = [f"{counts[verdict]} {verdict}" for verdict in verdicts]
        sentences += [f"{head}{', '.join(words)}{_detects(rows)}."] if rows else []
    return sentences


def _detects(rows: Sequence[Finding]) -> str:
    """The median smallest detectable effect of rows by unit, in words; empty where none has one."""
    medians = []
    for unit, form in FORMS.items():
        of_unit = [f.detectable for f in rows if unit_of_metric(f.metric) == unit]
        if known := [effect for effect in of_unit if not math.isnan(effect)]:
            medians.append(f"{format(median(known), form[1:])} {unit}")
    return f"; median smallest detectable effect {', '.join(medians)}" if medians else ""


def _lines(rows: Sequence[Finding]) -> list[list[str]]:
    """The table of the findings on a model; draws have a column where any row has several."""
    several = any(not math.isnan(f.draw_sd) for f in rows)
    draws = ["draws"] if several else []
    lines = [["claim", "verdict", "effect", "interval", "detects", *draws, "p", "n", "paper"]]
    for f in rows:
        form = FORMS[unit_of_metric(f.metric)]
        low, high = _number(f.low, form), _number(f.high, form)
        n = str(f.n_a) if f.n_b in (0, f.n_a) else f"{f.n_a}, {f.n_b}"
        lines.append(
            [
                f.claim.id,
                f.verdict,
                _number(f.effect, form),
                MISSING if math.isnan(f.low) else f"[{low}, {high}]",
                _number(f.detectable, form[1:]),
                *([_number(f.draw_sd, form[1:])] if several else []),
                _number(math.nan if f.verdict == "undecidable" else f.p, ".2g"),
                f"{n}/{f.units}" if f.units not in (f.n_a, f.n_b) else n,
                _number(f.paper_effect, "+.1f" if form == "+.1f" else "+.2f"),
            ]
        )
    if all(f.verdict == NOT_JUDGED for f in rows):
        kept = [at for at, word in enumerate(lines[0]) if word not in ("verdict", "p")]
        lines = [[line[at] for at in kept] for line in lines]
    return lines


def _number(value: float, form: str) -> str:
    return MISSING if math.isnan(value) else format(value, form)


def _cost_line(finding: Finding) -> list[str]:
    one = next(c for c in finding.claim.computed if c.quantity == finding.metric)
    computed = f"{finding.effect:.{one.decimals + 1}f}"
    return [finding.claim.id, finding.verdict, computed, one.printed]


def _words(findings: Sequence[Finding], tested: Sequence[Finding]) -> list[str]:
    paragraphs = []
    for claim in dict.fromkeys(finding.claim for finding in tested):
        lines = [
            f"**{claim.id}**: {claim.statement}.",
            f"“{claim.quote}” ({claim.place}); published: {claim.published}.",
        ]
        for finding in findings:
            if finding.claim != claim:
                continue
            note = f" ({finding.note})" if finding.note else ""
            why = f"rests on {finding.comparison}" if finding.comparison else "not tested"
            lines.append(f"{finding.model}: {why}{note}.")
        paragraphs.append("\n".join([_wrapped(lines[0]), *map(_item, lines[1:])]))
    return paragraphs


def _rest(findings: Sequence[Finding], study: str | None, kind: str | None) -> list[str]:
    """What was not judged, each claim once, by what it needs or by who else has it."""
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
    return ["## Not tested in this study" if study else "## Not tested", "\n".join(items)]


def _wrapped(text: str, first: str = "", others: str = "") -> str:
    filled = textwrap.TextWrapper(96, first, others, break_long_words=False, break_on_hyphens=False)
    return filled.fill(text)


def _item(text: str) -> str:
    return _wrapped(text, "- ", "  ")
