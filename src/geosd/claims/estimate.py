"""The estimate of one comparison of a claim on a study, and its interval.

Runs of one model are paired by seed, which also pairs them within a pretraining replicate. With
several replicates the replicate is the unit, and over several models the base model (model and
replicate) is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from geosd.claims import published
from geosd.claims.claim import ClaimedQuantity, Comparison
from geosd.claims.evidence import ONE_RATE, Evidence, MissingEvidenceError
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import (
    ContrastStatistics,
    GroupStatistics,
    base_model_statistics,
    contrast_test,
)

Level = Callable[[float], float]
"""The level at which a test is made, of the whole level that it may have."""


def whole_estimate_level(alpha: float) -> float:
    """The whole level: that of a study which is judged once."""
    return alpha


Terms = Sequence[tuple[float, ClaimedQuantity, pd.Series]]


@dataclass(frozen=True)
class Estimate:
    """The value of a comparison's a - b on a study.

    What `geosd.claims.finding.Finding` has too means the same there.

    Attributes:
        groups: Independent samples whose means add up to the value.
        candidates: Variants from which the data chose the compared one; 1 where it is named.
    """

    comparison: Comparison
    groups: Sequence[GroupStatistics]
    candidates: int
    n_a: int
    n_b: int
    paper_effect: float

    @property
    def effect(self) -> float:
        """The value itself."""
        return math.fsum(group.mean for group in self.groups)

    @property
    def units(self) -> int:
        """Independent values: runs, problems, pretraining replicates, or base models."""
        return min(group.n for group in self.groups)

    def within(self, alpha: float, level: Level = whole_estimate_level) -> ContrastStatistics:
        """The value with its interval at confidence 1 - alpha, whichever candidate was chosen.

        `level` is what a stage of several may spend of that. Its ends are NaN with one unit or no
        spread.
        """
        return contrast_test(self.groups, confidence=1 - level(alpha / self.candidates))


def estimate(comparison: Comparison, evidence: Evidence, models: Sequence[str]) -> Estimate:
    """Estimate a comparison on a model, or on several together: the mean over their base models.

    Raises:
        MissingEvidenceError: The study lacks a quantity.
    """
    comparison, candidates = _with_the_strongest(comparison, evidence, models)
    terms = {model: _terms(comparison, evidence, model) for model in models}
    sums: list[tuple[pd.Series, pd.Series]] = []
    counts = [0] * len(comparison.sides)
    for model, of_model in terms.items():
        sums += _paired_sums(of_model, evidence, model)
        for side in range(len(comparison.sides)):
            _, _, values = of_model[side]
            counts[side] += len(values)
    # On one judged model each sum is a sample of its own: a ladder's sizes are independent.
    samples = [[total] for total in sums] if len(models) == 1 else [sums]
    of_a, *of_b = counts
    return Estimate(
        comparison,
        [_group(sample) for sample in samples],
        candidates,
        n_a=of_a,
        n_b=sum(of_b),
        paper_effect=_published_effect(comparison, models),
    )


def _terms(comparison: Comparison, evidence: Evidence, model: str) -> Terms:
    return [(sign, term, term.values(evidence, model)) for sign, term in comparison.terms()]


def _group(sample: Sequence[tuple[pd.Series, pd.Series]]) -> GroupStatistics:
    """The group of a sample's base models."""
    values = base_model_statistics(sample)
    # What is left of equal numbers, once one is taken from the other, is no spread.
    return GroupStatistics.of(values.where(values.abs() >= 1e-12, 0.0))


def _with_the_strongest(
    comparison: Comparison, evidence: Evidence, models: Sequence[str]
) -> tuple[Comparison, int]:
    """The comparison with b's strongest variant over the models named, and from how many."""
    b = comparison.b
    if b is None or not b.run.among:
        return comparison, 1

    def strength(variant: str) -> float:
        scores = [evidence.scores_of(model, variant, OOD_AVERAGE, "avg@k") for model in models]
        return float(np.mean([of_model.mean() for of_model in scores]))

    strengths = {variant: strength(variant) for variant in b.run.among}
    missing = [variant for variant, mean in strengths.items() if math.isnan(mean)]
    if missing:
        raise MissingEvidenceError(", ".join(missing))
    best = max(strengths, key=strengths.__getitem__)
    named = replace(b, run=replace(b.run, variant=best, name=best, parameter=None))
    return replace(comparison, b=named), len(b.run.among)


def _paired_sums(terms: Terms, evidence: Evidence, model: str) -> list[tuple[pd.Series, pd.Series]]:
    """Sums of paired values with the replicate of each: of one model's runs, or of its states."""
    paired: dict[tuple[str, str], list[pd.Series]] = {}
    for sign, term, series in terms:
        paired.setdefault((term.run.model or model, term.paired_by), []).append(sign * series)
    sums = []
    for (of, paired_by), parts in paired.items():
        total = pd.concat(parts, axis=1, join="inner").sum(axis=1)
        if total.empty:
            raise MissingEvidenceError("seeds that both quantities have")
        replicates = pd.Series(0, total.index)  # the states are those of one replicate
        if paired_by == "seed":
            replicates = evidence.replicates(of).reindex(total.index)
        sums.append((total, replicates))
    return sums


def _published_effect(comparison: Comparison, models: Sequence[str]) -> float:
    """The paper's value of a comparison outside of sweeps, its mean over models; NaN for none.

    The strongest of several methods is the paper's own, which need not be that of the study.
    """
    families = list(map(published.published_family, models))
    total = 0.0
    for sign, term in comparison.terms():
        run = term.run
        swept = run.parameter not in (None, ONE_RATE) and not run.among
        if term.details or run.model or swept:
            return math.nan
        means = []
        for variant in run.among or (run.variant,):
            of = (variant, term.benchmark or "", term.metric)
            cells = [published.published_number(family, *of) for family in families]
            if None in cells:
                return math.nan
            means.append(np.mean([cell.mean for cell in cells]))
        total += sign * float(max(means))
    return total
