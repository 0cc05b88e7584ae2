r"""Numbers read exactly: no floating point, no library, no tolerance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

# No pattern gives a character back (`++`), so each takes time linear in the text's length. Digits
# are ASCII: `\d` would also read other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]++")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++\.[0-9]*+|\.[0-9]++)")
_FRACTION = r"\\frac\{([+-]?[0-9]++)\}\{([0-9]++)\}"
_RATIO = re.compile(r"([+-]?)(?:([0-9]++)/([0-9]++)|" + _FRACTION + ")")
_MIXED = re.compile(r"([+-]?)([0-9]++)(?:" + _FRACTION + r"| ([0-9]++)/([0-9]++))")
# `=`, but not of `<=`, `>=`, `!=`, and no comma: `a=1, b=2` is two equations.
_EQUALS = re.compile(r"(?<![<>!\\])=")
# What may stand left of it: a name, `x`, `f(x)`, `AB`, `(a, b)`, or arithmetic, `3+1`.
_LETTERS = r"(?:[A-Za-z]{1,2}+|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|omega))"
_SINGLE_NAME = (
    rf"(?:{_LETTERS}|\|{_LETTERS}\|)(?:_[A-Za-z0-9]|_\{{[A-Za-z0-9]\}})?'?"
    r"(?:\([A-Za-z0-9, ]*+\))?"
)
_NAME = re.compile(rf"{_SINGLE_NAME}|\({_SINGLE_NAME}(?:, {_SINGLE_NAME})*+\)")
_ARITHMETIC = re.compile(r"(?:[0-9 .+\-*/()^{}]|\\(?:frac|times|cdot|div)(?![a-z]))++")
# Longer literals are no answers; reading them takes quadratic time.
LONGEST = 1000


def is_integer(gold: str) -> bool:
    """Whether a gold answer reads exactly as an integer, so that its problem is an integer problem.

    Example:
        >>> is_integer("-12"), is_integer("2.0"), is_integer("1/2")
        (True, False, False)
    """
    return len(gold) <= LONGEST and bool(_INTEGER.fullmatch(gold.strip()))


def read_number(body: str) -> Fraction | None:
    r"""Read the number that a normalized answer is as an exact fraction.

    An integer, a decimal, a ratio and a mixed number are read as themselves, and `x=5` or `3+1=4`
    as its right side. Everything else gives None, and so do an equation of two different numbers,
    `13=12`, and a literal above `LONGEST` characters.

    Example:
        >>> [read_number(text) for text in ("007", "2.50", r"\frac{6}{3}", "x=5", r"\sqrt{4}")]
        [Fraction(7, 1), Fraction(5, 2), Fraction(2, 1), Fraction(5, 1), None]
    """
    if len(body) > LONGEST:
        return None
    right = right_side(_EQUALS.split(body))
    return None if right is None else _read_literal(right)


def right_side(sides: Sequence[str]) -> str | None:
    """What the sides of a chain of equations say that a name or a calculation is: 4 of `x=3+1=4`.

    None where a side before the last is anything but a name, `2x=12`, or is a number that is not
    the last side's, `13=12`. A calculation is not checked. A single side is its own right side.
    """
    *names, text = (side.strip() for side in sides)
    for name in names:
        stated = _read_literal(name)
        if stated is not None and stated != _read_literal(text):
            return None
        if stated is None and not (_NAME.fullmatch(name) or _is_arithmetic(name)):
            return None
    return text


def _is_arithmetic(text: str) -> bool:
    return bool(_ARITHMETIC.fullmatch(text)) and any(map(str.isdigit, text))


def _read_literal(text: str) -> Fraction | None:
    if text[:1] == "{" and text[-1:] == "}":
        text = text[1:-1]
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
    if bottom == 0 or (whole and not 0 <= top < bottom):
        return None
    value = whole + Fraction(top, bottom)
    return -value if sign == "-" else value
