"""Text as LaTeX reads it."""

from __future__ import annotations

import re

_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "π₀": r"$\pi_0$",
    "λ": r"$\lambda$",
    "Δ": r"$\Delta$",
    "→": r"$\to$",
    "±": r"$\pm$",
    "–": "--",
    "<": r"$<$",
    ">": r"$>$",
}


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped and our symbols as math."""
    pattern = "|".join(re.escape(key) for key in sorted(_LATEX, key=len, reverse=True))
    return re.sub(pattern, lambda match: _LATEX[match[0]], text)
