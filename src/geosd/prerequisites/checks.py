"""The outcome of a check, and how a list of them is said."""

import textwrap
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Check(NamedTuple):
    """The outcome of one check: what was looked at and found, and what to do where it is not `ok`.

    A study cannot do without what is `missing`; nobody could see what is `unknown`.
    """

    subject: str
    state: Literal["ok", "missing", "unknown"]
    found: str
    cure: str = ""

    @classmethod
    def of(cls, subject: str, holds: object, found: str, cure: str) -> "Check":
        """A check that is `ok` where what it looks for holds, and else `missing`."""
        return cls(subject, "ok", found) if holds else cls(subject, "missing", found, cure)


def report(checks: Sequence[Check]) -> str:
    """Each check in 80 columns, its state first, and the cure below what is not ok.

    Example:
        >>> print(report([Check("disk", "ok", "9 TB free")]))
        ok       disk: 9 TB free
    """
    lines, wraps = [], {"break_long_words": False, "break_on_hyphens": False}
    for check in checks:
        words = f"{check.state:8} {check.subject}: {check.found}"
        lines.append(textwrap.fill(words, 80, subsequent_indent=" " * 9, **wraps))
        if check.state != "ok":  # a line by itself, however long: its command can be copied
            lines.append(f"{' ' * 9}Hint: {check.cure}")
    return "\n".join(lines)


def missing(checks: Sequence[Check]) -> list[str]:
    """The subjects of the checks that found something missing."""
    return [check.subject for check in checks if check.state == "missing"]
