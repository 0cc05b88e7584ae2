"""What the programs of the wide world reckon, beside drawn solutions and closed forms."""

import random
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from geosd.problems.search.corpora import WIDE_BLIND, draw_corpus_solution
from geosd.problems.search.equations import WIDE, EquationPair

QUESTION = EquationPair(
    (5, 3, 5), (7, 1, 8), 256
)  # x is 26: 10 of its class, and 1, which is other


@pytest.fixture(scope="module")
def policies(analysis):
    return analysis("wide_policies")


@pytest.fixture(scope="module")
def optima(analysis):
    return analysis("wide_optima")


@pytest.fixture
def losses(analysis):
    return analysis("search_optima").LOSSES


def test_chances_are_those_of_drawn_solutions(policies):
    cap, draws, rng = 60, 3000, random.Random(0)
    right, wrong_K, others_K = policies.answer_chances(policies.grouped(WIDE_BLIND), 1, 1, cap)
    solutions = [draw_corpus_solution(QUESTION, WIDE_BLIND, rng).split() for _ in range(draws)]
    assert QUESTION.answer() == 26

    def group(words):
        answer = int(words[-1])
        if len(words) + 1 > cap:
            return "cut"
        rest = answer // 16
        return "right" if answer == 26 else "usual" if not rest else "other" if rest < 3 else "rare"

    counts = Counter(map(group, solutions))
    wrong = dict(zip(("usual", "other", "rare"), others_K * wrong_K, strict=True))
    chances = {"right": right, **wrong, "cut": 1 - right - sum(wrong.values())}
    expected = [draws * chance for chance in chances.values()]
    assert chisquare([counts[name] for name in chances], expected).pvalue > 1e-3


def test_a_search_of_equal_weights_that_always_checks_finds_every_x_in_the_end(policies):
    policy = policies.GroupedPolicy.of(np.ones((3, 3)), check=1.0, repeat=0.0)
    found = policies.reached(policy, WIDE.benchmarks, cap=500)
    assert [each.accuracy for each in found] == pytest.approx([1.0] * 5)
    # Sixteen classes are as likely to be the first; its first value is x once in sixteen times.
    right, *_ = policies.answer_chances(policy, 0, 2, cap=10)
    assert right == pytest.approx(1 / 256)


def test_of_equal_values_at_the_nucleus_each_is_kept_as_often(policies):
    kept = policies.nucleus(np.array([0.4, 0.2]), np.array([1, 3]), 0.5)
    assert kept == pytest.approx([2 / 3, 1 / 9])


def test_forward_kl_wants_the_mean_of_the_teachers(policies, optima, losses):
    kind = WIDE.in_distribution(1.0)
    best = optima.optimum(losses["FwdKL"], kind)
    blind = policies.first_masses(policies.grouped(WIDE_BLIND))
    expected = 0.98 * policies.prior(kind) + 0.02 * blind
    assert policies.first_masses(best) == pytest.approx(expected, rel=1e-5)
    # After the usual value of a class failed, two others and thirteen rare ones are left.
    chance, start = (mass.sum(0) for mass in (policies.prior(kind), blind))
    expected = 0.98 * chance[1:] / chance[1:].sum() + 0.02 * start[1:]
    left = best.within[1, 0, 0][1:] * policies.KINDS_K[1:]
    assert left == pytest.approx(expected / expected.sum(), rel=1e-5)


def test_the_documented_ratios_are_the_programs(root, optima, losses):
    text = (root / "docs/wide.md").read_text(encoding="utf-8")
    lines = text.partition(f"{optima.TITLES[3]}:\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [name for name, *_ in rows] == list(losses)
    for name, *cells in rows:
        ratios = [
            optima.gradient_ratios(losses[name], WIDE.in_distribution(setting))
            for setting in optima.SETTINGS
        ]
        assert cells == [f"{first:.2f}, {check:.2f}" for first, check in ratios]


@pytest.mark.slow
def test_the_documented_policies_leave_room_both_ways(root, policies):
    text = (root / "docs/wide.md").read_text(encoding="utf-8")
    kinds = [WIDE.in_distribution(0.0), *WIDE.benchmarks]
    for name, policy in policies.ideal_policies().items():
        found = policies.reached(policy.sampled(), kinds)
        cells = " | ".join(f"{100 * each.accuracy:.1f}" for each in found)
        assert f"| {name} | {cells} |" in text
