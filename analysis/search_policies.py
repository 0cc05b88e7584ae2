"""Accuracies of policies of the search world, exactly; docs/search.md has some of them.

    python analysis/search_policies.py

No model is involved, and nothing is drawn. A policy chooses x by the set of values that it has
tried. There are 2^16 such sets, and the program reckons the chance and the answer of each.

S = sets of tried values as bits of their index, X = values of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import tyro
from scipy.stats import binom

from geosd.problems.search.corpora import BLIND, CorpusPolicy
from geosd.problems.search.equations import EVEN, MODULUS, SEARCH, EquationBenchmark, equation_bands
from geosd.reporting.tables import markdown_table

TRIED_SX = (np.arange(1 << MODULUS)[:, None] >> np.arange(MODULUS)) % 2 == 1
"""Whether a set holds a value."""
SIZE_S = TRIED_SX.sum(-1)
TEMPERATURE, TOP_P, CAP = 0.6, 0.95, 52
"""Of the test samples."""

HABIT = replace(BLIND, weights=tuple(equation_bands(1.0, 0.2, 0.05)))
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


@dataclass(frozen=True, eq=False)
class TabledPolicy:
    """A policy whose next x depends on the set of tried values.

    Attributes:
        next_SX: Probability of each x after each set; 0 for values in the set.
        check: As of `CorpusPolicy`.
        repeat: As of `CorpusPolicy`.
    """

    next_SX: np.ndarray
    check: float
    repeat: float

    @classmethod
    def of(cls, policy: CorpusPolicy) -> TabledPolicy:
        """The table of a policy that has one weight for each x."""
        return cls(normalised(np.array(policy.weights) * ~TRIED_SX), policy.check, policy.repeat)

    def sampled(self, temperature: float = TEMPERATURE, top_p: float = TOP_P) -> TabledPolicy:
        """The policy of a sampler with a temperature, then a nucleus, on each choice."""
        choices = (
            nucleus(normalised(p ** (1 / temperature)), top_p)
            for p in (self.next_SX, *(np.array([[p, 1 - p]]) for p in (self.check, self.repeat)))
        )
        next_SX, check, repeat = choices
        return TabledPolicy(next_SX, float(check[0, 0]), float(repeat[0, 0]))

    def reach(self) -> np.ndarray:
        """Chance of each set to be the tried values at some time, were each of them to fail [S]."""
        reach_S = np.zeros(len(TRIED_SX))
        reach_S[0] = 1
        for size in range(MODULUS):
            sets = np.flatnonzero(SIZE_S == size)
            for x in range(MODULUS):
                without = sets[~TRIED_SX[sets, x]]
                reach_S[without | 1 << x] += reach_S[without] * self.next_SX[without, x]
        return reach_S


def normalised(weights: np.ndarray) -> np.ndarray:
    """Rows of sum 1, but for rows of zeros."""
    return weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(float).tiny)


def nucleus(p: np.ndarray, top_p: float) -> np.ndarray:
    """Each row cut to its heaviest values with at least this mass.

    Of equal values, which some are cut of, each is kept with the same chance; the row is the mean.
    """
    order = np.argsort(-p, axis=-1, kind="stable")
    by_rank = np.take_along_axis(p, order, -1)
    before = np.cumsum(by_rank, -1) - by_rank
    kept = np.empty_like(p)
    np.put_along_axis(kept, order, np.where(before < top_p - 1e-12, by_rank, 0), -1)
    kept = normalised(kept)
    total, equals = np.zeros_like(p), np.zeros_like(p)
    for other in range(p.shape[-1]):
        equal = np.abs(p - p[:, other, None]) < 1e-12
        total += equal * kept[:, other, None]
        equals += equal
    return total / equals


def value_prior(benchmark: EquationBenchmark) -> np.ndarray:
    """Probability of each x in the questions of a benchmark."""
    low, high = benchmark.low, benchmark.high
    return np.array(equation_bands(low / 6, (1 - low - high) / 6, high / 4))


def patterns(benchmark: EquationBenchmark) -> list[tuple[float, tuple[int, ...]]]:
    """Shares of a benchmark's first equations by how far from x their other solutions lie."""
    found = [
        tuple(step for step in range(1, MODULUS) if factor * step % MODULUS == 0) for factor in EVEN
    ]
    ambiguous = [(found.count(steps) / len(EVEN), steps) for steps in dict.fromkeys(found)]
    shares = [(benchmark.ambiguous * share, steps) for share, steps in ambiguous]
    return [(1 - benchmark.ambiguous, ()), *shares]


