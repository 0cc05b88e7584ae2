"""How solutions of the search world are written: the policies of a search by trial.

A solution is a row of trials. A trial writes x, the product a x and the left side a x + b, perhaps
both once more; then `;` where the left side is not c, `ok` where it is. After `ok` the second
equation is checked in the same way, or it is not, and `A: x` ends.

    7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from geosd.problems.search.equations import MODULUS, Question

FAIL, PASS = ";", "ok"


@dataclass(frozen=True)
class Policy:
    """Probabilities of the choices in a solution.

    Attributes:
        weights: Of each x among those not yet tried.
        check: That a value that solves the first equation is put into the second.
        repeat: That the two numbers of a trial are written twice.
        top_p: Nucleus of the choice of x: the smallest set of values with at least this mass.
    """

    weights: tuple[float, ...]
    check: float
    repeat: float
    top_p: float = 1.0

    def sampled(self, temperature: float, top_p: float) -> Policy:
        """The policy of a sampler that draws from these probabilities.

        Args:
            temperature: Probabilities are raised to its inverse, as logits are divided by it.
            top_p: Nucleus of each choice, after the temperature.
        """
        return replace(
            self,
            weights=tuple(w ** (1 / temperature) for w in self.weights),
            check=_sampled(self.check, temperature, top_p),
            repeat=_sampled(self.repeat, temperature, top_p),
            top_p=top_p,
        )

    def draw(self, left: Sequence[int], rng: random.Random) -> int:
        """The next x among those not yet tried."""
        weights = {x: self.weights[x] for x in left}
        if self.top_p < 1:
            weights = _nucleus(weights, self.top_p, rng)
        (x,) = rng.choices(list(weights), list(weights.values()))
        return x


def _sampled(p: float, temperature: float, top_p: float) -> float:
    """Probability of one of two choices, after temperature and nucleus."""
    yes, no = p ** (1 / temperature), (1 - p) ** (1 / temperature)
    p = yes / (yes + no)
    return float(p > 0.5) if top_p <= max(p, 1 - p) else p


def _nucleus(weights: Mapping[int, float], top_p: float, rng: random.Random) -> dict[int, float]:
    """The heaviest values, equal ones in a random order, up to a share of the whole weight."""
    kept: dict[int, float] = {}
    mass, enough = 0.0, top_p * math.fsum(weights.values())
    for x in sorted(weights, key=lambda x: (-weights[x], rng.random())):
        if mass >= enough:
            break
        kept[x] = weights[x]
        mass += weights[x]
    return kept


def search(
    question: Question, policy: Policy, rng: random.Random, tried: Sequence[int] = ()
) -> str:
    """A solution found by trial; it is wrong where a wrong x passed and was not checked.

    Args:
        question: What is solved.
        policy: Probabilities of the choices.
        rng: Where the choices come from.
        tried: Values that are not tried, because they are known to fail.

    Returns:
        The trials and the final answer.
    """
    words: list[str] = []
    left = [x for x in range(MODULUS) if x not in tried]
    while True:
        x = policy.draw(left, rng)
        left.remove(x)
        words += write_trial(question, x, policy.repeat, rng)
        if not question.holds(x, 0):
            continue
        if rng.random() < policy.check:
            words += [str(value) for value in question.values(x, 1)]
            words.append(PASS if question.holds(x, 1) else FAIL)
            if not question.holds(x, 1):
                continue
        return " ".join([*words, "A:", str(x)])


def write_trial(question: Question, x: int, repeat: float, rng: random.Random) -> list[str]:
    """The words of a trial of x in the first equation, its verdict last.

    `repeat` is the probability that its two numbers are written twice.
    """
    values = [str(value) for value in question.values(x, 0)]
    words = [str(x), *values * (2 if rng.random() < repeat else 1)]
    return [*words, PASS if question.holds(x, 0) else FAIL]
