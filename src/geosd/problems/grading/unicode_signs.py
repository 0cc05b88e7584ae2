r"""Unicode signs in their LaTeX or ASCII form, character by character.

A sign is replaced only where it can mean one thing. So `½` is `\frac{1}{2}` and not the characters
1/2, which would make 11/2 of `1½`; `²` is an exponent, `₂` an index; a dash between two digits is a
range and stays. `unicodedata.normalize` is used on single characters alone: on a text it joins
what is apart, and orders long runs of accents in quadratic time.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_SIGNS = {
    "−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "×": r"\times ", "·": r"\cdot ",
    "⋅": r"\cdot ", "÷": "/", "⁄": "/", "∕": "/", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ",
    "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
    "∅": r"\emptyset ", "±": r"\pm ", "°": r"^\circ ", "√": r"\sqrt ", "’": "'",
    "…": r"\ldots ", "\u200b": " ", "\ufeff": " ",
}  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_RUN = re.compile(
    r"(?P<raised>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]++)|(?P<lowered>[₀₁₂₃₄₅₆₇₈₉]++)|√\s*+(?P<root>[0-9]++)"
)
_RANGE = re.compile(r"(?<=[\d$])[–—](?=[\d$])")
_RANGE_SIGN = "\N{EN DASH}"


def in_latex(text: str) -> str:
    r"""A text with its Unicode signs in LaTeX or ASCII; signs without such a form stay.

    Example:
        >>> in_latex("−1½·x² ≤ ３")
        '-1\\frac{1}{2}\\cdot x^{2} \\le  3'
    """
    if text.isascii():
        return text
    parts = _RANGE.split(_RUN.sub(_replace_run, text))
    return _RANGE_SIGN.join("".join(map(_replace_sign, part)) for part in parts)


def _replace_run(run: re.Match[str]) -> str:
    if run["raised"]:
        return "^{" + run["raised"].translate(_RAISED) + "}"
    if run["lowered"]:
        return "_{" + run["lowered"].translate(_LOWERED) + "}"
    return r"\sqrt{" + run["root"] + "}"


@lru_cache(maxsize=4096)
def _replace_sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character.isascii():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    tag = unicodedata.decomposition(character).partition(" ")[0]
    plain = unicodedata.normalize("NFKC", character)
    if tag == "<fraction>" and "⁄" in plain:
        top, _, bottom = plain.partition("⁄")
        return rf"\frac{{{top}}}{{{bottom}}}" if top and bottom else character
    # Others, such as ⑫ or ᵗʰ, would lose what sets them apart from 12 and th.
    if tag in ("<wide>", "<narrow>", "<small>", "<font>", "<square>") and plain.isascii():
        return plain
    return character
