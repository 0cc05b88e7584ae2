r"""Hostile responses and wrong answers, drawn from seeds: none hangs, none is accepted."""

import math
import os
import random
import time

import pytest

from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.typed_grader import (
    LONGEST_RESPONSE,
    TypedGrader,
    grade_typed_answer,
    grade_typed_response,
)

# Pieces that rules of the grader look for, and what repeats between them.
PIECES = (
    " ", "\n", "\t", "1", "1 ", "1,", "1,000,", "12", ".", "-", "= - ", "x", "=", "{", "}", "(",
    "$", "$$", "\\", "\\\\", r"\(", r"\[", r"\,", r"\!", r"\text{ x }", r"\text{", r"\text",
    r"\boxed{", r"\boxed{1}", r"\boxed ", r"\boxed{1} and ", r"\frac", r"\frac12", r"\frac{",
    r"\sqrt", "^", "_", "^{", r"^\circ", r"\%", "%", "**", "* ", "# ", "the ", "final ", "answer",
    "Answer ", "answer: ", "answer is ", "answer to ", "Answer: The answer is ", "A: ", "and ",
    " or ", "I hope ", "cm ", "cm^2 ", "/", "th", "~", r"\phantom{", r"\begin{array}",
    r"\end{array}", "½", "²", "−", "１", "\u0301", "\u200b", "√ ", "–", "\ud800", "</think>",
    "<think>", "\0",
)  # fmt: skip
# Measured: at most 2.6 microseconds a character, see tests/hostile/README.md.
LONGEST_DRAWN = 50_000
RESPONSES, WRONG = (10_000, 1_000) if "GEOSD_ALL_DRAWS" in os.environ else (2_000, 400)
SECONDS_PER_CHARACTER, SECONDS_PER_ROW = 20e-6, 0.1


def seconds(function, *arguments, **options):
    """The processor time of a call in this thread, which other programs do not lengthen."""
    start = time.thread_time()
    function(*arguments, **options)
    return time.thread_time() - start


def hostile_response(draw):
    length = math.exp(draw.uniform(0, math.log(LONGEST_DRAWN)))
    cycle = draw.choices(PIECES, k=draw.randint(1, 4))
    body = "".join(cycle) * math.ceil(length / len("".join(cycle)))
    if draw.random() < 0.3:
        body = "".join(draw.choices(PIECES, k=draw.randint(1, 400)))
    elif draw.random() < 0.5:  # short enough to be compared
        body = body[:1990]
    frame = draw.choice(
        ["{}", r"\boxed{{{}}}", "Answer: {}", "Answer{}", "The answer is {}", "A{}", "the{}"]
        + [r"\boxed{}", r"\boxed{{1}}\text{}{{ and }}\boxed{{2}}", "answer to{}", r"\textbf{}"]
    )
    response = frame.format(body[: int(length) + 1])[: LONGEST_DRAWN - 1]
    # Blanks at the end are cut off before anything is read.
    return response + draw.choice(["", "y"])


@pytest.mark.slow
def test_hostile_responses_cost_time_in_proportion_to_their_length():
    draw = random.Random(0)
    for _ in range(RESPONSES):
        response = hostile_response(draw)
        spent = seconds(grade_typed_response, response, "12", None, guess=draw.random() < 0.3)
        assert spent < SECONDS_PER_ROW + SECONDS_PER_CHARACTER * len(response), response[:200]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "y"])
