r"""Answers that are several values: lists, sets, tuples, named coordinates, numbered roots.

Two of them are compared element by element, each element as an answer of its own. A list and a set
have no order; a tuple has one, and is neither of them. Named coordinates have the order of their
names. Numbered roots, `x_1=2, x_2=5`, are a list.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from geosd.problems.grading.answer_normalization import tokenize_answer
from geosd.problems.records import Reason

Kind = Literal["list", "tuple", "point", "roots"]
MOST_ELEMENTS = 100

OPENING, CLOSING = {"(", "[", "{", r"\{"}, {")", "]", "}", r"\}"}
OR = re.compile(r"\\text\{[\s,]*or\s*+\}|(?<![A-Za-z\\])or(?![A-Za-z])|\\(?:lor|vee)(?![a-z])")
_AND = re.compile(
    r"\\text\{[\s,]*(?:and|\\?&)\s*+\}|(?<![A-Za-z\\])and(?![A-Za-z])|\\land(?![a-z])|\\&"
)
_WHERE = re.compile(r",?\s*+\\text\{[\s,]*(?:where|for|with)(?: (?:any|all|some|every))?\s*+\},?")
# `2k\pi (k \in \mathbb{Z})`
_CONDITION = re.compile(r"\(([a-zA-Z]\\in\\mathbb\{[NZQRC]\})\)")
# `n \equiv 1, 4 \pmod{5}`
_RESIDUES = re.compile(r"([^,]*?\\equiv ?)([^,\\]*+,[^\\]*+)(\\pmod\{[^{}]*\})")
_TEXT = re.compile(r"\\text\{([^{}]*+)\}")
_POINT = re.compile(r"\(([a-zA-Z\\, _0-9]++)\)=\((.*)\)", re.DOTALL)
_COORDINATE = re.compile(r"((?:[a-zA-Z]|\\[a-z]++)(?:_\{?[0-9a-z]\}?)?)\0(.*)", re.DOTALL)
# Unknowns stand at the alphabet's end. The terms of a sequence, `a_1=2, a_2=5`, have an order.
_ROOT = re.compile(r"(?:[k-z]|[a-z]{2,})_\{?[1-9]\}?")
_PLUS_MINUS = re.compile(r"\\(pm|mp)(?![a-z])")


@dataclass(frozen=True)
class AnswerList:
    """The elements of an answer, in the order of their names where they have names."""

    kind: Kind
    elements: tuple[str, ...]


def read_answer_list(body: str) -> AnswerList | None:
    r"""The elements of a normalized answer; None where the answer is one value.

    Example:
        >>> read_answer_list(r"\{(1, 2), (3, 4)\}")
        AnswerList(kind='list', elements=('(1, 2)', '(3, 4)'))
        >>> read_answer_list("y=3, x=4")
        AnswerList(kind='point', elements=('4', '3'))
        >>> read_answer_list(r"3\pm x").elements
        ('3+x', '3-x')
    """
    text = _CONDITION.sub(r", \1", _WHERE.sub(", ", body))
    text = OR.sub(", ", _AND.sub(", ", text))
    if whole := _TEXT.fullmatch(text):
        text = OR.sub(", ", _AND.sub(", ", whole[1]))
    if residues := _RESIDUES.fullmatch(text):
        name, values, modulus = residues.groups()
        text = ", ".join(f"{name}{value.strip()}{modulus}" for value in values.split(","))
    inside = inside_answer_list(text, "(", ")")
    if inside is not None:
        elements = [part.strip() for part in split_elements(inside)]
        if len(elements) == 1:
            return None
        both = _both_signs(text)  # `(\pm 1, 2)` is two pairs
        if len(both) == 1:
            return AnswerList("tuple", _as_written(elements))
        return AnswerList("list", _as_written(both))
    inside = inside_answer_list(text, r"\{", r"\}")
    if inside is None:  # braces without a backslash print nothing
        inside = inside_answer_list(text, "{", "}")
    if inside is None:
        named = _named(text)
        if named is not None:
            return named
        inside = text
    parts = [part.strip() for part in split_elements(inside)]
    if (
        len(parts) == 1
        and inside_answer_list(parts[0], "(", ")") is not None
        and inside is not text
    ):
        return read_answer_list(parts[0])  # the set of one pair
    elements = [value for part in parts if part for value in _both_signs(part)]
    distinct = _as_written(dict.fromkeys(elements))
    return AnswerList("list", distinct) if len(distinct) > 1 else None


def _as_written(elements: Sequence[str] | dict[str, None]) -> tuple[str, ...]:
    return tuple(element.replace("\0", "=") for element in elements)


def _named(text: str) -> AnswerList | None:
    """Coordinates or roots with a name each, and no name twice."""
    if point := _POINT.fullmatch(text):
        names, values = point[1].split(","), split_elements(point[2])
        if len(names) == len(values):
            text = ",".join(map("=".join, zip(names, values, strict=True)))
    found = [_COORDINATE.fullmatch(part.strip()) for part in split_elements(text)]
    values = {match[1].strip("\\"): match[2].strip() for match in found if match}
    if not len(values) == len(found) > 1:
        return None
    letters = {name.partition("_")[0] for name in values}
    numbered = len(letters) == 1 and all(_ROOT.fullmatch(name) for name in values)
    ordered = _as_written([values[name] for name in sorted(values)])
    return AnswerList("roots" if numbered else "point", ordered)


def _both_signs(element: str) -> list[str]:
    r"""Both values of an element with one `\pm`; the element alone without one."""
    if len(_PLUS_MINUS.findall(element)) != 1 or r"\pm" not in element:
        return [element]
    before, after = _PLUS_MINUS.sub("\x1f", element).split("\x1f")
    after = after.strip()
    plus = "" if before.strip()[-1:] in ("", "\0") else "+"
    return [before + plus + after, f"{before}-{after}"]


def inside_answer_list(text: str, opening: str, closing: str) -> str | None:
    """The text inside one pair of brackets around a whole text; None without such a pair."""
    tokens = tokenize_answer(text)
    if len(tokens) < 2 or (tokens[0], tokens[-1]) != (opening, closing):
        return None
    depth = 0
    for token in tokens[:-1]:
        depth += (token in OPENING) - (token in CLOSING)
        if depth == 0:
            return None
    return "".join(tokens[1:-1])


def split_elements(body: str) -> list[str]:
    """The elements of a list, at commas out of brackets; a zero stands for `=` out of brackets."""
    elements, depth, before, second = [""], 0, "", ""
    for token in tokenize_answer(body):
        depth += (token in OPENING) - (token in CLOSING)
        # `5!=120` has a factorial, `x!=5` a relation.
        is_relation = before in ("<", ">", ":") or (before == "!" and not second.isdigit())
        if token == "," and depth <= 0:
            elements.append("")
        else:
            elements[-1] += "\0" if token == "=" and depth <= 0 and not is_relation else token
        before, second = token, before
    return elements


def compare_answer_lists(
    gold: AnswerList, answer: AnswerList, compare: Callable[[str, str], Reason | None]
) -> Reason | None:
    """Compare element by element; None where `compare` leaves an element open."""
    kinds = {gold.kind, answer.kind}
    if kinds == {"list", "tuple"} or len(gold.elements) != len(answer.elements):
        return "wrong answer"
    if max(len(gold.elements), len(answer.elements)) > MOST_ELEMENTS:
        return "unreadable"
    has_order = gold.kind in ("tuple", "point") or kinds == {"roots", "tuple"}
    reasons: list[Reason | None] = []
    remaining = list(answer.elements)
    for place, element in enumerate(gold.elements):
        if has_order:
            candidates = [answer.elements[place]]
        else:  # most lists come in the order of the gold answer
            candidates = remaining[:1] + remaining[:0:-1]
        found: list[Reason | None] = []
        for candidate in candidates:
            found.append(compare(element, candidate))
            if found[-1] == "correct":
                remaining.remove(candidate)
                break
        else:
            undecided = [reason for reason in found if reason != "wrong answer"]
            if not undecided:
                return "wrong answer"
            reasons.append(None if None in undecided else "unreadable")
    if not reasons:
        return "correct"
    return None if None in reasons else "unreadable"