def answer_chances(
    policy: TabledPolicy, reach_S: np.ndarray, x: int, others: Sequence[int], cap: int = CAP
) -> np.ndarray:
    """Chance of x, and of each other solution of the first equation, to be answered in the cap.

    A trial has 4 tokens, with the repeat 6; a check has 3; the answer and the end have 3.
    """
    trials, checks = np.ogrid[: MODULUS + 2, : len(others) + 2]
    # So many of the trials may be repeated.
    fits = binom.cdf((cap - 4 * trials - 3 * checks - 3) // 2, trials, policy.repeat)
    checked_S = TRIED_SX[:, list(others)].sum(-1)
    unchecked_S = (1 - policy.check) * fits[SIZE_S + 1, checked_S]
    right_S = unchecked_S + policy.check * fits[SIZE_S + 1, checked_S + 1]
    open_S = reach_S * policy.check**checked_S * ~TRIED_SX[:, x]
    ends = [(x, right_S), *((value, unchecked_S) for value in others)]
    return np.array([open_S @ (policy.next_SX[:, value] * end_S) for value, end_S in ends])


@dataclass(frozen=True)
class Reached:
    """A policy's scores on a benchmark, each in [0, 1].

    Attributes:
        accuracy: avg@k.
        pass_at_k: Share of problems that one of k samples solves.
        false_consensus: Share of problems on which three quarters of the samples agree wrongly.
        truncated: Share of samples that the cap ends.
    """

    accuracy: float
    pass_at_k: float
    false_consensus: float
    truncated: float


def reached(
    policy: TabledPolicy, benchmarks: Sequence[EquationBenchmark], cap: int = CAP, k: int = 16
) -> list[Reached]:
    """A policy's scores on each benchmark with k samples a problem, as it is sampled."""
    reach_S = policy.reach()
    rows: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}
    found = []
    for benchmark in benchmarks:
        total = np.zeros(4)
        for (x, prior), (share, steps) in product(
            enumerate(value_prior(benchmark)), patterns(benchmark)
        ):
            if (x, steps) not in rows:
                others = [(x + step) % MODULUS for step in steps]
                right, *wrong = answer_chances(policy, reach_S, x, others, cap)
                agree = sum(binom.sf(np.ceil(0.75 * k) - 1, k, chance) for chance in wrong)
                cut = 1 - right - sum(wrong)
                rows[x, steps] = np.array([right, 1 - (1 - right) ** k, agree, cut])
            total += prior * share * rows[x, steps]
        found.append(Reached(*map(float, total)))
    return found


def mean(found: Sequence[Reached], name: str = "accuracy") -> float:
    """The mean over benchmarks of a number."""
    return float(np.mean([getattr(each, name) for each in found]))


def main() -> None:
    """Print one row for each ideal policy; all in per cent."""
    names = [benchmark.name for benchmark in SEARCH.benchmarks[1:]]
    ood = ["OOD", "pass@16", "false consensus", "truncated", "change ID", "change OOD"]
    lines = [["policy", "ID", *names, *ood]]
    start: tuple[float, float] | None = None
    for name, policy in IDEAL_POLICIES.items():
        inside, *outside = reached(TabledPolicy.of(policy).sampled(), SEARCH.benchmarks)
        start = start or (inside.accuracy, mean(outside))
        shares = [each.accuracy for each in (inside, *outside)]
        shares += [mean(outside, field) for field in Reached.__dataclass_fields__]
        cells = [f"{100 * share:.1f}" for share in shares]
        changes = inside.accuracy - start[0], mean(outside) - start[1]
        lines.append([name, *cells, *(f"{100 * change:+.1f}" for change in changes)])
    print(markdown_table(lines))


if __name__ == "__main__":
    tyro.cli(main)
