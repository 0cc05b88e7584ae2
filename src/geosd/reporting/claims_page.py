"""The ledger of the paper's claims as files, claims.md and claims.csv."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from geosd.claims.metrics import unit_of_metric
from geosd.claims.verdicts import COSTS, VERDICTS, Finding
from geosd.files import atomic_write, write_text
from geosd.reporting.tables import MISSING, markdown_table

FORMS = {"points": "+.1f", "tokens": "+.1f"}
"""How effects are printed, by unit; all others to three decimals."""
OF_A_STUDY = (
    "Every verdict is computed from this study's runs by the rules in docs/claims.md. effect,"
    " interval and p are those of the claim's weakest comparison; effect is in percentage points"
    " (drift: radians; gradients: their norm), p one-sided and Holm-corrected over the claims that"
    " one kind of study is designed for, n the runs of each side (states: problems). A study that"
    " is small decides little: undetermined is not a failure to reproduce."
)
OF_ALL = (
    "Every claim is judged once, by the study that is designed for it. The rules are those of the"
    " studies' own ledgers (docs/claims.md) but for Holm's correction, which runs over this whole"
    " ledger."
)


def write_ledger(
    findings: Sequence[Finding],
    study: str | None,
    folder: Path | str,
    kind: str | None = None,
    name: str = "claims",
) -> list[Path]:
    """Write the ledger of claims as Markdown and CSV; returns the two paths.

    `study` is None for the ledger over several.
    """
    if study is not None:
        findings = [replace(finding, study=study) for finding in findings]
    text, table = Path(folder) / f"{name}.md", Path(folder) / f"{name}.csv"
    write_text(text, ledger_markdown(findings, study, kind))
    with atomic_write(table) as temporary:
        ledger_frame(findings).to_csv(temporary, index=False)
    return [text, table]


def ledger_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """The ledger of claims as a DataFrame, every finding a row, at full precision."""
    numbers = ("effect", "low", "high", "p", "p_holm", "n_a", "n_b", "paper_effect", "metric")
    return pd.DataFrame(
        {
            "claim": f.claim.id,
            **{name: getattr(f, name) for name in ("study", "model", "verdict", *numbers)},
            "unit": "" if f.claim.computed or not f.metric else unit_of_metric(f.metric),
            "weakest_comparison": f.weakest,
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
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    title = "The paper's claims" if study is None else f"The paper's claims in study {study}"
    about = OF_ALL if study is None else OF_A_STUDY
    parts = [f"# {title}", f"{summary}.", textwrap.fill(about, 96)]
    for where in dict.fromkeys((f.study, f.model) for f in tested):
        rows = [f for f in tested if (f.study, f.model) == where]
        of = f", study {where[0]}" if study is None else ""
        if where[1] == COSTS:
            lines = [["claim", "verdict", "computed", "paper"], *map(_cost_line, rows)]
            parts += ["## Costs, computed", markdown_table(lines, left=2)]
        else:
            header = ["claim", "verdict", "effect", "interval", "p", "n", "paper"]
            parts += [f"## {where[1]}{of}", markdown_table([header, *map(_line, rows)], left=2)]
    if tested:
        parts += ["## What the claims say", *_words(findings, tested)]
    judged = {finding.claim.id for finding in tested}
    rest = [finding for finding in findings if finding.claim.id not in judged]
    return "\n\n".join([*parts, *_rest(rest, study, kind)]) + "\n"


def _line(finding: Finding) -> list[str]:
    form = FORMS.get(unit_of_metric(finding.metric), "+.3f")

    def formatted(value: float, form: str = form) -> str:
        return MISSING if math.isnan(value) else format(value, form)

    interval = MISSING
    if not math.isnan(finding.low):
        interval = f"[{formatted(finding.low)}, {formatted(finding.high)}]"
    alike = finding.n_b in (0, finding.n_a)
    return [
        finding.claim.id,
        finding.verdict,
        formatted(finding.effect),
        interval,
        formatted(finding.p_holm, ".2g"),
        str(finding.n_a) if alike else f"{finding.n_a}, {finding.n_b}",
        formatted(finding.paper_effect, "+.1f" if form == "+.1f" else "+.2f"),
    ]


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
            why = f"decided by {finding.weakest}" if finding.weakest else "not tested"
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
