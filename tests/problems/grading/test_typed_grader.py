import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.grading.typed_grader import (
    LONGEST_ANSWER,
    grade_typed_answer,
    grade_typed_response,
)


class Untouchable:
    """A pool that fails the test when it is used: integers need no symbolic comparison."""

    def compare(self, gold, answer):
        raise AssertionError(f"compares {gold} with {answer}")


@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20))
def test_an_integer_gold_is_compared_exactly_and_without_a_pool(gold, answer):
    verdict = grade_typed_response(rf"so \boxed{{{answer}}}", str(gold), Untouchable())
    assert verdict.correct == (gold == answer)
    assert verdict.reason == ("correct" if gold == answer else "wrong answer")


@pytest.mark.parametrize(
    "answer",
    ["12", "012", "+12", "12.0", "24/2", r"\frac{24}{2}", "$12$", r"12\%", r"12^\circ", "12 cm"]
    + [r"\$12", "x = 12", "3 \\cdot 4 = 12", r"12\text{ units}", "**12**", "12."],
)
def test_an_integer_counts_however_it_is_presented(answer):
    assert grade_typed_answer(answer, "12", Untouchable()).correct


@pytest.mark.parametrize("answer", ["1200", "0.12", "-12", "12, 13", "12.0000001", "112", "12/24"])
def test_no_tolerance_makes_another_number_the_gold(answer):
    assert not grade_typed_answer(answer, "12", Untouchable()).correct


@pytest.mark.parametrize(
    "answer",
    ["12 million", "12 minus one", "12 below zero", r"12\text{ maybe } 13", r"12\text{ (not 13)}"]
    + ["12_13", "13=12", "2x = 12", "12k", "12 M", "12 or 13", "12...", "12!", "12e3", "not 12"],
)
@pytest.mark.parametrize("grader", ["auto", "symbolic"])
def test_what_changes_a_number_is_no_unit(pool, answer, grader):
    assert not grade_typed_answer(answer, "12", pool, grader=grader).correct


@pytest.mark.parametrize(
    "answer", [r"\frac12\text{ is wrong, it is }\frac13", r"\frac12\text{ million}", "1/2 dozen"]
)
def test_what_changes_a_fraction_is_no_unit(pool, answer):
    assert not grade_typed_answer(answer, "1/2", pool).correct


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("Answer" + " " * 33_000, "12"),
        ("Answer" + " " * 50_000 + "y", "12"),
        (rf"\boxed{{{'1 ' * 700}}}", "12"),
        (rf"\boxed{{1{' ' * 400}\text{{{' ' * 400}x}}}}", "12"),
        (rf"\boxed{{{'9' * 1990}}}", "12"),
        (r"\boxed{12}", "9" * 1_000_000),
        ("9" * 10_000_000, "12"),
    ],
)
def test_no_response_to_an_integer_problem_is_slow(response, gold):
    start = time.thread_time()
    assert not grade_typed_response(response, gold, Untouchable()).correct
    assert time.thread_time() - start < 0.5


def test_a_lone_surrogate_is_an_answer_like_another(pool):
    assert grade_typed_response("A: \ud800", "12", Untouchable()).reason == "unreadable"
    assert not grade_typed_response("A: \ud800", r"\frac{1}{2}", pool).correct


def test_golds_beyond_floating_point_are_not_rounded():
    assert not grade_typed_answer("105263157894736842", "105263157894736848", Untouchable()).correct


def test_arithmetic_for_an_integer_is_computed_and_a_formula_is_the_symbolic_graders(pool):
    assert grade_typed_answer("2^{10}", "1024", Untouchable()).correct
    assert grade_typed_answer(r"2\sin(\pi/2)", "2", Untouchable()).reason == "unreadable"
    assert grade_typed_answer(r"2\sin(\pi/2)", "2", pool, grader="symbolic").correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{1}{2}", "0.5"),
        (r"\frac{1}{3}", "0.333333"),
        (r"x^2+2x+1", "(x+1)^2"),
        ("-13x+3", "3-13x"),
        (r"\frac{20000}{\pi}", r"\frac{20,000}{\pi}"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \pi/2)"),
        ("-2,1", "1, -2"),
        (r"\{1\pm\sqrt{5},-2\}", r"\{-2, 1+\sqrt{5}, 1-\sqrt{5}\}"),
        (r"x \in [-2,7]", "[-2, 7]"),
        (r"x \in [-2,7]", r"-2 \le x \le 7"),
        (r"(3,\infty)", "x > 3"),
        ("x > 3", r"(3,\infty)"),
        (r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}", r"\begin{pmatrix}0.2\\-3.6\end{pmatrix}"),
        (r"\frac{\sqrt{3}}{2}", r"\sin(60^\circ)"),
        (r"\text{Evelyn}", "evelyn"),
        (r"\text{(C)}", "C"),
        (r"15\mbox{ cm}^2", "15"),
        ("2516_8", "2516"),
        ("y = 2x + 3", "2x+3"),
        ("2x+4y-3=0", r"y=-\frac{1}{2}x+\frac{3}{4}"),
    ],
)
def test_the_same_mathematics_is_correct(pool, gold, answer):
    assert grade_typed_answer(answer, gold, pool).reason == "correct"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac{1}{2}", "50"),
        (r"50\%", "0.5"),
        (r"12\text{ cm}", r"12\text{ m}"),
        ("(2,1)", "(1,2)"),
        ("(1,2)", r"\{1,2\}"),
        (r"\{1,2\}", "(1,2)"),
        (r"\{1,2,3\}", r"\{1,2\}"),
        ("1,2,3", "1,2"),
        (r"(-\infty,0]", r"(-\infty,0)"),
        ("326.5", "326.53"),
        (r"\text{odd}", r"\text{oddd}"),
        ("p", "P"),
        (r"\sqrt{13}", "13"),
        ("7 = 11a+c", "11a+c"),
        ("5x - 7y + 11z + 4 = 0", "0"),
        (r"\frac{1}{3x}", r"\frac{1}{3}x"),
    ],
)
def test_other_mathematics_is_wrong(pool, gold, answer):
    assert grade_typed_answer(answer, gold, pool).reason == "wrong answer"


def test_two_boxes_for_one_number_are_a_list_and_wrong():
    assert not grade_typed_response(r"\boxed{7} or \boxed{8}", "7", Untouchable()).correct


def test_a_response_without_an_answer_and_an_endless_answer_say_so():
    assert grade_typed_response("I give up.", "7", Untouchable()).reason == "no answer"
    assert grade_typed_response(r"\boxed{ }", "7", Untouchable()).reason == "no answer"
    assert grade_typed_answer("x" * (LONGEST_ANSWER + 1), "7", Untouchable()).reason == "unreadable"


def test_text_that_is_python_is_not_run(pool, tmp_path):
    trace = tmp_path / "trace"
    for text in (f"open('{trace}', 'w')", f"__import__('os').system('touch {trace}')", "S('2')"):
        assert not grade_typed_answer(text, "x+1", pool).correct
    assert not trace.exists()
