"""The test of one comparison of a claim on a study, both ways: for the claim and against it.

Runs of one model are paired by seed, which also pairs them within a pretraining replicate. With
several replicates the replicate is the unit, and over several models the base model (model and
replicate) is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from geosd.claims import published
from geosd.claims.claim import Comparison, Quantity
from geosd.claims.evidence import Evidence, MissingDataError
from geosd.claims.metrics import scale_of_metric
from geosd.scores.statistics import (
    Group,
    contrast,
    detectable_effect,
    replicate_means,
    sd_between_replicates,
)

POWER = 0.8
"""Chance with which an effect that counts as detectable is detected."""
Terms = Sequence[tuple[float, Quantity, pd.Series]]


@dataclass(frozen=True)
class ComparisonTest:
    """One comparison of a claim, tested for the claim and against it.

    What `geosd.claims.finding.Finding` has too means the same there.

    Attributes:
        p_for: p against the null that the comparison is false.
        p_against: p against the null that it is true. Both are NaN with one value or no spread.
        se: Standard error of the effect, with `df` degrees of freedom.
        headroom_for: Distance from the margin, where the comparison is true, that the scale of a
            leaves if b stays where it is; `headroom_against` is the same where it is false.
    """

    comparison: Comparison
    effect: float
    low: float
    high: float
    p_for: float
    p_against: float
    se: float
    df: float
    headroom_for: float
    headroom_against: float
    draw_sd: float
    n_a: int
    n_b: int
    units: int
    paper_effect: float

    @property
    def _sides(self) -> int:
        """One-sided tests: all must hold to confirm the comparison, one refutes it."""
        return 2 if self.comparison.direction == "within" else 1

    def detectable_for(self, level: float, parts: int) -> float:
        """Smallest distance from the margin that is confirmed at a level with power `POWER`.

        Of `within` it is the smallest margin, if there is no difference. With the power of one of
        `parts` parts raised to 1 - (1 - POWER) / parts, all of them are confirmed with POWER.
        """
        power = 1 - (1 - POWER) / (parts * self._sides)
        return detectable_effect(self.se, self.df, level, power)

    def detectable_against(self, level: float, parts: int) -> float:
        """Smallest distance beyond the margin that refutes one of `parts` parts with `POWER`."""
        return detectable_effect(self.se, self.df, level / (parts * self._sides), POWER)


def compare(
    comparison: Comparison, evidence: Evidence, models: Sequence[str], confidence: float
) -> ComparisonTest:
    """Test a comparison on a model, or on several together: the mean over their base models.

    Raises:
        MissingDataError: The study lacks a quantity.
    """
    terms = {
        model: [(sign, term, term.values(evidence, model)) for sign, term in comparison.terms()]
        for model in models
    }
    sums = [total for model in models for total in _paired_sums(terms[model], evidence, model)]
    if len(models) == 1:
        units = [replicate_means(values, replicates) for values, replicates in sums]
    else:
        units = [pd.concat([values.groupby(replicates).mean() for values, replicates in sums])]
    # What is left of equal numbers, once one is taken from the other, is no spread.
    groups = [Group.of(values.where(values.abs() >= 1e-12, 0.0)) for values in units]
    down = contrast(groups, "less", comparison.margin, confidence)
    up = contrast(groups, "greater", comparison.margin, confidence)
    if comparison.direction == "within":
        upper, lower = down.p, contrast(groups, "greater", -comparison.margin, confidence).p
        p_for = max(upper, lower)
        p_against = min(1.0, 2 * (1 - p_for))
    else:
        p_for, p_against = (up.p, down.p)[:: 1 if comparison.direction == "greater" else -1]
    sides = range(len(comparison.sides))
    counts = [sum(len(of_model[side][2]) for of_model in terms.values()) for side in sides]
    between = np.square([sd_between_replicates(*of_sum) for of_sum in sums])
    if len(models) > 1:
        between = between / len(models)  # the mean variance of a model; of a contrast the sum
    return ComparisonTest(
        comparison,
        *(up.difference, up.low, up.high, p_for, p_against, up.se, up.df),
        *_headroom(comparison, up.difference, [one[0][2].mean() for one in terms.values()]),
        draw_sd=math.sqrt(between.sum()),
        n_a=counts[0],
        n_b=sum(counts[1:]),
        units=min(group.n for group in groups),
        paper_effect=_published_effect(comparison, models),
    )


def _paired_sums(terms: Terms, evidence: Evidence, model: str) -> list[tuple[pd.Series, pd.Series]]:
    """Sums of paired values with the replicate of each: of one model's runs, or of its states."""
    paired: dict[tuple[str, str], list[pd.Series]] = {}
    for sign, term, series in terms:
        paired.setdefault((term.run.model or model, term.paired_by), []).append(sign * series)
    sums = []
    for (of, paired_by), parts in paired.items():
        total = pd.concat(parts, axis=1, join="inner").sum(axis=1)
        if total.empty:
            raise MissingDataError("seeds that both quantities have")
        replicates = pd.Series(0, total.index)  # the states are those of one replicate
        if paired_by == "seed":
            replicates = evidence.replicates(of).reindex(total.index)
        sums.append((total, replicates))
    return sums


def _headroom(comparison: Comparison, effect: float, a: Sequence[float]) -> tuple[float, float]:
    """What the scale of a leaves on either side of the margin, if b stays where it is."""
    low, high = scale_of_metric(comparison.a.metric)
    most = effect + high - float(np.mean(a)) - comparison.margin
    least = effect + low - float(np.mean(a)) - comparison.margin
    if comparison.direction == "greater":
        return most, -least
    if comparison.direction == "less":
        return -least, most
    return comparison.margin, max(most, -least - 2 * comparison.margin)


def _published_effect(comparison: Comparison, models: Sequence[str]) -> float:
    """The paper's value of a comparison outside of sweeps, its mean over models; NaN for none."""
    totals = []
    for family in map(published.paper_family, models):
        total = 0.0
        for sign, term in comparison.terms():
            run, benchmark = term.run, term.benchmark or ""
            cell = published.published_number(family, run.variant, benchmark, term.metric)
            if cell is None or term.details or run.model or run.parameter:
                return math.nan
            total += sign * cell.mean
        totals.append(total)
    return float(np.mean(totals))
