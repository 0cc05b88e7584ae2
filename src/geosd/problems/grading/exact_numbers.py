r"""Numbers read exactly: no floating point, no library, no tolerance."""

from __future__ import annotations

import re
from fractions import Fraction

_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)")
_RATIO = re.compile(
    r"([+-]?)\s*(?:(\d+)\s*/\s*(\d+)|\\frac\s*\{\s*([+-]?\d+)\s*\}\s*\{\s*(\d+)\s*\})"
)
_MIXED = re.compile(r"([+-]?)(\d+)\s*(?:\\frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}|\s(\d+)/(\d+))")
# `=`, but not of `<=`, `>=`, `!=`, and no comma: `a=1, b=2` is two equations.
_EQUALS = re.compile(r"(?<![<>!\\])=")
# What may stand left of it: a name such as `x`, `f(x)`, `AB`, or arithmetic such as `3 + 1`.
_NAMED = re.compile(
    r"\s*(?:\|?[A-Za-z]{1,2}\|?(?:_\{?\w\}?)?(?:\([\w,]*\))?"
    r"|(?:[\d\s.+\-*/()^{}]|\\frac|\\times|\\cdot|\\div)+)\s*"
)
# Longer literals are no answers; reading them takes quadratic time.
LONGEST = 1000


def is_integer(gold: str) -> bool:
    """Whether a gold answer reads exactly as an integer, so that its problem is an integer problem.

    Example:
        >>> is_integer("-12"), is_integer("2.0"), is_integer("1/2")
        (True, False, False)
    """
    return bool(_INTEGER.fullmatch(gold.strip())) and len(gold) <= LONGEST


def read_number(body: str) -> Fraction | None:
    r"""Read the number that an answer is as an exact fraction.

    It is the number of an integer, a decimal, a ratio or a mixed number; of `x = 5` or `3 + 1 = 4`,
    that on the right; None for anything else, and for literals above `LONGEST` characters.

    Example:
        >>> [read_number(text) for text in ("007", "2.50", r"\frac{6}{3}", "x = 5", r"\sqrt{4}")]
        [Fraction(7, 1), Fraction(5, 2), Fraction(2, 1), Fraction(5, 1), None]
    """
    text = body.strip()
    if len(text) > LONGEST:
        return None
    *names, text = _EQUALS.split(text)
    if any("," in name or not _NAMED.fullmatch(name) for name in names):
        return None
    text = re.sub(r"^([+-])\s+", r"\1", text.strip())
    text = re.sub(r"^\{(.*)\}$", r"\1", text)
    if _INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text):
        return Fraction(text)
    if match := _RATIO.fullmatch(text):
        sign, top, bottom, frac_top, frac_bottom = match.groups()
        return _ratio(sign, 0, int(top or frac_top), int(bottom or frac_bottom))
    if match := _MIXED.fullmatch(text):
        sign, whole, *parts = match.groups()
        top, bottom = (int(part) for part in parts if part)
        return _ratio(sign, int(whole), top, bottom)
    return None


def _ratio(sign: str, whole: int, top: int, bottom: int) -> Fraction | None:
    if bottom == 0:
        return None
    value = whole + Fraction(top, bottom)
    return -value if sign == "-" else value
