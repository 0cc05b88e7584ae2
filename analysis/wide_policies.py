"""Accuracies of policies of the wide search world, exactly; docs/wide.md has some columns.

    python analysis/wide_policies.py

No model is involved, and nothing is drawn. Values of a kind are alike: x mod 16 lies in one of
three bands, x div 16 is usual, other or rare. So a state of a search is how many classes of each
band have failed, and after one solved the first equation, how many of its values of each kind.

B = bands of x mod 16, K = kinds of x div 16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import tyro
from scipy.stats import binom
from search_policies import TEMPERATURE, TOP_P, Reached, mean

from geosd.problems.search.corpora import WIDE_BLIND, CorpusPolicy
from geosd.problems.search.equations import COMMON, MODULUS, WIDE, EquationBenchmark
from geosd.reporting.tables import markdown_table

Counts = tuple[int, ...]
BANDS_B = np.array([6, 6, 4])
KINDS_K = np.array([1, COMMON - 1, MODULUS - COMMON])
VALUES_BK = BANDS_B[:, None] * KINDS_K
CAP = 66
"""Of the test samples."""


def counts(sizes: Sequence[int]) -> list[Counts]:
    """All ways to take some of each size, the smallest totals first."""
    return sorted(product(*(range(size + 1) for size in sizes)), key=sum)


def plus_one(state: Counts, at: int) -> Counts:
    """The state with one more at a place."""
    return tuple(number + (place == at) for place, number in enumerate(state))


@dataclass(frozen=True, eq=False)
class GroupedPolicy:
    """A policy that treats values of a group alike.

    Attributes:
        first: By how many classes of each band failed: probability of each open value [B, K].
        within: By how many values of each kind failed in a class that solves the first equation:
            probability of each value of the class that is open [K].
        check: As of `CorpusPolicy`.
        repeat: As of `CorpusPolicy`.
    """

    first: Mapping[Counts, np.ndarray]
    within: Mapping[Counts, np.ndarray]
    check: float
    repeat: float

    @classmethod
    def of(cls, weights_BK: np.ndarray, check: float, repeat: float) -> GroupedPolicy:
        """The policy that has one weight for each value of a group."""
        first = {
            state: normalised(weights_BK, (BANDS_B - state)[:, None] * KINDS_K)
            for state in counts(BANDS_B)
        }
        within = {
            state: normalised(weights_BK.sum(0), KINDS_K - state) for state in counts(KINDS_K)
        }
        return cls(first, within, check, repeat)

    def sampled(self, temperature: float = TEMPERATURE, top_p: float = TOP_P) -> GroupedPolicy:
        """The policy of a sampler with a temperature, then a nucleus, on each choice."""

        def cut(p: np.ndarray, number: np.ndarray) -> np.ndarray:
            return nucleus(normalised(p ** (1 / temperature), number), number, top_p)

        def chance(p: float) -> float:
            return float(cut(np.array([p, 1 - p]), np.ones(2))[0])

        return GroupedPolicy(
            {s: cut(p, (BANDS_B - s)[:, None] * KINDS_K) for s, p in self.first.items()},
            {s: cut(p, KINDS_K - s) for s, p in self.within.items()},
            chance(self.check),
            chance(self.repeat),
        )

    @cached_property
    def class_first(self) -> Mapping[Counts, np.ndarray]:
        """By the failed classes: probability of each open class of a band [B]."""
        return {state: (p_BK * KINDS_K).sum(-1) for state, p_BK in self.first.items()}


def normalised(weights: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Weights of values of sum 1, where there are so many of each; of none the weight is 0."""
    weights = weights * (number > 0)
    return weights / max((weights * number).sum(), np.finfo(float).tiny)


def nucleus(p: np.ndarray, number: np.ndarray, top_p: float) -> np.ndarray:
    """Cut to the heaviest values with at least this mass; so many values are like each.

    Of equal values, which some are cut of, each is kept with the same chance; this is the mean.
    """
    kept = np.zeros(p.size)
    before = 0.0
    flat = p.ravel()
    many = number.ravel()
    for value in sorted({v for v in flat if v > 0}, reverse=True):
        equal = flat == value
        whole = int(many[equal].sum())
        stay = min(whole, int(np.ceil((top_p - before) / value - 1e-9)))
        kept[equal] = value * stay / whole
        before += value * whole
        if before >= top_p - 1e-12:
            break
    return normalised(kept.reshape(p.shape), number)


def prior(benchmark: EquationBenchmark) -> np.ndarray:
    """Probability of each group of values in the questions of a benchmark [B, K]."""
    low, high = benchmark.low, benchmark.high
    other, rare = benchmark.ambiguous, benchmark.rare
    return np.outer([low, 1 - low - high, high], [1 - other - rare, other, rare])


