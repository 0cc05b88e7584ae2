r"""The normal form of an answer: the same text for every way to write the same answer.

Two answers that differ in presentation alone are the same answer. `normalize_answer` removes the
presentation:

| written | taken as |
|---|---|
| `$..$`, `\left`, `\displaystyle`, spacing, `\dfrac`, bold, a final full stop | not there |
| Unicode signs: − × ÷ π √ ∞ ≤ ≥ ∪ ² ½, full-width digits | their LaTeX or ASCII |
| `1,000`, `1{,}000`, `1,\!000`, `1\,000`, `1 000` | 1000 |
| `\$5`, `€5` | 5 |
| `5\%`, `5 percent`, `30^\circ`, `12\text{ cm}`, `12 inches`, `12 km/h` | the number with a unit |
| `12^{\mathrm{th}}` | 12 |
| `17_8` | 17 with the unit base 8 |
| `\text{ and }`, `or` between numbers | a comma |
| `\frac12`, `\frac1{72}` | `\frac{1}{2}`, `\frac{1}{72}` |

What cannot be removed without changing a value stays, and then no reader takes the answer for a
number. Nothing that is removed joins two runs of digits: `12€13` is not 1213. Every step is one
pass over the tokens of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geosd.problems.grading.answer_spelling import spell, without_frames
from geosd.problems.grading.answer_tokens import (
    LIST,
    is_number,
    is_space,
    is_word,
    tokenize,
    without_command,
)
from geosd.problems.grading.number_marks import end_of_value, without_marks, without_ordinals
from geosd.problems.grading.number_tokens import (
    join_blank_groups,
    join_thousands,
    spell_fractions,
)
from geosd.problems.grading.unicode_signs import in_latex
from geosd.problems.grading.units import NO_UNIT, Unit, read_unit

_DOUBLED_BACKSLASH = re.compile(r"\\\\(?=[a-zA-Z{}%$!,()\[\]])")
_BASE = re.compile(r"(-?[0-9A-F]++)_(?:([0-9]++)|\{([0-9]++)\})")


@dataclass(frozen=True)
class NormalizedAnswer:
    """The normal form of an answer: the answer without its presentation.

    Attributes:
        body: The answer itself, in LaTeX; blanks stand only where two tokens would become one.
        unit: What stands behind it.
    """

    body: str
    unit: Unit = NO_UNIT


def normalize_answer(answer: str) -> NormalizedAnswer:
    r"""The normal form of an answer: its presentation is removed, in time linear in its length.

    Example:
        >>> normalize_answer(r"$\dfrac{1}{2}\text{ cm}$.")
        NormalizedAnswer(body='\\frac{1}{2}', unit=Unit(name='cm', known=True))
        >>> normalize_answer("−1,000").body
        '-1000'
    """
    text = in_latex(answer)
    if r"\begin" not in text:  # there, a double backslash starts a row
        text = _DOUBLED_BACKSLASH.sub(r"\\", text)
    tokens = spell(without_frames(tokenize(text)))
    tokens = join_thousands(spell_fractions(tokens))
    tokens = without_marks(without_ordinals(tokens))
    if base := _BASE.fullmatch(_written(tokens)):
        return NormalizedAnswer(base[1], Unit(f"base {base[2] or base[3]}"))
    end = end_of_value(tokens)
    body = _written(join_blank_groups(tokens[:end]))
    return NormalizedAnswer(body, read_unit("".join(map(without_command, tokens[end:]))))


def units_agree(gold: Unit, answer: Unit) -> bool | None:
    """Whether an answer's unit agrees with the gold answer's; None where the words are unknown.

    A unit may be left out, and not be replaced. Only the gold answer may have unknown words. A base
    may be left out, and not be added: `12_{13}` is 15.
    """
    if gold.name == answer.name:
        return True
    if not answer.name:
        return not gold.multiplies
    if not answer.known:
        return None
    return not gold.name and (not answer.name.startswith("base ") or answer.name == "base 10")


def as_words(body: str) -> str | None:
    r"""The letters of a normalized answer that is a word or a choice, `\text{(C)}`; else None."""
    bare = "".join(map(without_command, tokenize(body))).strip(" .")
    if len(bare) >= 3 and bare[0] + bare[-1] == "()" and len(bare[1:-1].strip()) == 1:
        bare = bare[1:-1].strip()
    if not bare[:1].isalpha() or not all(sign.isalpha() or sign in "'- " for sign in bare):
        return None
    return " ".join(bare.split()) if bare.isascii() else None


def _written(tokens: Sequence[str]) -> str:
    """Tokens as text, without white space but where two tokens would become one."""
    parts: list[str] = []
    spaced = False
    for token in tokens:
        if is_space(token):
            spaced = True
            continue
        if parts and _would_merge(parts[-1], token, spaced):
            parts.append(" ")
        parts.append(LIST if token == "," else token)
        spaced = False
    return "".join(parts).strip()


def _would_merge(before: str, token: str, spaced: bool) -> bool:
    if spaced:
        return all(sign.isalnum() or sign == "." for sign in (before[-1], token[0]))
    is_command = before[0] == "\\" and before[-1].isalpha()
    return is_number(before) and is_number(token) or is_command and is_word(token)
