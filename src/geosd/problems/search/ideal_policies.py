"""What policies would reach in the search world, simulated without a model."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace

from geosd.problems.search.documents import BLIND
from geosd.problems.search.equations import Benchmark, bands, draw_question
from geosd.problems.search.policies import Policy, search
from geosd.seeds import seed_of

HABIT = replace(BLIND, weights=tuple(bands(1.0, 0.2, 0.05)))
"""A search that tries small x first, as the ID problems reward."""
IDEAL_POLICIES = {
    "pi_0": BLIND,
    "concise": replace(BLIND, repeat=0.02),
    "concise, always checks": replace(BLIND, repeat=0.02, check=0.97),
    "always checks": replace(BLIND, check=0.97),
    "ID habit": HABIT,
    "ID habit, repeats": replace(HABIT, repeat=0.97),
    "ID habit, concise, never checks": replace(HABIT, repeat=0.02, check=0.03),
    "ID habit, concise, always checks": replace(HABIT, repeat=0.02, check=0.97),
}
"""Policies that a training could lead to, by what they differ in from pi_0's."""


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
        policy: As sampled: see `Policy.sampled`.
        benchmark: Kind of the questions.
        cap: Tokens of a response, the end of sequence included.
        problems: Questions drawn.
        samples: k, for each question.
        seed: Of all draws; the same seed draws the same questions for every policy.
    """
    questions, rng = random.Random(seed), random.Random(seed_of(seed, "samples"))
    right = solved = agreed = cut = 0
    for _ in range(problems):
        question = draw_question(benchmark, questions)
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
