"""How often tests of a method err if base models differ: runs, draws or a mixed model as the unit.

    python analysis/draws_of_the_base_model.py

A method's effect is measured on D draws of a base model with S seeds each:
effect_ds = mu + between_d + within_ds, normal, of standard deviations sd and 1. Each test is of
mu > 0, one-sided. Printed are how often a test calls mu = 0 significant, as a multiple of the
level, and how often it finds mu = 3. The second table has three families of models with three draws
each: mu is then the mean of these families, or of all families where they are drawn at random. The
third has the smallest effect that twelve runs of one model detect with power .8 if they are divided
into more or fewer draws. draws_of_the_base_model.md reads the tables.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats
from scipy.special import nctdtrinc

FAMILIES, DRAWS, SEEDS = 3, 3, 4
LEVELS = (0.05, 0.05 / 40)
"""Alone, and as one of forty rows."""
EFFECT = 3.0

Test = Callable[[np.ndarray], np.ndarray]
"""One-sided p of mu > 0 for each study, given effects of shape (studies, ..., draws, seeds)."""


def student(values: np.ndarray) -> np.ndarray:
    """Student's test on the last axis."""
    n = values.shape[-1]
    return stats.t.sf(values.mean(-1) / (values.std(-1, ddof=1) / np.sqrt(n)), n - 1)


def runs(effects: np.ndarray) -> np.ndarray:
    """Every run a value of its own."""
    return student(effects.reshape(len(effects), -1))


def draws(effects: np.ndarray) -> np.ndarray:
    """A value for each draw: the mean over its seeds."""
    return student(effects.mean(-1).reshape(len(effects), -1))


def _reml(effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared standard error of the mean by REML, with a draw as random, and where draws differ.

    Balanced data have a closed form: the mean square between draws over all runs, or, where it is
    below the mean square within, the mean square of all.
    """
    *_, d, s = effects.shape
    between = s * effects.mean(-1).var(-1, ddof=1)
    within = effects.var(-1, ddof=1).mean(-1)
    differ = between > within
    pooled = ((d - 1) * between + d * (s - 1) * within) / (d * s - 1)
    return np.where(differ, between, pooled) / (d * s), differ


def mixed_model(effects: np.ndarray) -> np.ndarray:
    """A mixed model with the draw as random: REML and Wald's normal test, as MixedLM has it."""
    squared, _ = _reml(effects)
    return stats.norm.sf(effects.mean((-2, -1)) / np.sqrt(squared))


def satterthwaite(effects: np.ndarray) -> np.ndarray:
    """The same with t: d - 1 degrees of freedom where draws differ, else those of all runs."""
    *_, d, s = effects.shape
    squared, differ = _reml(effects)
    df = np.where(differ, d - 1, d * s - 1)
    return stats.t.sf(effects.mean((-2, -1)) / np.sqrt(squared), df)


def families(effects: np.ndarray) -> np.ndarray:
    """A value for each family: the mean over its draws and seeds."""
    return student(effects.mean((-2, -1)))


def sum_of_families(effects: np.ndarray) -> np.ndarray:
    """Families as fixed: a sum of independent means over draws, with Satterthwaite's df."""
    means = effects.mean(-1)
    parts = means.var(-1, ddof=1) / means.shape[-1] / means.shape[-2] ** 2
    df = parts.sum(-1) ** 2 / (parts**2 / (means.shape[-1] - 1)).sum(-1)
    return stats.t.sf(means.mean((-2, -1)) / np.sqrt(parts.sum(-1)), df)


OF_ONE: Mapping[str, Test] = {
    "runs, t with 11": runs,
    "mixed model, Wald": mixed_model,
    "mixed model, Satterthwaite": satterthwaite,
    "means of draws, t with 2": draws,
}
OF_ALL: Mapping[str, Test] = {
    "runs, t with 35": runs,
    "sum of families, Satterthwaite": sum_of_families,
    "means of families, t with 2": families,
    "means of draws, t with 8": draws,
}


def error_and_power(
    test: Test, noise: np.ndarray, level: float, effect: float = EFFECT
) -> tuple[float, float]:
    """How often a test is significant without an effect, in units of the level, and with one."""
    return float((test(noise) < level).mean() / level), float((test(noise + effect) < level).mean())


def one_family(draw: np.random.Generator, studies: int, sd_between: float) -> np.ndarray:
    """Effects of shape (studies, draws, seeds) without an effect."""
    between = sd_between * draw.normal(size=(studies, DRAWS, 1))
    return between + draw.normal(size=(studies, DRAWS, SEEDS))


def several_families(
    draw: np.random.Generator,
    studies: int,
    families: float | tuple[float, ...],
    sd_between: tuple[float, ...],
) -> np.ndarray:
    """Effects of shape (studies, families, draws, seeds) whose mean over families is 0.

    `families` are the effects of these three families, or the deviation of families at random.
    """
    if isinstance(families, tuple):
        own = np.reshape(families, (FAMILIES, 1, 1))
    else:
        own = families * draw.normal(size=(studies, FAMILIES, 1, 1))
    between = draw.normal(size=(studies, FAMILIES, DRAWS, 1))
    noise = draw.normal(size=(studies, FAMILIES, DRAWS, SEEDS))
    return own + np.reshape(sd_between, (FAMILIES, 1, 1)) * between + noise


def _print(title: str, tests: Mapping[str, Test], worlds: Mapping[str, np.ndarray]) -> None:
    print(f"\n| {title} | {' | '.join(tests)} |\n|:--|{'--:|' * len(tests)}")
    for name, noise in worlds.items():
        for level in LEVELS:
            found = [error_and_power(test, noise, level) for test in tests.values()]
            cells = [f"{error:.1f}, {100 * power:.0f} %" for error, power in found]
            print(f"| {name}, level {level:.5g} | {' | '.join(cells)} |")


def detectable(sd_between: float, draws: int, runs: int, level: float) -> float:
    """Smallest effect that means of draws detect with power .8, the runs divided evenly."""
    squared = (sd_between**2 + draws / runs) / draws
    return math.sqrt(squared) * float(nctdtrinc(draws - 1, 0.2, stats.t.isf(level, draws - 1)))


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--studies", type=int, default=100_000)
    studies = parser.parse_args().studies
    draw = np.random.default_rng(0)
    of_one = {f"sd {sd:g}": one_family(draw, studies, sd) for sd in (0, 0.5, 1, 2)}
    _print("one family: between draws", OF_ONE, of_one)
    worlds: dict[str, tuple[float | tuple[float, ...], tuple[float, ...]]] = {
        "sd 1": ((0, 0, 0), (1, 1, 1)),
        "sd 0, 0 and 4": ((0, 0, 0), (0, 0, 4)),
        "sd 1, these families at -2, 0, +2": ((-2, 0, 2), (1, 1, 1)),
        "sd 1, families at random, sd 0.5": (0.5, (1, 1, 1)),
        "sd 1, families at random, sd 1.5": (1.5, (1, 1, 1)),
    }
    of_all = {name: several_families(draw, studies, *world) for name, world in worlds.items()}
    _print("three families: between draws", OF_ALL, of_all)
    divisions = (2, 3, 4, 6, 12)
    print("\n| twelve runs, one of twelve rows |", *(f"{d} draws |" for d in divisions))
    print("|:--|" + "--:|" * len(divisions))
    for sd in (0.0, 1.0, 2.0):
        cells = (f"{detectable(sd, d, 12, 0.05 / 12):.1f} |" for d in divisions)
        print(f"| between draws: sd {sd:g} |", *cells)


if __name__ == "__main__":
    main()
