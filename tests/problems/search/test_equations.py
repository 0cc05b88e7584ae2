"""Answers are looked for here among all x, by counted additions and not by the world's products."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

from geosd.problems.search.equations import (
    SEARCH,
    WIDE,
    EquationPair,
    draw_equations,
)

questions = st.builds(
    lambda kind, seed: draw_equations(kind, random.Random(seed)),
    st.sampled_from(SEARCH.benchmarks),
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
    assert EquationPair.parse(str(question)) == question


@pytest.mark.parametrize("benchmark", SEARCH.benchmarks, ids=lambda benchmark: benchmark.name)
def test_answers_and_ambiguity_are_as_frequent_as_the_benchmark_says(benchmark):
    rng = random.Random(1)
    drawn = [draw_equations(benchmark, rng) for _ in range(4000)]
    answers = Counter(question.answer() for question in drawn)
    middle = 1 - benchmark.low - benchmark.high
    exact = [benchmark.low / 6] * 6 + [middle / 6] * 6 + [benchmark.high / 4] * 4
    expected = [len(drawn) * share for share in exact]
    assert chisquare([answers[x] for x in range(16)], expected).pvalue > 1e-3
    several = sum(len(solutions(str(question))[0]) > 1 for question in drawn)
    # Four standard errors of a share among 4000 are below .032.
    assert abs(several / len(drawn) - benchmark.ambiguous) < 0.032


def counts(kind, draws=4000):
    rng = random.Random(3)
    answers = Counter(draw_equations(kind, rng).answer() for _ in range(draws))
    return [answers[x] for x in range(16)]


def test_without_conflict_the_id_answers_are_those_of_the_ood_benchmarks_together():
    pooled = np.sum([counts(kind, 1000) for kind in SEARCH.outside], axis=0)
    own = counts(SEARCH.in_distribution(0.0))
    assert chi2_contingency([own, pooled]).pvalue > 0.01
    assert chi2_contingency([counts(SEARCH.in_distribution(0.5)), pooled]).pvalue < 1e-6


@pytest.mark.parametrize("conflict", [0.25, 0.5, 0.75])
def test_between_its_ends_the_prior_is_their_mixture(conflict):
    opposed, ood, mixed = (
        np.array([kind.low, 1 - kind.low - kind.high, kind.high])
        for kind in map(SEARCH.in_distribution, (1.0, 0.0, conflict))
    )
    assert mixed == pytest.approx(conflict * opposed + (1 - conflict) * ood)
    assert opposed == pytest.approx([0.75, 0.15, 0.10])
    assert ood == pytest.approx([0.15, 0.50, 0.35])


@pytest.mark.parametrize("benchmark", WIDE.benchmarks, ids=lambda benchmark: benchmark.name)
def test_of_256_values_one_solves_both_equations_and_its_two_parts_have_their_priors(benchmark):
    rng, rests, bands = random.Random(2), Counter(), Counter()
    for _ in range(2000):
        question = draw_equations(benchmark, rng)
        line, other = str(question).split(" , / ")
        classes, rests_found = solutions(f"{line} , * {other}")
        ((one,), (rest,)) = classes, rests_found
        assert question.answer() == 16 * rest + one
        assert EquationPair.parse(str(question)) == question
        rests["usual" if not rest else "other" if rest < 3 else "rare"] += 1
        bands["low" if one < 6 else "high" if one >= 12 else "middle"] += 1
    other, rare, low, high = benchmark.ambiguous, benchmark.rare, benchmark.low, benchmark.high
    for found, shares in (
        (rests, {"usual": 1 - other - rare, "other": other, "rare": rare}),
        (bands, {"low": low, "middle": 1 - low - high, "high": high}),
    ):
        expected = [2000 * share for share in shares.values()]
        assert chisquare([found[name] for name in shares], expected).pvalue > 1e-3
