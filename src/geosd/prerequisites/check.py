"""The outcome of one check of the machine, and the lines that report several."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Check(NamedTuple):
    """The outcome of one check.

    Attributes:
        subject: What was looked at.
        state: `ok`; `missing`, which a study cannot do without; `unknown`, which nobody could see.
        found: What was found, in one sentence.
        cure: What to do, where the state is not `ok`.
    """

    subject: str
    state: Literal["ok", "missing", "unknown"]
    found: str
    cure: str = ""


def report(checks: Sequence[Check]) -> str:
    """A line for each check, its state first, and the cure below what is not ok.

    Example:
        >>> print(report([Check("disk", "ok", "9 TB free")]))
        ok       disk: 9 TB free
    """
    lines = []
    for check in checks:
        lines.append(f"{check.state:8} {check.subject}: {check.found}")
        if check.state != "ok":
            lines.append(textwrap.indent(f"Hint: {check.cure}", " " * 9))
    return "\n".join(lines)


def missing(checks: Sequence[Check]) -> list[str]:
    """The subjects of the checks that found something missing."""
    return [check.subject for check in checks if check.state == "missing"]
