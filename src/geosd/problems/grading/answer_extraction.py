r"""The final answer that a response states.

Looked for in this order, in the text after the last `</think>` where there is one:

1. the last `\boxed{...}` (or `\fbox`), braces balanced; boxes that only `and`, `or`, commas or
   math delimiters separate are one list, a box repeated is one box;
2. the last line `Answer: ...`, or `A: ...`;
3. the last `answer is ...`, `answer: ...` inside a line;
4. with `guess`, and only then: the last formula between dollar signs, or the last number.

The fourth is off by default: in a response that was cut off it finds a number that the response
never called its answer, and some of these are right by luck.

Every step takes time linear in the length of the response. A pattern begins with a literal or at a
line's start, and what repeats in it without a bound is possessive (`++`, `*+`): it gives nothing
back, so that a pattern that fails does not read the same text again.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar

Item = TypeVar("Item")

_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*+(?=\{)|\\boxed\s++(?=\S)")
_BARE_BOX = re.compile(r"[^\s$,.;]++")
# `= -\\boxed{256}` answers -256; `3 - \\boxed{2}` does not answer -2. Looked for so far back:
_MINUS_BEFORE = re.compile(r"(?:[=$]|\\\(|\\\[)\s*-\s*\Z")
_MINUS_WITHIN = 16
_BETWEEN_BOXES = re.compile(
    r"(?:\s|\\text\s*+\{\s*+(?:and|or)\s*+\}|,|;|\$|\\[()\[\],;!\s]|\\q?quad|and\b|or\b|\*)*+"
)
_ANSWER_LINE = re.compile(
    r"^[ \t*#>\-]*+(?:(?:the|my)\s++)?(?:final\s++)?(?:answer|A)\s*+\**+\s*+[:：][\s*]*+(\S.*+)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile("answer", re.IGNORECASE)
_STATEMENT = re.compile(
    r"answer(?:\s{1,9}+(?:to|for|of)\b[^.\n]{0,80}?)?\s{0,99}+(?:\b(?:is|are|equals)\b\s*+:?+|[:：])"
    r"\s*+(\S.*+)",
    re.IGNORECASE,
)
_DELIMITER = re.compile(r"\\[()\[\]]|\$\$?|\\.", re.DOTALL)
_CLOSING = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_NUMBER = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?(?:/\d++)?")
_PROSE = re.compile(r"\.(?:\s|$)|\sI hope\b")


@dataclass(frozen=True)
class ExtractedAnswer:
    """A final answer, and the rule of extraction that found it.

    Attributes:
        text: The answer as written, without its frame.
        found_by: `boxed`, `answer line`, `answer is`, or the guesses `last formula`, `last number`.
    """

    text: str
    found_by: Literal["boxed", "answer line", "answer is", "last formula", "last number"]


def extract_answer(response: str, *, guess: bool = False) -> ExtractedAnswer | None:
    r"""Extract the final answer that a response states, such as the content of its last box.

    Returns None where none is stated; with `guess` the last formula or number counts then.

    Example:
        >>> extract_answer(r"First \boxed{3}. No: \boxed{\frac{1}{2}}.").text
        '\\frac{1}{2}'
        >>> extract_answer("... so x = 7.") is None
        True
    """
    text = response.rpartition("</think>")[2].rstrip()
    if boxed := _last_boxes(text):
        return ExtractedAnswer(boxed, "boxed")
    if line := _last(_ANSWER_LINE.finditer(text)):
        # "Answer: The final answer is 7." states it twice.
        return ExtractedAnswer(_sentence(_last_statement(line[1]) or line[1]), "answer line")
    if stated := _last_statement(text):
        return ExtractedAnswer(_sentence(stated), "answer is")
    return _guess(text) if guess else None


def _last_boxes(text: str) -> str | None:
    """The last whole box and those that stand directly before it, as one list."""
    found = list(_BOX.finditer(text))
    if not found:
        return None
    closed = _closing_braces(text, found[0].start())
    boxes: list[tuple[int, int, str]] = []
    for match in found:
        if boxes and match.start() < boxes[-1][1]:  # a box inside the box before it
            continue
        if text[match.end()] != "{":
            if bare := _BARE_BOX.match(text, match.end()):
                boxes.append((match.start(), bare.end(), bare[0]))
        elif end := closed.get(match.end()):
            boxes.append((match.start(), end, text[match.end() + 1 : end - 1].strip()))
    together: list[str] = []
    next_start = None
    for start, end, content in reversed(boxes):
        if not content:
            continue
        if next_start is not None and not _BETWEEN_BOXES.fullmatch(text, end, next_start):
            break
        negative = _MINUS_BEFORE.search(text, max(0, start - _MINUS_WITHIN), start)
        together.append(("-" if negative else "") + content)
        next_start = start
    return ", ".join(dict.fromkeys(reversed(together))) or None


def _closing_braces(text: str, start: int) -> dict[int, int]:
    """Where each brace that opens behind `start` closes, one past its end; escaped ones do not."""
    closed: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closed[opened.pop()] = brace.end()
    return closed


def _last_statement(text: str) -> str | None:
    """What stands behind the last `answer is`, to the end of its line."""
    places = [match.start() for match in _ANSWER.finditer(text)]
    stated = (_STATEMENT.match(text, place) for place in reversed(places))
    return next((match[1] for match in stated if match), None)


def _sentence(text: str) -> str:
    """The first formula of a line that starts with one; otherwise the line's first sentence."""
    text = text.strip().strip("*").strip()
    first = next(_formulas(text), None) if text.startswith(("$", r"\(", r"\[")) else None
    if first and first[0] == 0:
        rest = _PROSE.split(text[first[1] :], maxsplit=1)[0].strip(" .,*")
        # A unit or a second formula after the first belongs to the answer.
        return (first[2] + " " + rest).strip()
    return _PROSE.split(text, maxsplit=1)[0].strip().rstrip(".").strip("*").strip()


def _formulas(text: str) -> Iterator[tuple[int, int, str]]:
    r"""The start, end and inside of each formula between `$`, `$$`, `\(` or `\[`, by their ends."""
    opened: dict[str, re.Match[str]] = {}
    for delimiter in _DELIMITER.finditer(text):
        sign = delimiter[0]
        for opening, closing in _CLOSING.items():
            if sign == closing and opening in opened:
                begin = opened.pop(opening)
                inside = text[begin.end() : delimiter.start()].strip()
                yield begin.start(), delimiter.end(), inside
                break
        else:
            if sign in _CLOSING:
                opened[sign] = delimiter


def _last(items: Iterator[Item]) -> Item | None:
    """The last item, without a list of all: a long response has many."""
    last = deque(items, maxlen=1)
    return last[0] if last else None


def _guess(text: str) -> ExtractedAnswer | None:
    formula, number = _last(_formulas(text)), _last(_NUMBER.finditer(text))
    if formula and (number is None or number.end() <= formula[1]):
        return ExtractedAnswer(formula[2], "last formula")
    return ExtractedAnswer(number[0], "last number") if number else None
