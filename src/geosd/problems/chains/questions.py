"""The chains world: chains of operations modulo 10, and the benchmarks drawn from it.

A question is a start value and a chain of operations, evaluated from left to right modulo 10
(`7 + 8 * 3` is (7 + 8) * 3 = 5). A solution is a list of steps. Each step takes one to three
operations and writes the running value: `7 + 8 * 3 = 5 ; A: 5`. docs/chains.md says why it is so.
"""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass

MODULUS = 10
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
# Invertible modulo 10: no product forgets its factors (0, 5 and the even digits would), so a wrong
# intermediate value stays wrong and a jump over `*` cannot be guessed from its last factor.
MULTIPLIERS = (3, 7, 9)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of the chains world: the length and the operations of its chains.

    Attributes:
        name: As it appears in problem files, tables and figures.
        operations: Fewest and most operations in the chain, each number equally likely.
        times: Probability that an operation is `*`; `+` and `-` share the rest evenly.
    """

    name: str
    operations: tuple[int, int]
    times: float


IN_DISTRIBUTION = Benchmark("id", (5, 7), 0.05)
OUT_OF_DISTRIBUTION = (
    Benchmark("long", (9, 10), 0.20),
    Benchmark("mulhard", (7, 8), 0.70),
    Benchmark("mid", (6, 7), 0.40),
    Benchmark("easy", (3, 4), 0.50),
)
BENCHMARKS = (IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)


def draw_question(benchmark: Benchmark, rng: random.Random) -> str:
    """A random chain of a benchmark of the chains world, e.g. `7 + 8 - 3`."""
    words = [str(rng.randrange(MODULUS))]
    for _ in range(rng.randint(*benchmark.operations)):
        if rng.random() < benchmark.times:
            words += ["*", str(rng.choice(MULTIPLIERS))]
        else:
            words += [rng.choice("+-"), str(rng.randrange(MODULUS))]
    return " ".join(words)


def evaluate(chain: str) -> int:
    """The value of a chain of operations, from left to right modulo 10.

    Raises:
        ValueError: An operator is unknown.

    Example:
        >>> evaluate("7 + 8 * 3")
        5
    """
    words = chain.split()
    value = int(words[0])
    for sign, digit in zip(words[1::2], words[2::2], strict=True):
        if sign not in OPERATIONS:
            raise ValueError(
                f"unknown operator {sign!r}; allowed are + - *.\nHint: words are separated by"
                " blanks."
            )
        value = OPERATIONS[sign](value, int(digit)) % MODULUS
    return value


def solve(question: str, rng: random.Random, jumps: tuple[float, ...]) -> str:
    """A right solution of a chain; each step takes a random number of operations.

    `jumps` are the probabilities of a step that takes 1, 2, 3 operations; a step never takes more
    than are left. The solution is e.g. `7 + 8 * 3 = 5 ; A: 5`.
    """
    words = question.split()
    value, at, steps = words[0], 1, []
    while at < len(words):
        jump = rng.choices(range(1, len(jumps) + 1), jumps)[0]
        taken = words[at : at + 2 * jump]
        chain = " ".join([value, *taken])
        value = str(evaluate(chain))
        steps.append(f"{chain} = {value}")
        at += len(taken)
    return " ; ".join([*steps, f"A: {value}"])
