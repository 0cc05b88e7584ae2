"""What ideal policies would reach in the search world: the table of docs/search.md.

    python analysis/search_policies.py

No model is involved: solutions are drawn from policies, with temperature and nucleus.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace

import tyro

from geosd.problems.search.documents import BLIND
from geosd.problems.search.equations import BENCHMARKS, Benchmark, bands, draw_question
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


def main(
    problems: int = 1000,
    samples: int = 16,
    cap: int = 52,
    temperature: float = 0.6,
    top_p: float = 0.95,
    seed: int = 0,
) -> None:
    """Print one row for each ideal policy; all in per cent.

    Args:
        problems: Of each benchmark.
        samples: Of each problem.
        cap: Tokens of a sample, the end included.
        temperature: Of the draws.
        top_p: Nucleus of the draws.
        seed: Of questions and draws.
    """
    names = [benchmark.name for benchmark in BENCHMARKS[1:]]
    ood = ["OOD", f"pass@{samples}", "false consensus", "truncated", "change ID", "change OOD"]
    head = ["policy", "ID", *names, *ood]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|", flush=True)
    start: tuple[float, float] | None = None
    for name, policy in IDEAL_POLICIES.items():
        drawn_from = sampled(policy, temperature, top_p)
        inside, *outside = (
            simulate(drawn_from, b, cap, problems, samples, seed_of(seed, b.name))
            for b in BENCHMARKS
        )
        mean = average(outside)
        start = start or (inside.accuracy, mean.accuracy)
        changes = inside.accuracy - start[0], mean.accuracy - start[1]
        shares = [inside.accuracy, *(reached.accuracy for reached in outside), *astuple(mean)]
        cells = [f"{100 * share:.1f}" for share in shares]
        cells += [f"{100 * change:+.1f}" for change in changes]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def simulate(
    policy: Policy, benchmark: Benchmark, cap: int, problems: int, samples: int, seed: int
) -> Reached:
    """What samples of a policy reach; no model is involved.

    Args:
        policy: As sampled: see `sampled`.
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


@dataclass(frozen=True)
class SampledPolicy(Policy):
    """A policy as a sampler draws from it.

    Attributes:
        top_p: Nucleus of the choice of x: the smallest set of values with at least this mass.
    """

    top_p: float = 1.0

    def draw(self, left: Sequence[int], rng: random.Random) -> int:
        """The next x of the nucleus among those not yet tried."""
        weights = {x: self.weights[x] for x in left}
        if self.top_p < 1:
            weights = _nucleus(weights, self.top_p, rng)
        (x,) = rng.choices(list(weights), list(weights.values()))
        return x


def sampled(policy: Policy, temperature: float, top_p: float) -> SampledPolicy:
    """The policy of a sampler that draws from a policy's probabilities.

    Args:
        policy: The probabilities.
        temperature: Probabilities are raised to its inverse, as logits are divided by it.
        top_p: Nucleus of each choice, after the temperature.
    """
    return SampledPolicy(
        weights=tuple(w ** (1 / temperature) for w in policy.weights),
        check=_sampled(policy.check, temperature, top_p),
        repeat=_sampled(policy.repeat, temperature, top_p),
        top_p=top_p,
    )


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


def average(reached: list[Reached]) -> Reached:
    """The mean over benchmarks."""
    return Reached(
        *(sum(getattr(r, f.name) for r in reached) / len(reached) for f in fields(Reached))
    )


if __name__ == "__main__":
    tyro.cli(main)
