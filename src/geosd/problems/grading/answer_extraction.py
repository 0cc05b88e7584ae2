r"""The final answer that a response states.

Looked for in this order, in the text after the last `</think>` where there is one:

1. the last `\boxed{...}` (or `\fbox`), braces balanced; boxes that only `and`, `or`, commas or
   math delimiters separate are one list, a box repeated is one box;
2. the last line `Answer: ...`, or `A: ...`;
3. the last `answer is ...`, `answer: ...` inside a line;
4. with `guess`, and only then: the last formula between dollar signs, or the last number.

The fourth is off by default: in a response that was cut off it finds a number that the response
never called its answer, and some of these are right by luck.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*(?=\{)|\\boxed\s+(?=\S)")
# `= -\\boxed{256}` answers -256; `3 - \\boxed{2}` does not answer -2.
_MINUS_BEFORE = re.compile(r"(?:[=$]|\\\(|\\\[)\s*-\s*\Z")
_BETWEEN_BOXES = re.compile(
    r"(?:\s|\\text\s*\{\s*(?:and|or)\s*\}|,|;|\$|\\[()\[\],;!\s]|\\q?quad|and\b|or\b|\*)*"
)
_ANSWER_LINE = re.compile(
    r"^[ \t*#>\-]*(?:(?:the|my)\s+)?(?:final\s+)?(?:answer|A)\s*\**\s*[:：]\s*\**[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER_IS = re.compile(
    r"answer(?:\s+(?:to|for|of)\b[^.\n]{0,80}?)?\s*(?:\b(?:is|are|equals)\b\s*:?|[:：])\s*(\S.*)",
    re.IGNORECASE,
)
_FORMULA = re.compile(r"(?<!\\)\$\$?([^$]+)(?<!\\)\$\$?|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER = re.compile(r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?")
_PROSE = re.compile(r"\.(?:\s|$)|\s+I hope\b")


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
    text = response.rpartition("</think>")[2]
    if boxed := _last_boxes(text):
        return ExtractedAnswer(boxed, "boxed")
    if lines := _ANSWER_LINE.findall(text):
        return ExtractedAnswer(_sentence(lines[-1]), "answer line")
    if stated := list(_ANSWER_IS.finditer(text)):
        return ExtractedAnswer(_sentence(stated[-1][1]), "answer is")
    return _guess(text) if guess else None


def _closing_braces(text: str) -> dict[int, int]:
    """Where each brace that opens at a position closes, one past its end; escaped braces are text.

    One pass over the text: a response of thousands of boxes that never close is not slow.
    """
    closed: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closed[opened.pop()] = brace.end()
    return closed


def _last_boxes(text: str) -> str | None:
    """The last whole box and those that stand directly before it, as one list."""
    boxes: list[tuple[int, int, str]] = []
    closed = _closing_braces(text)
    for match in _BOX.finditer(text):
        if boxes and match.start() < boxes[-1][1]:  # a box inside the box before it
            continue
        if text[match.end()] != "{":
            if bare := re.match(r"[^\s$,.;]+", text[match.end() :]):
                boxes.append((match.start(), match.end() + bare.end(), bare[0]))
        elif end := closed.get(match.end()):
            content = text[match.end() + 1 : end - 1].strip()
            if content and _MINUS_BEFORE.search(text, 0, match.start()):
                content = "-" + content
            boxes.append((match.start(), end, content))
    boxes = [box for box in boxes if box[2]]
    if not boxes:
        return None
    together = [boxes[-1]]
    for box in reversed(boxes[:-1]):
        if not _BETWEEN_BOXES.fullmatch(text, box[1], together[0][0]):
            break
        together.insert(0, box)
    return ", ".join(dict.fromkeys(content for _, _, content in together))


def _sentence(text: str) -> str:
    """The first formula of a line that starts with one; otherwise the line's first sentence."""
    while nested := _ANSWER_IS.search(text):  # "Answer: The final answer is 7." states it twice
        text = nested[1]
    text = text.strip().strip("*").strip()
    if text.startswith(("$", r"\(", r"\[")) and (match := _FORMULA.match(text)):
        rest = _PROSE.split(text[match.end() :], maxsplit=1)[0].strip(" .,*")
        # A unit or a second formula after the first belongs to the answer.
        return (_inside(match) + " " + rest).strip()
    return _PROSE.split(text, maxsplit=1)[0].strip().rstrip(".").strip("*").strip()


def _guess(text: str) -> ExtractedAnswer | None:
    formulas = list(_FORMULA.finditer(text))
    numbers = list(_NUMBER.finditer(text))
    if formulas and (not numbers or numbers[-1].end() <= formulas[-1].end()):
        return ExtractedAnswer(_inside(formulas[-1]), "last formula")
    return ExtractedAnswer(numbers[-1][0], "last number") if numbers else None


def _inside(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group is not None).strip()
