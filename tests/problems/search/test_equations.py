"""Answers are looked for here among all x, by counted additions and not by the world's products."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from geosd.problems.search.equations import BENCHMARKS, Question, draw_question

questions = st.builds(
    lambda kind, seed: draw_question(kind, random.Random(seed)),
    st.sampled_from(BENCHMARKS),
    st.integers(0, 2**32),
)


def added(factor, x, summand):
    """The left side of an equation, by additions around a ring of sixteen."""
    at = 0
    for step in [factor] * x + [summand]:
        at = at + step if at + step < 16 else at + step - 16
    return at


def solutions(text):
    """All x that solve each equation of a question's text, apart."""
    both = []
    for equation in text.split(" , "):
        _, factor, _, summand, _, right = equation.split()
        both.append({x for x in range(16) if added(int(factor), x, int(summand)) == int(right)})
    return both


@given(questions)
def test_the_answer_is_the_only_x_of_sixteen_that_solves_both_equations(question):
    first, second = solutions(str(question))
    assert first & second == {question.answer()}
    assert len(second) == 1


@given(questions)
def test_even_factors_and_no_others_leave_several_solutions(question):
    first, _ = solutions(str(question))
    assert len(first) == (1 if question.first[0] % 2 else 4 if question.first[0] % 4 == 0 else 2)


@given(questions)
def test_a_question_is_read_as_it_is_written(question):
    assert Question.parse(str(question)) == question


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_answers_and_ambiguity_are_as_frequent_as_the_benchmark_says(benchmark):
    rng = random.Random(1)
    drawn = [draw_question(benchmark, rng) for _ in range(4000)]
    answers = Counter(question.answer() for question in drawn)
    middle = 1 - benchmark.low - benchmark.high
    exact = [benchmark.low / 6] * 6 + [middle / 6] * 6 + [benchmark.high / 4] * 4
    expected = [len(drawn) * share for share in exact]
    assert chisquare([answers[x] for x in range(16)], expected).pvalue > 1e-3
    several = sum(len(solutions(str(question))[0]) > 1 for question in drawn)
    # Four standard errors of a share among 4000 are below .032.
    assert abs(several / len(drawn) - benchmark.ambiguous) < 0.032
