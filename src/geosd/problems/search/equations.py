"""The search worlds: pairs of equations in one unknown modulo 16, and benchmarks drawn from them.

A question `* 6 + 3 = 5 , * 7 + 1 = 2` has the answer x with 6 x + 3 = 5 and 7 x + 1 = 2 modulo 16.
The second factor is odd, so the second equation has one solution. The first may have several, and
then only the second decides. docs/search.md says why it is so.

In the wide world x is one of 256 values, and `* 5 + 3 = 5 , / 7 + 1 = 2` has the second equation
7 (x div 16) + 1 = 2. The first one decides x mod 16 and no more. docs/wide.md says why.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

MODULUS = 16
ODD = tuple(range(1, MODULUS, 2))
EVEN = (2, 4, 6, 10, 12, 14)
"""Even factors whose equation has two or four solutions."""
COMMON = 3
"""In the wide world x div 16 is rarely as large; where x is usual, it is 0."""


@dataclass(frozen=True)
class EquationBenchmark:
    """A kind of question; `name` is that of problem files, tables and figures.

    Attributes:
        ambiguous: Probability that the first equation has several solutions. In the wide world,
            where it always has: that x div 16 is 1 or 2.
        low: Probability that x mod 16 lies below 6.
        high: Probability that x mod 16 lies at 12 or above; the rest falls on 6 to 11.
        rare: Probability that x div 16 is `COMMON` or more.
        values: Of x: 16, or 256 in the wide world.
    """

    name: str
    ambiguous: float
    low: float
    high: float
    rare: float = 0.0
    values: int = MODULUS


def equation_bands(low: float, middle: float, high: float) -> list[float]:
    """Weights of the x that equations are drawn with: for 0 to 5, for 6 to 11, for 12 to 15."""
    return [low] * 6 + [middle] * 6 + [high] * 4


@dataclass(frozen=True)
class EquationPair:
    """a x + b = c and e x + f = g, all modulo 16; e is odd.

    Of 256 `values` the second equation reads x div 16, and a is odd.
    """

    first: tuple[int, int, int]
    second: tuple[int, int, int]
    values: int = MODULUS

    def __str__(self) -> str:
        """As the prompt words it."""
        sign = "/" if self.values > MODULUS else "*"
        return "* {} + {} = {} , {} {} + {} = {}".format(*self.first, sign, *self.second)

    @classmethod
    def parse(cls, text: str) -> EquationPair:
        """Read a question as `str` writes it."""
        a, b, c, e, f, g = (int(word) for word in text.split() if word.isdigit())
        return cls((a, b, c), (e, f, g), MODULUS**2 if "/" in text else MODULUS)

    def answer(self) -> int:
        """The x that solves both equations."""
        classes, rests = (
            [x for x in range(MODULUS) if (factor * x + summand) % MODULUS == right]
            for factor, summand, right in (self.first, self.second)
        )
        return rests[0] if self.values == MODULUS else MODULUS * rests[0] + classes[0]

    def open_after(self, x: int, left: Sequence[int]) -> list[int]:
        """Those of some values that a search goes on with after x failed.

        In the wide world x stands for all values of its class modulo 16, unless it solves the first
        equation: then no other class does.
        """
        if self.values == MODULUS:
            return [value for value in left if value != x]
        if self.holds(x, 0):
            return [value for value in left if value % MODULUS == x % MODULUS and value != x]
        return [value for value in left if value % MODULUS != x % MODULUS]

    def holds(self, x: int, equation: int) -> bool:
        """Whether x solves the first (0) or the second (1) equation."""
        return self.product_and_side(x, equation)[1] == (self.first, self.second)[equation][2]

    def product_and_side(self, x: int, equation: int) -> tuple[int, int]:
        """The product and the left side of an equation at x, modulo 16."""
        factor, summand, _ = (self.first, self.second)[equation]
        read = x // MODULUS if equation and self.values > MODULUS else x
        product = factor * read % MODULUS
        return product, (product + summand) % MODULUS


@dataclass(frozen=True)
class EquationWorld:
    """A world of equations: its ID benchmark, and the OOD benchmarks, which are opposed to it.

    Example:
        >>> SEARCH.in_distribution(0.5).low
        0.45
    """

    opposed: EquationBenchmark
    outside: tuple[EquationBenchmark, ...]

    @property
    def benchmarks(self) -> tuple[EquationBenchmark, ...]:
        """Kinds of questions that the base models' documents mix."""
        return self.opposed, *self.outside

    def in_distribution(self, conflict: float = 1.0) -> EquationBenchmark:
        """The ID problems, whose x has a prior of its own.

        Args:
            conflict: In [0, 1]. At 0 the prior of x mod 16 is the mean of the OOD benchmarks', at 1
                it is opposed to them: three in four lie below 6. Between them it is their mixture.
        """
        transfer = 1 - conflict
        low, high = (fmean(getattr(b, band) for b in self.outside) for band in ("low", "high"))
        return replace(
            self.opposed,
            low=conflict * self.opposed.low + transfer * low,
            high=conflict * self.opposed.high + transfer * high,
        )


SEARCH = EquationWorld(
    EquationBenchmark("id", ambiguous=0.15, low=0.75, high=0.10),
    (
        EquationBenchmark("ambiguous", ambiguous=0.80, low=0.20, high=0.25),
        EquationBenchmark("large", ambiguous=0.15, low=0.10, high=0.45),
        EquationBenchmark("mixed", ambiguous=0.50, low=0.20, high=0.25),
        EquationBenchmark("both", ambiguous=0.80, low=0.10, high=0.45),
    ),
)
WIDE = EquationWorld(
    EquationBenchmark("id", ambiguous=0.05, low=0.75, high=0.10, rare=0.3, values=256),
    (
        EquationBenchmark("ambiguous", ambiguous=0.40, low=0.05, high=0.45, rare=0.3, values=256),
        EquationBenchmark("large", ambiguous=0.05, low=0.05, high=0.60, rare=0.3, values=256),
        EquationBenchmark("mixed", ambiguous=0.25, low=0.05, high=0.45, rare=0.3, values=256),
        EquationBenchmark("both", ambiguous=0.40, low=0.05, high=0.60, rare=0.3, values=256),
    ),
)


def draw_equations(benchmark: EquationBenchmark, rng: random.Random) -> EquationPair:
    """A question of a benchmark; x is drawn first, then equations that x solves."""
    low, high = benchmark.low, benchmark.high
    (x,) = rng.choices(range(MODULUS), equation_bands(low / 6, (1 - low - high) / 6, high / 4))
    kind, wide, rest = rng.random(), benchmark.values > MODULUS, x
    if wide:
        other = range(1, COMMON) if kind < benchmark.ambiguous else range(COMMON, MODULUS)
        rest = rng.choice(other) if kind < benchmark.ambiguous + benchmark.rare else 0
    a = rng.choice(EVEN if kind < benchmark.ambiguous and not wide else ODD)
    b, e, f = rng.randrange(MODULUS), rng.choice(ODD), rng.randrange(MODULUS)
    first, second = (a, b, (a * x + b) % MODULUS), (e, f, (e * rest + f) % MODULUS)
    return EquationPair(first, second, benchmark.values)
