"""Exact chances of what a policy reaches, beside draws of `search` and closed forms."""

import random
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from geosd.problems.search.corpora import CorpusPolicy, draw_corpus_solution
from geosd.problems.search.equations import SEARCH, EquationBenchmark, EquationPair, draw_equations

QUESTION = EquationPair((4, 1, 13), (3, 0, 9))  # x is 3; 3, 7, 11 and 15 solve the first equation
ODD_ONLY = EquationBenchmark("odd", ambiguous=0.0, low=0.375, high=0.25)
AMBIGUOUS = EquationBenchmark("all", ambiguous=1.0, low=0.375, high=0.25)
UNIFORM = CorpusPolicy((1.0,) * 16, check=0.0, repeat=0.0)
UNEQUAL = CorpusPolicy(tuple(float(x + 1) for x in range(16)), check=0.3, repeat=0.2)


@pytest.fixture(scope="module")
def program(analysis):
    return analysis("search_policies")


def one(program, policy, benchmark, cap, sampled=False, **more):
    tabled = program.TabledPolicy.of(policy)
    tabled = tabled.sampled() if sampled else tabled
    return program.reached(tabled, [benchmark], cap, **more)[0]


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 9, 16])
def test_uniform_search_without_replacement_reaches_n_sixteenths(program, trials):
    # n - 1 trials of four tokens fail; the last one, its answer and the end take seven.
    reached = one(program, UNIFORM, ODD_ONLY, 4 * (trials - 1) + 7, k=1)
    assert reached.accuracy == pytest.approx(trials / 16)
    assert reached.pass_at_k == pytest.approx(trials / 16)
    assert reached.truncated == pytest.approx(1 - trials / 16)


@pytest.mark.slow
def test_a_search_that_checks_is_never_wrong_and_one_that_does_not_takes_the_first_that_passes(
    program,
):
    checks = CorpusPolicy((1.0,) * 16, check=1.0, repeat=0.0)
    reached = one(program, checks, SEARCH.benchmarks[1], 200)
    assert (reached.accuracy, reached.false_consensus) == (pytest.approx(1), 0)
    # Two (four) values solve an equation whose factor is even (a multiple of four), each first
    # with the same probability: the factors are 2, 4, 6, 10, 12, 14.
    reached = one(program, UNIFORM, AMBIGUOUS, 200)
    assert reached.accuracy == pytest.approx((4 / 2 + 2 / 4) / 6)


def test_consensus_is_false_where_three_quarters_agree_on_a_wrong_answer(program):
    always_fifteen_first = CorpusPolicy((1e-12,) * 15 + (1.0,), check=0.0, repeat=0.0)
    low = EquationBenchmark("low", ambiguous=1.0, low=1.0, high=0.0)
    # 15 solves the first equation where x is 3 and the factor 4 or 12. Elsewhere it fails, and two
    # or four solutions are as likely: of eight samples six agree on a wrong one.
    two, four = binom.sf(5, 8, 1 / 2), 3 * binom.sf(5, 8, 1 / 4)
    expected = 4 / 6 * two + 2 / 6 * (1 / 6 + 5 / 6 * four)
    reached = one(program, always_fifteen_first, low, 200, k=8)
    assert reached.false_consensus == pytest.approx(expected)


def test_chances_are_those_of_drawn_solutions(program):
    """Of an ambiguous question under a cap, with checks and repeats: every answer and the cut."""
    cap, draws, rng = 30, 4000, random.Random(0)
    tabled = program.TabledPolicy.of(UNEQUAL)
    chances = program.answer_chances(tabled, tabled.reach(), 3, (7, 11, 15), cap)
    solutions = [draw_corpus_solution(QUESTION, UNEQUAL, rng).split() for _ in range(draws)]
    counts = Counter(int(s[-1]) if len(s) + 1 <= cap else None for s in solutions)
    observed = [counts[value] for value in (3, 7, 11, 15, None)]
    expected = draws * np.array([*chances, 1 - chances.sum()])
    assert sum(observed) == draws and chisquare(observed, expected).pvalue > 1e-3


def test_kinds_of_questions_are_those_that_are_drawn(program):
    rng, found = random.Random(1), Counter()
    for _ in range(4000):
        question = draw_equations(SEARCH.benchmarks[3], rng)
        x = question.answer()
        found[x, tuple((v - x) % 16 for v in range(16) if question.holds(v, 0) and v != x)] += 1
    found = Counter({(x, tuple(sorted(steps))): n for (x, steps), n in found.items()})
    expected = {
        (x, steps): 4000 * share * prior
        for x, prior in enumerate(program.value_prior(SEARCH.benchmarks[3]))
        for share, steps in program.patterns(SEARCH.benchmarks[3])
    }
    assert set(found) <= set(expected)
    assert chisquare([found[k] for k in expected], list(expected.values())).pvalue > 1e-3


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (0.6, 0.95), (1, 0.7)])
def test_temperature_and_nucleus_cut_each_choice(program, temperature, top_p):
    sampled = program.TabledPolicy.of(UNEQUAL).sampled(temperature, top_p)
    for tried in (0, 1 << 14):
        left = [x for x in range(16) if not tried >> x & 1]
        powered = {x: UNEQUAL.weights[x] ** (1 / temperature) for x in left}
        mass, kept = 0.0, {}
        for x in sorted(powered, key=powered.get, reverse=True):
            if mass >= top_p * sum(powered.values()):
                break
            kept[x] = powered[x]
            mass += powered[x]
        expected = [kept.get(x, 0) / mass for x in range(16)]
        assert sampled.next_SX[tried] == pytest.approx(expected)


def test_of_equal_values_at_the_nucleus_each_is_kept_as_often(program):
    kept = program.nucleus(np.array([[0.4, 0.2, 0.2, 0.2]]), 0.5)
    assert kept[0] == pytest.approx([2 / 3, 1 / 9, 1 / 9, 1 / 9])
    policy = program.TabledPolicy.of(CorpusPolicy((1.0,) * 16, check=0.97, repeat=0.02)).sampled()
    assert (policy.check, policy.repeat) == (1.0, 0.0)


@pytest.mark.slow
def test_there_is_room_both_ways(program):
    """Some policy gains ID and loses OOD, another gains both, each by five points or more."""
    reached = {}
    for name in ("pi_0", "ID habit", "concise, always checks"):
        policy = program.TabledPolicy.of(program.IDEAL_POLICIES[name]).sampled()
        inside, *outside = program.reached(policy, SEARCH.benchmarks)
        reached[name] = inside.accuracy, program.mean(outside)
    at_id, ood = reached["pi_0"]
    habit, checks = reached["ID habit"], reached["concise, always checks"]
    assert habit[0] >= at_id + 0.05 and habit[1] <= ood - 0.05
    assert checks[0] >= at_id + 0.05 and checks[1] >= ood + 0.05
