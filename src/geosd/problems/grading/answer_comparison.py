r"""Compare an answer with the gold answer: as integers, words, exact numbers, then as formulas."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from geosd.problems.grading.answer_normalization import (
    NormalizedAnswer,
    as_words,
    normalize_answer,
    units_agree,
)
from geosd.problems.grading.exact_numbers import is_integer, read_number
from geosd.problems.grading.formula_vocabulary import is_formula
from geosd.problems.records import Reason

GraderMode = Literal["auto", "integer", "symbolic"]
# A blank that separates no numbers says nothing in a formula.
_SILENT_BLANK = re.compile(r"(?<![0-9.]) | (?![0-9.])")
# Golds repeat for every sample of a problem, and answers do.
_normalize = lru_cache(maxsize=4096)(normalize_answer)


def compare_exactly(gold: str, answer: str) -> Reason | None:
    """Compare an answer with the gold answer without any library.

    Every integer gold is decided here, in time linear in the length of both but for the numbers
    themselves, which `read_number` limits.

    Returns:
        The reason of the verdict; None where only formulas can decide.
    """
    integer = is_integer(gold)
    if integer and is_integer(answer):
        return "correct" if int(gold) == int(answer) else "wrong answer"
    gold_form, answer_form = _normalize(gold), _normalize(answer)
    reason = _compare_units(gold_form, answer_form)
    if reason is not None:
        return reason
    right, read = read_number(gold_form.body), read_number(answer_form.body)
    if right is not None and read is not None:
        if right == read:
            return "correct"
        # A decimal is rounded, and math-verify compares so many places.
        is_rounded = "." in gold_form.body or "." in answer_form.body
        if integer or not is_rounded:
            return "wrong answer"
    if integer:
        return None
    if _without_blanks(gold_form.body) == _without_blanks(answer_form.body):
        return "correct"
    word = as_words(gold_form.body)
    if word is not None:
        return "correct" if _same_word(word, as_words(answer_form.body)) else "wrong answer"
    return None


def compare(gold: str, answer: str) -> Reason:
    """Compare an answer with the gold answer; formulas by math-verify. For a worker process.

    Raises:
        ImportError: Only formulas can decide, and math-verify is not installed.
    """
    reason = compare_exactly(gold, answer)
    if reason is not None:
        return reason
    gold_body, answer_body = _normalize(gold).body, _normalize(answer).body
    if not is_formula(answer_body, gold_body):
        return "unreadable"
    from geosd.problems.grading import symbolic_comparison

    outcome = symbolic_comparison.compare(gold_body, answer_body)
    return {"equal": "correct", "different": "wrong answer", "unreadable": "unreadable"}[outcome]


def _compare_units(gold: NormalizedAnswer, answer: NormalizedAnswer) -> Reason | None:
    agree = units_agree(gold.unit, answer.unit)
    if agree is None:
        return "unreadable"
    # One half is not 0.5 percent.
    is_fraction = r"\frac" in gold.body or "/" in gold.body
    adds_percent = answer.unit.name == "percent" and not gold.unit.name and is_fraction
    return None if agree and not adds_percent else "wrong answer"


def _without_blanks(body: str) -> str:
    return _SILENT_BLANK.sub("", body)


def _same_word(gold: str, answer: str | None) -> bool:
    """Words compare without case; single letters, which may be variables, with it."""
    if answer is None:
        return False
    if len(gold) == 1 or len(answer) == 1:
        return gold == answer
    return gold.lower() == answer.lower()
