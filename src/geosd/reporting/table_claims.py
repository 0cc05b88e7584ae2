"""The ledger of the paper's claims: what a study reproduces, does not, or cannot decide."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from geosd.analysis.drift import QUANTITIES
from geosd.analysis.verdicts import VERDICTS, Finding
from geosd.files import atomic_write, write_text
from geosd.reporting.tables import MISSING, aligned


def write(findings: Sequence[Finding], study: str, folder: Path | str) -> list[Path]:
    """Write the ledger as claims.md and claims.csv; returns the two paths."""
    text, table = Path(folder) / "claims.md", Path(folder) / "claims.csv"
    write_text(text, to_markdown(findings, study))
    with atomic_write(table) as temporary:
        to_frame(findings).to_csv(temporary, index=False)
    return [text, table]


def to_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """Every finding as a row, at full precision."""
    return pd.DataFrame(
        {
            "claim": f.claim.id,
            "model": f.model,
            "verdict": f.verdict,
            "effect": f.effect,
            "low": f.low,
            "high": f.high,
            "p": f.p,
            "p_holm": f.p_holm,
            "runs_a": f.n_a,
            "runs_b": f.n_b,
            "paper_effect": f.paper_effect,
            "weakest_comparison": f.weakest,
            "statement": f.claim.statement,
            "place": f.claim.place,
            "published": f.claim.published,
            "note": f.note,
        }
        for f in findings
    )


def to_markdown(findings: Sequence[Finding], study: str) -> str:
    """The ledger for people: the count, a table of what was tested, then each claim's words."""
    counts = Counter(finding.verdict for finding in findings)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    about = (
        "Every verdict is computed from this study's runs by the rules in docs/claims.md. effect,"
        " interval and p are those of the claim's weakest comparison; effect is in percentage"
        " points (drift: radians), p one-sided and Holm-corrected over this ledger. A study that"
        " is small decides little: undetermined is not a failure to reproduce."
    )
    parts = [f"# The paper's claims in study {study}", f"{told}.", textwrap.fill(about, 96)]
    tested = [finding for finding in findings if finding.verdict != "not tested"]
    for model in dict.fromkeys(finding.model for finding in tested):
        header = ["claim", "verdict", "effect", "interval", "p", "runs", "paper"]
        lines = [header] + [_line(finding) for finding in tested if finding.model == model]
        parts += [f"## {model}", aligned(lines, left=2)]
    if tested:
        parts.append("## What the claims say")
        parts += _words(tested)
    untested = [finding for finding in findings if finding.verdict == "not tested"]
    if untested:
        parts.append("## Not tested in this study")
        reasons = {f.claim.id: (f.claim.statement, f.note) for f in untested}
        parts.append(
            "\n".join(_item(f"`{name}`: {said}; {why}.") for name, (said, why) in reasons.items())
        )
    return "\n\n".join(parts) + "\n"


def _line(finding: Finding) -> list[str]:
    drift = any(c.metric in QUANTITIES for c in finding.claim.comparisons)
    form = "+.3f" if drift else "+.1f"

    def shown(value: float, form: str = form) -> str:
        return MISSING if math.isnan(value) else format(value, form)

    interval = MISSING
    if not math.isnan(finding.low):
        interval = f"[{shown(finding.low)}, {shown(finding.high)}]"
    return [
        finding.claim.id,
        finding.verdict,
        shown(finding.effect),
        interval,
        shown(finding.p_holm, ".2g"),
        str(finding.n_a) if finding.n_a == finding.n_b else f"{finding.n_a}, {finding.n_b}",
        shown(finding.paper_effect, "+.2f" if drift else "+.1f"),
    ]


def _words(findings: Sequence[Finding]) -> list[str]:
    said = []
    for claim in dict.fromkeys(finding.claim for finding in findings):
        lines = [
            f"**{claim.id}**: {claim.statement}.",
            f"“{claim.quote}” ({claim.place}); published: {claim.published}.",
        ]
        for finding in findings:
            if finding.claim == claim:
                note = f" ({finding.note})" if finding.note else ""
                lines.append(f"{finding.model}: decided by {finding.weakest}{note}.")
        said.append("\n".join([_wrapped(lines[0]), *map(_item, lines[1:])]))
    return said


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 96, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> str:
    return textwrap.fill(
        text,
        96,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
