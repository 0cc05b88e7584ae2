"""Frequencies of choices and simulated accuracies, beside exact probabilities and closed forms."""

import importlib.util
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import chisquare

from geosd.problems.search.equations import BENCHMARKS, Benchmark, Question
from geosd.problems.search.policies import Policy, search

PROGRAM = Path(__file__).parents[3] / "analysis/search_policies.py"
SPEC = importlib.util.spec_from_file_location("search_policies", PROGRAM)
program = sys.modules[SPEC.name] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(program)
simulate, sampled = program.simulate, program.sampled

ODD_ONLY = Benchmark("odd", ambiguous=0.0, low=0.375, high=0.25)
UNIFORM = Policy((1.0,) * 16, check=0.0, repeat=0.0)
UNEQUAL = Policy(tuple(float(x + 1) for x in range(16)), check=0.3, repeat=0.2)
QUESTION = Question((4, 1, 13), (3, 0, 9))  # x is 3; 3, 7, 11 and 15 solve the first equation


def exact(weights, temperature, top_p):
    """Probabilities after temperature and nucleus, for weights that differ."""
    powered = {x: w ** (1 / temperature) for x, w in weights.items()}
    total, mass, kept = sum(powered.values()), 0.0, {}
    for x in sorted(powered, key=powered.get, reverse=True):
        if mass >= top_p * total:
            break
        kept[x] = powered[x]
        mass += powered[x]
    return {x: w / mass for x, w in kept.items()}


def fits(counts, probabilities):
    """Whether counts are draws from exact probabilities, at one in a thousand."""
    total = sum(counts.values())
    assert set(counts) <= set(probabilities)
    expected = [total * probabilities[x] for x in probabilities]
    return chisquare([counts[x] for x in probabilities], expected).pvalue > 1e-3


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (0.6, 0.95), (1, 0.7)])
def test_the_first_two_values_are_drawn_with_their_exact_probabilities(temperature, top_p):
    policy = sampled(UNEQUAL, temperature, top_p)
    rng = random.Random(0)
    drawn = [search(QUESTION, policy, rng).replace("ok", ";").split(" ; ") for _ in range(8000)]
    weights = dict(enumerate(UNEQUAL.weights))
    assert fits(Counter(int(t[0].split()[0]) for t in drawn), exact(weights, temperature, top_p))
    # 14 is the likeliest value that fails: what is drawn behind it is one of the fifteen others.
    second = Counter(int(t[1].split()[0]) for t in drawn if t[0].split()[0] == "14")
    del weights[14]
    assert fits(second, exact(weights, temperature, top_p))


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 0.95)])
def test_checks_and_repeats_are_as_frequent_as_their_probabilities(temperature, top_p):
    policy, rng = sampled(UNEQUAL, temperature, top_p), random.Random(2)
    only = [search(QUESTION, policy, rng, set(range(16)) - {3}).split() for _ in range(5000)]
    for share, happened in (
        (0.2, [words[3:5] == words[1:3] for words in only]),
        (0.3, [words.count("ok") == 2 for words in only]),
    ):
        probability = exact({True: share, False: 1 - share}, temperature, top_p)
        assert fits(Counter(happened), probability)


def test_a_choice_that_the_nucleus_leaves_out_is_never_made():
    policy = sampled(Policy((1.0,) * 16, check=0.97, repeat=0.02), 0.6, 0.95)
    assert (policy.check, policy.repeat) == (1.0, 0.0)


@pytest.mark.parametrize("trials", [1, 4, 9, 16])
def test_uniform_search_without_replacement_reaches_n_sixteenths(trials):
    # n - 1 trials of four tokens fail; the last one, its answer and the end take seven.
    cap = 4 * (trials - 1) + 7
    reached = simulate(UNIFORM, ODD_ONLY, cap, problems=6000, samples=1, seed=3)
    # Four standard errors of a share among 6000 are at most .026.
    assert reached.accuracy == pytest.approx(trials / 16, abs=0.026)
    assert reached.accuracy + reached.truncated == pytest.approx(1.0)
    assert reached.accuracy == reached.pass_at_k


def test_a_search_that_checks_is_never_wrong_and_one_that_does_not_takes_the_first_that_passes():
    checks = Policy((1.0,) * 16, check=1.0, repeat=0.0)
    reached = simulate(checks, BENCHMARKS[1], cap=200, problems=200, samples=4, seed=0)
    assert (reached.accuracy, reached.false_consensus, reached.truncated) == (1.0, 0.0, 0.0)
    # Two (four) values solve an equation whose factor is even (a multiple of four), each first
    # with the same probability: the factors are 2, 4, 6, 10, 12, 14.
    ambiguous = Benchmark("all", ambiguous=1.0, low=0.375, high=0.25)
    reached = simulate(UNIFORM, ambiguous, cap=200, problems=6000, samples=1, seed=0)
    assert reached.accuracy == pytest.approx((4 / 2 + 2 / 4) / 6, abs=0.026)


@pytest.mark.slow
def test_consensus_is_false_where_three_quarters_agree_on_a_wrong_answer():
    always_fifteen_first = Policy((1e-9,) * 15 + (1.0,), check=0.0, repeat=0.0)
    large = Benchmark("all", ambiguous=1.0, low=1.0, high=0.0)
    reached = simulate(always_fifteen_first, large, cap=200, problems=3000, samples=8, seed=0)
    # 15 solves the first equation where x is 3 and the factor 4 or 12: a share of 1/6 * 2/6.
    # x = 7 or 11 is not below 6, and a factor with two solutions pairs 15 with 7.
    assert reached.false_consensus >= 1 / 18 - 0.017
    assert simulate(UNIFORM, ODD_ONLY, 200, 300, 8, 0).false_consensus == 0


@pytest.mark.slow
def test_there_is_room_both_ways():
    """Some policy gains ID and loses OOD, another gains both, each by five points or more."""
    reached = {}
    for name in ("pi_0", "ID habit", "concise, always checks"):
        policy = sampled(program.IDEAL_POLICIES[name], 0.6, 0.95)
        shares = [simulate(policy, kind, 52, 400, 8, 0).accuracy for kind in BENCHMARKS]
        reached[name] = shares[0], sum(shares[1:]) / 4
    at_id, ood = reached["pi_0"]
    habit, checks = reached["ID habit"], reached["concise, always checks"]
    assert habit[0] >= at_id + 0.05 and habit[1] <= ood - 0.05
    assert checks[0] >= at_id + 0.05 and checks[1] >= ood + 0.05
