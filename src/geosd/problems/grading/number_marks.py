r"""What stands at a number and is no part of it: ordinals, currency, percent, degrees, units."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.problems.grading.answer_tokens import (
    CURRENCY,
    DEGREE,
    LIST,
    PERCENT,
    inside_text,
    is_number,
    is_space,
    is_word,
    last_before,
    without_command,
)
from geosd.problems.grading.units import is_unit_word

_ORDINALS = {"st", "nd", "rd", "th"}
_TRIGONOMETRY = {name for f in ("sin", "cos", "tan", "cot", "sec", "csc") for name in (f, "\\" + f)}
_SEPARATORS = {"", LIST, ",", ";", ")", "]", "}", r"\}", "=", "<", ">", r"\le", r"\ge", r"\ne"}


def without_ordinals(tokens: Sequence[str]) -> list[str]:
    r"""The tokens without the `th` of `12th` and `12^{\text{th}}`."""
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        length = 0
        if kept and is_number(kept[-1]):
            length = _length_of_ordinal([*tokens[place : place + 4], "", "", "", ""])
        after = tokens[place + length] if place + length < len(tokens) else ""
        if length and not (is_number(after) or is_word(after)):
            place += length
        else:
            kept.append(tokens[place])
            place += 1
    return kept


def without_marks(tokens: Sequence[str]) -> list[str]:
    r"""The tokens without currency, and without percent and degree signs in front of a separator.

    In a formula with sines a degree is `\frac{\pi}{180}`. A mark in front of anything else stays;
    percent and degree signs at the end of a single value are its unit, and stay too.
    """
    radians = not _TRIGONOMETRY.isdisjoint(tokens)
    is_list = LIST in tokens or "," in tokens
    kept: list[str] = []
    for place, token in enumerate(tokens):
        behind_value = bool(kept) and (is_number(kept[-1]) or kept[-1] in ("}", ")"))
        if token == CURRENCY:
            following = _next_token(tokens, place)
            leads = is_number(following) or following == "."
            drop = not behind_value if leads else behind_value and following in _SEPARATORS
        elif token == DEGREE and radians:
            drop = behind_value and is_number(kept[-1])
            if drop:
                decimal = 3 if len(kept) > 2 and kept[-2] == "." and is_number(kept[-3]) else 1
                kept[-decimal:] = [r"\frac", "{", *kept[-decimal:], r"\pi", "}", "{", "180", "}"]
        elif token in (PERCENT, DEGREE):
            following = _next_token(tokens, place)
            drop = behind_value and following in _SEPARATORS and (following != "" or is_list)
        else:
            drop = False
        if not drop:
            kept.append(token)
    return kept


def end_of_value(tokens: Sequence[str]) -> int:
    """Where the unit behind a value begins; past the last token where there is none.

    A list, and what begins with a bracket, has none. A text may hold any words, which `read_unit`
    judges; outside of texts every word must be a unit's.
    """
    if not tokens or LIST in tokens or "," in tokens or tokens[0] in ("(", "[", r"\{"):
        return len(tokens)
    end = len(tokens)
    while end:
        if power := _length_of_power(tokens, end):
            end -= power
        elif _may_be_unit(tokens, end - 1):
            end -= 1
        else:
            break
    while end < len(tokens) and (is_space(tokens[end]) or tokens[end] in ("/", ".")):
        end += 1
    last = last_before(tokens, end)
    is_value = last >= 0 and (is_number(tokens[last]) or tokens[last] in ("}", ")", "]", r"\pi"))
    return end if is_value else len(tokens)


def _next_token(tokens: Sequence[str], place: int) -> str:
    """The token behind a place and white space; empty at the end."""
    place += 1
    while place < len(tokens) and is_space(tokens[place]):
        place += 1
    return tokens[place] if place < len(tokens) else ""


def _length_of_ordinal(tokens: Sequence[str]) -> int:
    raised = 1 if tokens[0] == "^" else 0
    braces = raised and tokens[1] == "{" and tokens[3] == "}"
    sign = tokens[raised + 1 if braces else raised]
    return raised + (3 if braces else 1) if without_command(sign).strip() in _ORDINALS else 0


def _length_of_power(tokens: Sequence[str], end: int) -> int:
    """The length of the `^2` or `^{3}` behind a unit that ends there; 0 for anything else."""
    for length, pattern in ((2, ("^", None)), (4, ("^", "{", None, "}"))):
        start = end - length
        fits = start > 0 and all(
            token in ("2", "3") if wanted is None else token == wanted
            for token, wanted in zip(tokens[start:end], pattern, strict=True)
        )
        if fits:
            last = last_before(tokens, start)
            is_unit = last >= 0 and (inside_text(tokens[last]) or is_word(tokens[last]))
            return length if is_unit else 0
    return 0


def _may_be_unit(tokens: Sequence[str], place: int) -> bool:
    token = tokens[place]
    if is_word(token):  # `12 m` is a product, `12 km/h` is not
        in_ratio = place > 0 and tokens[place - 1] == "/"
        return is_unit_word(token) and (len(token) > 1 or in_ratio)
    is_mark = token in (DEGREE, PERCENT, "/", ".")
    return is_mark or is_space(token) or inside_text(token) is not None
