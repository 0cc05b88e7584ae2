"""The optimum of each loss beside closed forms, its objective's gradient, and docs/search.md."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from geosd.geometry import forward_kl, hellinger, jsd, reverse_kl, skew_kl
from geosd.problems.search.corpora import CorpusPolicy, SearchCorpus, draw_corpus_solution
from geosd.problems.search.equations import SEARCH, draw_equations

TEACHER = SearchCorpus()
DIVERGENCES = {
    "FwdKL": forward_kl,
    "RevKL": reverse_kl,
    "JSD": lambda p, q: jsd(p, q, 0.5),
    "SkewKL": lambda p, q: skew_kl(p, q, 0.1, "forward"),
    "GeoSD (Hellinger)": hellinger,
}
POSTERIOR = np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]])
HIT, MISS = np.array([[0.9], [0.95]]), np.array([[0.05], [0.05]])
# The teacher's distribution for each x, of three values and, where one was tried, of two.
TEACHERS = [np.full((3, 3), 0.05) + 0.85 * np.eye(3), np.array([[0.95, 0.05], [0.05, 0.95]])]


@pytest.fixture(scope="module")
def program(analysis):
    return analysis("search_optima")


def minima(program, name):
    return program.minimiser(program.LOSSES[name], POSTERIOR, HIT, MISS)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("FwdKL", lambda weights, q: weights @ q),
        ("RevKL", lambda weights, q: np.exp(weights @ np.log(q))),
        ("GeoSD (Hellinger)", lambda weights, q: (weights @ np.sqrt(q)) ** 2),
    ],
)
def test_three_optima_have_closed_forms(program, name, form):
    """Arithmetic and geometric mean of the teacher's distributions, and the mean of their roots."""
    for found, weights, teachers in zip(minima(program, name), POSTERIOR, TEACHERS, strict=True):
        expected = form(weights[: len(teachers)], teachers)
        assert found[: len(teachers)] == pytest.approx(expected / expected.sum(), rel=1e-6)
        assert not found[len(teachers) :].any()


def test_two_values_by_hand(program):
    """p against q = (.95, .05) nine times in ten, (.05, .95) else: FwdKL wants .86 and .14."""
    assert minima(program, "FwdKL")[1, :2] == pytest.approx([0.86, 0.14])


@pytest.mark.parametrize("name", DIVERGENCES)
def test_an_optimum_is_where_the_gradient_of_the_implemented_divergence_is_0(program, name):
    for found, weights, teachers in zip(minima(program, name), POSTERIOR, TEACHERS, strict=True):
        z = torch.tensor(np.log(found[: len(teachers)]), requires_grad=True)
        weights = torch.tensor(weights[: len(teachers)])
        q = torch.tensor(np.log(teachers))
        (weights * DIVERGENCES[name](z.log_softmax(-1).expand_as(q), q)).sum().backward()
        assert z.grad.abs().max() < 1e-7


def test_the_posterior_at_a_state_is_that_of_drawn_solutions(program):
    """Of solutions that tried 5, then 1, and went on: which x they look for."""
    kind = replace(SEARCH.in_distribution(), ambiguous=0.8)
    blind = CorpusPolicy(
        (0.01, 1.0, 0.01, 0.01, 0.01, 9.0) + (0.1,) * 10, check=TEACHER.guided_check, repeat=0
    )
    rng, found = random.Random(0), Counter()
    while found.total() < 2000:
        question = draw_equations(kind, rng)
        trials = draw_corpus_solution(question, blind, rng).split(" ; ")
        firsts = [int(trial.split()[0]) for trial in trials]
        if firsts[:2] == [5, 1] and len(firsts) > 2:
            found[question.answer()] += 1
    chances = program.posterior(kind)[1 << 5 | 1 << 1]
    assert not chances[[1, 5]].any()
    values = [x for x in range(16) if x not in (1, 5)]
    expected = 2000 * chances[values]
    assert chisquare([found[x] for x in values], expected).pvalue > 1e-3


def test_the_ratio_of_gradients_is_that_of_drawn_problems(program):
    """Autograd's gradient of the implemented FwdKL, over the first choices of drawn problems."""
    rng, kind = random.Random(0), SEARCH.in_distribution(0.5)
    p = torch.tensor(np.log(program.start().next_SX[0]), requires_grad=True)
    answers = torch.tensor([draw_equations(kind, rng).answer() for _ in range(4000)])
    q = torch.full((len(answers), 16), TEACHER.stray / 15).double()
    q[torch.arange(len(answers)), answers] = 1 - TEACHER.stray
    forward_kl(p.log_softmax(-1).expand_as(q), q.log()).mean().backward()
    repeat = torch.tensor([0.3, 0.7]).double().log().requires_grad_()
    forward_kl(repeat.log_softmax(-1), torch.tensor([0.05, 0.95]).double().log()).backward()
    ratio = float(p.grad.norm() / repeat.grad.norm())
    assert program.gradient_ratio(program.LOSSES["FwdKL"], kind) == pytest.approx(ratio, rel=0.1)


def documented(root, title):
    """Loss -> cells of a table of docs/search.md, which stands behind its title."""
    text = (root / "docs/search.md").read_text(encoding="utf-8")
    lines = text.partition(f"{title}:\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: cells for name, *cells in rows}


def test_the_documented_ratios_are_the_programs(root, program):
    rows = documented(root, program.TITLES[2])
    assert list(rows) == list(program.LOSSES)
    for name, loss in program.LOSSES.items():
        ratios = [program.gradient_ratio(loss, SEARCH.in_distribution(c)) for c in program.SETTINGS]
        assert rows[name] == [f"{ratio:.2f}" for ratio in ratios]


@pytest.mark.slow
def test_a_documented_optimum_is_the_programs(root, program):
    name, setting = "FwdKL", 1.0
    best = program.optimum(program.LOSSES[name], SEARCH.in_distribution(setting))
    found = [program.gains(best, setting), program.first_choice(best)]
    column = program.SETTINGS.index(setting)
    tables = [documented(root, title)[name][column] for title in program.TITLES[:2]]
    assert found == [cell.replace("−", "-") for cell in tables]
