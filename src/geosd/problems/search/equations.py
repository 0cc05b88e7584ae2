"""The search world: pairs of equations in one unknown modulo 16, and the benchmarks drawn from it.

A question `* 6 + 3 = 5 , * 7 + 1 = 2` has the answer x with 6 x + 3 = 5 and 7 x + 1 = 2 modulo 16.
The second factor is odd, so the second equation has one solution. The first may have several, and
then only the second decides. docs/search.md says why it is so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import fmean

MODULUS = 16
ODD = tuple(range(1, MODULUS, 2))
EVEN = (2, 4, 6, 10, 12, 14)
"""Even factors whose equation has two or four solutions."""


@dataclass(frozen=True)
class Benchmark:
    """A kind of question; `name` is that of problem files, tables and figures.

    Attributes:
        ambiguous: Probability that the first equation has several solutions.
        low: Probability that x lies below 6.
        high: Probability that x lies at 12 or above; the rest falls on 6 to 11.
    """

    name: str
    ambiguous: float
    low: float
    high: float


def bands(low: float, middle: float, high: float) -> list[float]:
    """One weight for each x: for 0 to 5, for 6 to 11, for 12 to 15."""
    return [low] * 6 + [middle] * 6 + [high] * 4


@dataclass(frozen=True)
class Question:
    """a x + b = c and e x + f = g, all modulo 16; e is odd."""

    first: tuple[int, int, int]
    second: tuple[int, int, int]

    def __str__(self) -> str:
        """As the prompt words it."""
        return " , ".join("* {} + {} = {}".format(*line) for line in (self.first, self.second))

    @classmethod
    def parse(cls, text: str) -> Question:
        """Read a question as `str` writes it."""
        a, b, c, e, f, g = (int(word) for word in text.split() if word.isdigit())
        return cls((a, b, c), (e, f, g))

    def answer(self) -> int:
        """The x that solves both equations."""
        (x,) = (x for x in range(MODULUS) if self.holds(x, 0) and self.holds(x, 1))
        return x

    def holds(self, x: int, equation: int) -> bool:
        """Whether x solves the first (0) or the second (1) equation."""
        return self.product_and_side(x, equation)[1] == (self.first, self.second)[equation][2]

    def product_and_side(self, x: int, equation: int) -> tuple[int, int]:
        """The product and the left side of an equation at x, modulo 16."""
        factor, summand, _ = (self.first, self.second)[equation]
        product = factor * x % MODULUS
        return product, (product + summand) % MODULUS


OUT_OF_DISTRIBUTION = (
    Benchmark("ambiguous", ambiguous=0.80, low=0.20, high=0.25),
    Benchmark("large", ambiguous=0.15, low=0.10, high=0.45),
    Benchmark("mixed", ambiguous=0.50, low=0.20, high=0.25),
    Benchmark("both", ambiguous=0.80, low=0.10, high=0.45),
)


def in_distribution(conflict: float = 1.0) -> Benchmark:
    """The ID problems, whose x has a prior of its own.

    Args:
        conflict: In [0, 1]. At 0 the prior is the mean of the OOD benchmarks' priors, at 1 it is
            opposed to them: three x in four lie below 6. Between them it is their mixture.
    """
    transfer = 1 - conflict
    low = fmean(benchmark.low for benchmark in OUT_OF_DISTRIBUTION)
    high = fmean(benchmark.high for benchmark in OUT_OF_DISTRIBUTION)
    return Benchmark(
        "id",
        ambiguous=0.15,
        low=conflict * 0.75 + transfer * low,
        high=conflict * 0.10 + transfer * high,
    )


BENCHMARKS = (in_distribution(), *OUT_OF_DISTRIBUTION)
"""Kinds of questions that the base models' documents mix."""


def draw_question(benchmark: Benchmark, rng: random.Random) -> Question:
    """A question of a benchmark; x is drawn first, then equations that x solves."""
    low, high = benchmark.low, benchmark.high
    (x,) = rng.choices(range(MODULUS), bands(low / 6, (1 - low - high) / 6, high / 4))
    a = rng.choice(EVEN if rng.random() < benchmark.ambiguous else ODD)
    b, e, f = rng.randrange(MODULUS), rng.choice(ODD), rng.randrange(MODULUS)
    return Question((a, b, (a * x + b) % MODULUS), (e, f, (e * x + f) % MODULUS))
