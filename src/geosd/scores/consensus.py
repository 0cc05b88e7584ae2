"""Consensus of samples: the majority answer of a problem, whether it is right, and its table."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

from geosd.problems.fresh_benchmarks import in_ood_average
from geosd.problems.records import SampleRecord
from geosd.scores.avg_and_pass_at_k import pass_at_k
from geosd.scores.samples_by_problem import count_correct, group_by_benchmark, group_by_problem

THRESHOLD = 0.75
"""The paper's tau: from which share of the samples on they agree strongly (sec:false-consensus)."""


def is_strong_consensus(strength: Any, threshold: float = THRESHOLD) -> Any:
    """Whether C(x) >= tau, elementwise, for numbers or a series."""
    # The slack keeps 3 of 4 at or above .75, whatever the float division made of it.
    return strength >= threshold - 1e-12


@dataclass(frozen=True)
class Consensus:
    """Consensus of one problem's samples: the majority answer, its share, whether it is right."""

    majority: str | None
    """None if no sample gives an answer."""
    strength: float
    """C(x), the share of all m samples that give it; 0 if none gives an answer."""
    correct: bool

    def is_false(self, threshold: float = THRESHOLD) -> bool:
        """Whether the consensus is strong and wrong: C(x) >= tau and a^(x) wrong."""
        strong = is_strong_consensus(self.strength, threshold)
        return strong and self.majority is not None and not self.correct


def consensus(samples: Iterable[SampleRecord]) -> list[Consensus]:
    """The consensus of each problem's samples, problems in the file's order.

    Three readings where the paper is silent. A sample without an answer counts among the m, but
    "no answer" is never a majority answer. Answers that the grader finds correct are one answer,
    however they are written (1/2, 0.5); wrong ones are compared as text. Of answers with equal
    counts, the one first seen wins, which needs no draw and favours neither right nor wrong.

    Source: the paper, section (sec:false-consensus).
    """
    return [_agreement(group) for group in group_by_problem(samples).values()]


def _agreement(group: Sequence[SampleRecord]) -> Consensus:
    answered = [sample for sample in group if sample.answer is not None]
    if not answered:
        return Consensus(None, 0.0, False)
    # (True, "") is the class of all correct answers; Counter keeps the order of first sight.
    votes = Counter((s.correct, "" if s.correct else s.answer) for s in answered)
    winner, count = max(votes.items(), key=lambda vote: vote[1])
    correct, answer = winner
    first = next(s.answer for s in answered if s.correct) if correct else answer
    return Consensus(first, count / len(group), correct)


def majority_accuracy(consensuses: Sequence[Consensus]) -> float:
    """Share of problems whose majority answer is right: maj@m, in [0, 1]."""
    return _share([c.correct for c in consensuses])


def false_consensus_rate(consensuses: Sequence[Consensus], threshold: float = THRESHOLD) -> float:
    """Share of problems whose samples agree strongly on a wrong answer, in [0, 1]."""
    return _share([c.is_false(threshold) for c in consensuses])


def _share(flags: Sequence[bool]) -> float:
    if not flags:
        raise ValueError("consensus of no problems.\nHint: the benchmark's name matched no sample.")
    return sum(flags) / len(flags)


def consensus_rows(
    samples: Sequence[SampleRecord], first: int
) -> list[tuple[str, float, int, float]]:
    """A run's rows of the consensus table: quantity, x, problems and value.

    The `first` m samples of a problem are compared for agreement. Fresh benchmarks
    are left out. A run without OOD problems, as in a selection of hyperparameters, has no row.
    """
    ood = [sample for sample in samples if in_ood_average(sample.benchmark)]
    if not ood:
        return []
    benchmarks = group_by_benchmark(ood).values()
    counts = [count_correct(members) for members in benchmarks]
    consensuses = []
    for members in benchmarks:
        compared = [sample for sample in members if sample.sample < first]
        consensuses.append(consensus(compared))
    problems = sum(len(members) for members in counts)
    # The shortest benchmark says how far k goes: a larger k has no average over benchmarks.
    largest = min(members[0].n for members in counts)
    distinct = [Counter((one.n, one.c) for one in members) for members in counts]
    rows = []
    for k in range(1, largest + 1):
        mean = fmean([_mean_pass_at_k(of_benchmark, k) for of_benchmark in distinct])
        rows.append(("pass@k", float(k), problems, 100 * mean))
    false = fmean([false_consensus_rate(members) for members in consensuses])
    rows.append(("false_consensus", THRESHOLD, problems, 100 * false))
    strengths: dict[float, list[bool]] = {}
    for agreement in chain.from_iterable(consensuses):
        strengths.setdefault(agreement.strength, []).append(agreement.correct)
    rows += [
        ("majority_accuracy", strength, len(right), 100 * sum(right) / len(right))
        for strength, right in sorted(strengths.items())
    ]
    return rows


def _mean_pass_at_k(counts: Counter[tuple[int, int]], k: int) -> float:
    """pass@k over problems, each distinct (n, c) computed once."""
    total = math.fsum(m * pass_at_k(n, c, k) for (n, c), m in counts.items())
    return total / counts.total()