@pytest.mark.parametrize(
    ("start", "pattern"),
    [
        ("Answer", pattern)
        for pattern in ["answer to ", "Answer ", " ", "1 ", "1,000,", "\n", r"\boxed{", "$", "{"]
        + [r"\boxed{1} and ", "Answer: The answer is ", "= - ", r"\(", "* ", "A:\n"]
    ]
    + [(start, " ") for start in (r"\boxed", r"\boxed{1}\text", "the", "answer is", r"\text", "A:")]
    + [("A", "\n"), ("", "1" * 50), ("", "*"), ("answer is", ":"), (r"\boxed{1}", ", ")],
)
def test_the_time_of_a_character_does_not_grow_with_the_length(start, pattern, end):
    def response(length):
        return start + (pattern * (length // len(pattern) + 1))[: length - len(end)] + end

    def cost(length):
        return seconds(extract_answer, response(length), guess=True) / length

    # A hundred times the length is a hundred times the time of a character where the time is
    # quadratic. Ten, not one: a shared processor is several times slower from moment to moment.
    allowed = min(10 * cost(10_000) + 100e-9, SECONDS_PER_CHARACTER)
    tries = (cost(LONGEST_RESPONSE) for _ in range(2))  # the second where the first is too slow
    assert any(spent < allowed for spent in tries)


@pytest.mark.slow
def test_hostile_formulas_end_with_a_verdict_and_the_pool_lives_on():
    draw = random.Random(1)
    with TypedGrader(seconds=2) as pool:
        for _ in range(100):
            body = "".join(draw.choices(PIECES, k=draw.randint(1, 100)))
            assert not grade_typed_response(
                rf"\boxed{{{body}}}", r"\frac{7919}{7907}", pool
            ).correct
        assert grade_typed_response("A: x+1", "1+x", pool).correct


# Words that change a number which stands before them, and after them.
AFTER = (
    "hundred", "thousand", "million", "billion", "dozen", "percent of 50", "squared", "cubed", "k",
    "minus one", "plus one", "less one", "below zero", "below", "or so", "or more", "or less", "M",
    "factorial", "times two", "is wrong", "is not it", "too few", "degrees below zero", "mod 5",
    "out of 50", "halves", "tenths", "e1", "!", "'", "^2", "^{-1}", "_3", "_{7}", r"\ldots", "...",
    "/5", ":5", r"\cdot 5", r"\%\%", r"\text{ million}", r"\text{ (not this)}", r"\pm 1", "+1",
    r"\text{k}", r"\text{ or more}", r"\text{ or }", "i", "x", r"\pi", r"\circ 3",
)  # fmt: skip
BEFORE = (
    "not ", "minus ", "negative ", "at least ", "less than ", "more than ", "half of ", "twice ",
    "-", "0.", "1/", "10", "10 ", ">", "<", r"\ge ", r"\ne ", r"\neg ", r"\sqrt ", r"\text{not }",
    "2x=", "x>", "5=", r"\pm ", "a million and ", "5, ", "5 or ", r"\log ", "|x|<", "5-", "5^",
)  # fmt: skip
BETWEEN = (
    r"\text{ maybe }", r"\text{ or }", r"\text{ and }", r"\text{ is wrong, it is }", " or ", ", ",
    " and ", "; ", r"\ne ", "<", ">", "=", "_", "^", r"\cdot ", "+", "-", r"\pm ", ":", " vs ", "→",
    r"\to ", "€", r"\$", "~", r"\,", r"\;", r"\quad ", "  ", "\n", r"\text{ (not }", "'", "|", "&",
    r"\\", "\u200b", "⁄", "–", "·", "%", r"^\circ ", " cm ", r"\text{ cm }", " but not ", "{,}",
    "½",
)  # fmt: skip


def wrong_answer(draw, gold):
    """The gold answer with something that makes it another answer, or none at all."""
    other = draw.choice([number for number in range(2, 100) if str(number) != gold])
    word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(5, 9)))
    return draw.choice(
        [
            f"{gold} {draw.choice(AFTER)}",
            f"{gold}{draw.choice(AFTER)}" if draw.random() < 0.5 else f"{gold} {word}",
            f"{draw.choice(BEFORE)}{gold}",
            f"{gold}{draw.choice(BETWEEN)}{other}",
            f"{other}{draw.choice(BETWEEN)}{gold}",
            rf"{gold}\text{{ {word} }}{other}",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("grader", ["auto", "symbolic"])
def test_wrong_answers_are_not_accepted(grader):
    draw = random.Random(2)
    accepted = []
    with TypedGrader(seconds=20) as pool:
        for _ in range(WRONG):
            gold = draw.choice(["12", "7", "-3", "144", r"\frac{1}{2}", r"\frac{13}{5}", "2.75"])
            answer = wrong_answer(draw, gold)
            if grade_typed_answer(answer, gold, pool, grader=grader).correct:
                accepted.append((gold, answer))
    assert accepted == []
