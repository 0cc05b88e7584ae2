"""How solutions of the search world are written: policies, and what each would reach.

A solution is a row of trials. A trial writes x, the product a x and the left side a x + b, perhaps
both once more; then `;` where the left side is not c, `ok` where it is. After `ok` the second
equation is checked in the same way, or it is not, and `A: x` ends.

    7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from geosd.problems.search.equations import MODULUS, Benchmark, Question, draw_question

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

    def at_temperature(self, temperature: float) -> Policy:
        """The policy of a model that draws from these probabilities at a temperature."""
        return replace(
            self,
            weights=tuple(w ** (1 / temperature) for w in self.weights),
            check=_sharpen(self.check, temperature),
            repeat=_sharpen(self.repeat, temperature),
        )


def _sharpen(p: float, temperature: float) -> float:
    yes, no = p ** (1 / temperature), (1 - p) ** (1 / temperature)
    return yes / (yes + no)


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
        (x,) = rng.choices(left, [policy.weights[x] for x in left])
        left.remove(x)
        ended = _write_trial(words, question, x, policy, rng)
        if ended:
            return " ".join([*words, "A:", str(x)])


def _write_trial(
    words: list[str], question: Question, x: int, policy: Policy, rng: random.Random
) -> bool:
    """Append a trial of x; whether the solution ends with it."""
    values = [str(value) for value in question.values(x, 0)]
    words += [str(x), *values * (2 if rng.random() < policy.repeat else 1)]
    if not question.holds(x, 0):
        words.append(FAIL)
        return False
    words.append(PASS)
    if rng.random() >= policy.check:
        return True
    words += [str(value) for value in question.values(x, 1)]
    words.append(PASS if question.holds(x, 1) else FAIL)
    return question.holds(x, 1)


@dataclass(frozen=True)
class Reached:
    """What a policy reaches on a benchmark, each in [0, 1].

    Attributes:
        accuracy: avg@k.
        pass_at_k: Share of problems that one of the k samples solves.
        false_consensus: Share of problems on which three quarters of the samples agree wrongly.
        truncated: Share of samples that the cap ends.
    """

    accuracy: float
    pass_at_k: float
    false_consensus: float
    truncated: float


def simulate(
    policy: Policy, benchmark: Benchmark, cap: int, problems: int, samples: int, seed: int
) -> Reached:
    """What samples of a policy reach; no model is involved.

    Args:
        policy: As sampled: `at_temperature` where the temperature is not 1.
        benchmark: Kind of the questions.
        cap: Tokens of a response, the end of sequence included.
        problems: Questions drawn.
        samples: k, for each question.
        seed: Of all draws.
    """
    rng = random.Random(seed)
    right = solved = agreed = cut = 0
    for _ in range(problems):
        question = draw_question(benchmark, rng)
        drawn = [search(question, policy, rng).split() for _ in range(samples)]
        answers = [int(words[-1]) for words in drawn if len(words) + 1 <= cap]
        votes = Counter(answers)
        correct = votes[question.answer()]
        right += correct
        solved += correct > 0
        cut += samples - len(answers)
        if votes:
            answer, count = votes.most_common(1)[0]
            agreed += count >= 0.75 * samples and answer != question.answer()
    drawn_samples = problems * samples
    return Reached(right / drawn_samples, solved / problems, agreed / problems, cut / drawn_samples)