def answer_chances(
    policy: GroupedPolicy, band: int, kind: int, cap: int = CAP
) -> tuple[float, np.ndarray, np.ndarray]:
    """Chances that x of a group, and each other value of its class, is answered in the cap.

    Returns:
        The chance of x; that of each other value of its class by kind [K]; how many there are [K].
    """
    trials, checks = np.ogrid[: 2 * MODULUS + 2, : MODULUS + 2]
    # A trial has 4 tokens, with the repeat 6; a check has 3; the answer and the end have 3.
    fits = binom.cdf((cap - 4 * trials - 3 * checks - 3) // 2, trials, policy.repeat)
    others_B = BANDS_B - (np.arange(3) == band)
    others_K = KINDS_K - (np.arange(3) == kind)
    stops, checked = 1 - policy.check, policy.check
    right, wrong_K = 0.0, np.zeros(3)
    reach = dict.fromkeys(counts(others_B), 0.0)
    reach[0, 0, 0] = 1.0
    # By the values of the class that failed: chance of each number of classes that failed before.
    inside = {state: np.zeros(MODULUS) for state in counts(others_K)}
    for state, chance in reach.items():
        failed, p_K = sum(state), policy.first[state][band]
        for other in np.flatnonzero(others_B > state):
            left = others_B[other] - state[other]
            reach[plus_one(state, other)] += chance * left * policy.class_first[state][other]
        right += chance * p_K[kind] * (stops * fits[failed + 1, 0] + checked * fits[failed + 1, 1])
        wrong_K += chance * p_K * stops * fits[failed + 1, 0] * (others_K > 0)
        for other in np.flatnonzero(others_K):
            inside[plus_one((0, 0, 0), other)][failed] += (
                chance * others_K[other] * p_K[other] * checked
            )
    for state, chances in list(inside.items())[1:]:
        p_K, tried = policy.within[state], sum(state)
        in_trials = fits[tried + 1 : tried + 1 + MODULUS]
        unchecked = stops * (chances @ in_trials[:, tried])
        right += p_K[kind] * (unchecked + checked * (chances @ in_trials[:, tried + 1]))
        left_K = others_K - state
        wrong_K += unchecked * p_K * left_K / np.maximum(others_K, 1)
        for other in np.flatnonzero(left_K):
            inside[plus_one(state, other)] += chances * left_K[other] * p_K[other] * checked
    return right, wrong_K, others_K


def reached(
    policy: GroupedPolicy, benchmarks: Sequence[EquationBenchmark], cap: int = CAP, k: int = 16
) -> list[Reached]:
    """A policy's scores on each benchmark with k samples a problem, as it is sampled."""
    rows_BK = np.zeros((3, 3, 4))
    for band, kind in product(range(3), range(3)):
        right, wrong_K, others_K = answer_chances(policy, band, kind, cap)
        agree = float(others_K @ binom.sf(np.ceil(0.75 * k) - 1, k, wrong_K))
        cut = 1 - right - float(others_K @ wrong_K)
        rows_BK[band, kind] = right, 1 - (1 - right) ** k, agree, cut
    return [
        Reached(*map(float, np.tensordot(prior(benchmark), rows_BK, 2))) for benchmark in benchmarks
    ]


def grouped(policy: CorpusPolicy) -> GroupedPolicy:
    """A policy of one weight for each value, which is the same within a group."""
    weights = np.array(policy.weights).reshape(MODULUS, MODULUS)
    weights_KB = weights[np.ix_([0, 1, -1], [0, 6, -1])]  # one value of each kind and band
    return GroupedPolicy.of(weights_KB.T, policy.check, policy.repeat)


def _habit(conflict: float, check: float) -> GroupedPolicy:
    """It chooses x as the ID problems have it, and writes numbers once."""
    likely = prior(WIDE.in_distribution(conflict)) / VALUES_BK
    return GroupedPolicy.of(likely, check, 0.02)


def ideal_policies() -> dict[str, GroupedPolicy]:
    """Policies that a training could lead to, by what they differ in from pi_0's."""
    concise = replace(WIDE_BLIND, repeat=0.02)
    return {
        "pi_0": grouped(WIDE_BLIND),
        "concise": grouped(concise),
        "concise, always checks": grouped(replace(concise, check=0.97)),
        "concise, never checks": grouped(replace(concise, check=0.03)),
        "ID habit at 1, concise": _habit(1.0, WIDE_BLIND.check),
        "ID habit at 1, concise, never checks": _habit(1.0, 0.03),
        "ID habit at 0, concise": _habit(0.0, WIDE_BLIND.check),
        "ID habit at 0, concise, never checks": _habit(0.0, 0.03),
    }


def first_masses(policy: GroupedPolicy) -> np.ndarray:
    """Mass of each group in the first choice of x [B, K]."""
    return policy.first[0, 0, 0] * VALUES_BK


def main() -> None:
    """Print one row for each ideal policy; all in per cent."""
    kinds = [WIDE.in_distribution(0.0), *WIDE.benchmarks]
    head = ["policy", "ID at 0", "ID at 1", *(kind.name for kind in WIDE.outside), "OOD"]
    lines = [[*head, "pass@16", "false consensus", "truncated", "changes ID at 0, at 1, OOD"]]
    start: list[float] = []
    for name, policy in ideal_policies().items():
        at_0, at_1, *outside = reached(policy.sampled(), kinds)
        shares = [each.accuracy for each in (at_0, at_1, *outside)]
        shares += [mean(outside, field) for field in Reached.__dataclass_fields__]
        now = [at_0.accuracy, at_1.accuracy, mean(outside)]
        start = start or now
        changes = ", ".join(f"{100 * (a - b):+.1f}" for a, b in zip(now, start, strict=True))
        lines.append([name, *(f"{100 * share:.1f}" for share in shares), changes])
    print(markdown_table(lines))


if __name__ == "__main__":
    tyro.cli(main)
