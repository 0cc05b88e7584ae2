"""How solutions of the search world are written: the policies of a search by trial.

A solution is a row of trials. A trial writes x, the product a x and the left side a x + b, perhaps
both once more; then `;` where the left side is not c, `ok` where it is. After `ok` the second
equation is checked in the same way, or it is not, and `A: x` ends.

    7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from geosd.problems.search.equations import Question

FAIL, PASS = ";", "ok"


@dataclass(frozen=True)
class Policy:
    """Probabilities of the choices in a solution.

    Attributes:
        weights: Of each x among those not yet tried.
        check: That a value that solves the first equation is put into the second.
        repeat: That the two numbers of a trial are written twice.
    """

    weights: tuple[float, ...]
    check: float
    repeat: float

    def draw(self, left: Sequence[int], rng: random.Random) -> int:
        """The next x among those not yet tried."""
        (x,) = rng.choices(left, [self.weights[x] for x in left])
        return x


def search(
    question: Question, policy: Policy, rng: random.Random, tried: Sequence[int] = ()
) -> str:
    """A solution found by trial; it is wrong where a wrong x passed and was not checked.

    Values in `tried` are known to fail, and are not tried again.
    """
    words: list[str] = []
    left = list(range(question.values))
    for x in tried:
        left = question.open_after(x, left)
    while True:
        x = policy.draw(left, rng)
        left = question.open_after(x, left)
        words += write_trial(question, x, policy.repeat, rng)
        if not question.holds(x, 0):
            continue
        if rng.random() < policy.check:
            words += write_check(question, x)
            if not question.holds(x, 1):
                continue
        return " ".join([*words, "A:", str(x)])


def write_trial(question: Question, x: int, repeat: float, rng: random.Random) -> list[str]:
    """The words of a trial of x in the first equation, its verdict last.

    `repeat` is the probability that its two numbers are written twice.
    """
    numbers = [str(number) for number in question.product_and_side(x, 0)]
    words = [str(x), *numbers * (2 if rng.random() < repeat else 1)]
    return [*words, PASS if question.holds(x, 0) else FAIL]


def write_check(question: Question, x: int) -> list[str]:
    """The words of x in the second equation, its verdict last."""
    numbers = [str(number) for number in question.product_and_side(x, 1)]
    return [*numbers, PASS if question.holds(x, 1) else FAIL]
