"""Comparing runs: one-sided Welch tests and contrasts, Holm's correction, intervals, Hedges' g.

The unit of analysis is the run (one trained seed), as in the paper (Statistical analysis of OOD
gains), or the pretraining replicate where there are several. Tests are computed from
(mean, sd, n), so published tables can be recomputed too.
Notation: a and b are the groups, difference = mean(a) - mean(b).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import gammaln, stdtr, stdtrit
from statsmodels.stats.multitest import multipletests


@dataclass(frozen=True)
class GroupStatistics:
    """Mean, spread and number of runs; sd has n - 1 below, and is NaN of a single run."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> GroupStatistics:
        """Make a group from one value per run.

        Raises:
            ValueError: There is no run, or a value is not finite.
        """
        x = np.asarray(list(values), dtype=float)
        if x.size == 0 or not np.isfinite(x).all():
            raise ValueError(
                f"a group of runs needs finite values, got {x.tolist()}.\n"
                "Hint: was a run of this variant left out of the scores?"
            )
        return cls(float(x.mean()), float(x.std(ddof=1)) if x.size > 1 else math.nan, x.size)


@dataclass(frozen=True)
class ContrastStatistics:
    """Result of a statistical test of a against b: difference, interval, p, effect size.

    `low` and `high` are the ends of the two-sided interval of the difference, p is the one-sided p
    of a difference above 0, g is Hedges', df are Welch-Satterthwaite's, and se is the difference's
    standard error.
    """

    difference: float
    low: float
    high: float
    p: float
    g: float
    df: float
    se: float


def welch(a: GroupStatistics, b: GroupStatistics) -> ContrastStatistics:
    """One-sided Welch test of mean(a) > mean(b), with 95 % interval and effect size.

    The `contrast_test` of a and -b, with Hedges' g.

    Source: Welch 1947; the paper, Table sig.
    """
    test = contrast_test([a, GroupStatistics(-b.mean, b.sd, b.n)])
    return test if math.isnan(test.p) else replace(test, g=hedges_g(a, b))


def contrast_test(
    groups: Sequence[GroupStatistics], confidence: float = 0.95
) -> ContrastStatistics:
    """One-sided test of a sum of independent means, with unequal variances.

    t = sum_i mean_i / se with se^2 = sum_i sd_i^2/n_i, and Satterthwaite's
    df = se^4 / sum_i (sd_i^2/n_i)^2 / (n_i - 1). Coefficients belong into the groups' values. With
    two groups it is Welch's test, with one group Student's on one sample: so a difference taken
    within each run is tested as pairs are. The alternative is a sum above 0; `confidence` is that
    of the two-sided interval.

    Returns:
        The comparison, without g; p, df and interval are NaN where a group has a single run or no
        group has any variance: two identical numbers are no evidence that a third is the same.

    Source: Satterthwaite 1946.
    """
    total = math.fsum(group.mean for group in groups)
    unknown = ContrastStatistics(total, *[math.nan] * 6)
    if min(group.n for group in groups) < 2:
        return unknown
    parts = [group.sd**2 / group.n for group in groups]
    se = math.sqrt(math.fsum(parts))
    # A spread at the rounding of its own values is none: 0.1 + 0.2 - 0.3 is not a deviation.
    if se <= 1e-12 * max(abs(group.mean) for group in groups):
        return unknown
    shares = [part / se**2 for part in parts]
    df = 1 / math.fsum(s**2 / (group.n - 1) for s, group in zip(shares, groups, strict=True))
    p = stdtr(df, -total / se)
    half = float(stdtrit(df, (1 + confidence) / 2)) * se
    return ContrastStatistics(total, total - half, total + half, float(p), math.nan, df, se)


def final_contrast_test(groups: Sequence[GroupStatistics], planned: int) -> ContrastStatistics:
    """Where a sum of means will lie once each group has its `planned` runs, from those seen so far.

    The mean of n of N normal runs differs from that of all N by a normal number of variance
    sd^2 (1/n - 1/N) = sd^2/n (1 - n/N). So the interval is that of `contrast_test`, each sd
    multiplied by sqrt(1 - n/N): a prediction of one number, not an interval for the mean of all
    runs that could be made. Exact for one group; with two it has Satterthwaite's error.

    Returns:
        The difference seen, and the interval of the final one: a point where no run is missing,
        NaN where a group lacks runs and has a single one.

    Raises:
        ValueError: A group has more runs than planned.
    """
    if any(group.n > planned for group in groups):
        raise ValueError(f"{max(g.n for g in groups)} runs are more than the {planned} planned.")
    open_groups = [g for g in groups if g.n < planned]
    total = math.fsum(group.mean for group in groups)
    if not open_groups:
        return ContrastStatistics(total, total, total, *[math.nan] * 4)
    scaled = [replace(g, sd=g.sd * math.sqrt(1 - g.n / planned)) for g in open_groups]
    known = total - math.fsum(group.mean for group in open_groups)
    test = contrast_test(scaled)
    return replace(test, difference=total, low=test.low + known, high=test.high + known)


FEWEST_FOR_INTERVAL = 4
"""Base models, or runs of a single one, from which on a figure draws an interval; of fewer each."""


def student_interval(values: Iterable[float]) -> tuple[float, float]:
    """95 % confidence interval of a mean over runs, by Student's t.

    seaborn takes it as `errorbar`. It is the mean twice where no spread is known. Errors are those
    of `GroupStatistics.of`.
    """
    runs = GroupStatistics.of(values)
    test = contrast_test([runs])
    return (runs.mean, runs.mean) if math.isnan(test.low) else (test.low, test.high)


def hedges_g(a: GroupStatistics, b: GroupStatistics) -> float:
    """Hedges' g: the standardised mean difference with the small-sample correction.

    g = J d with d = (mean_a - mean_b) / s, s^2 = ((n_a-1) sd_a^2 + (n_b-1) sd_b^2) / m,
    m = n_a + n_b - 2 and the exact J = Gamma(m/2) / (sqrt(m/2) Gamma((m-1)/2)). It is NaN where the
    pooled standard deviation is zero or unknown.

    Source: Hedges 1981, eq. 6e and 7.
    """
    m = a.n + b.n - 2
    if min(a.n, b.n) < 2:
        return math.nan
    pooled = math.sqrt(((a.n - 1) * a.sd**2 + (b.n - 1) * b.sd**2) / m)
    if pooled == 0:
        return math.nan
    correction = math.exp(gammaln(m / 2) - gammaln((m - 1) / 2)) / math.sqrt(m / 2)
    return correction * (a.mean - b.mean) / pooled


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the given order.

    A NaN stays NaN and does not count as a test: nothing was tested.

    Source: Holm 1979, as in statsmodels.
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, math.nan)
    tested = np.isfinite(p)
    if tested.any():
        adjusted[tested] = multipletests(p[tested], method="holm")[1]
    return adjusted.tolist()


def base_model_statistics(
    models: Sequence[tuple[pd.Series, pd.Series]],
) -> pd.Series:
    """The independent values behind an effect: what its mean and its interval are taken over.

    This is the one place that says what the unit of an effect is, so that an effect has one
    interval, wherever it is printed. An effect is a value of each run: a gain, or a difference of
    two runs of one seed. On one model these are `replicate_means`. On several together every base
    model, a draw of a model, has one value, the mean over its runs, and all count alike.

    Args:
        models: Of each model a value for each run, and the draw that the run starts from, both
            indexed by seed.
    """
    if len(models) == 1:
        return replicate_means(*models[0])
    return pd.concat([values.groupby(draws).mean() for values, draws in models])


def student_effect_interval(
    models: Sequence[tuple[pd.Series, pd.Series]], confidence: float = 0.95
) -> ContrastStatistics:
    """An effect with Student's interval over its `base_model_statistics`; runs as they are."""
    return contrast_test([GroupStatistics.of(base_model_statistics(models))], confidence)


def replicate_means(values: pd.Series, replicates: pd.Series) -> pd.Series:
    """Means over the runs of each pretraining replicate, or the runs where all are of one.

    Runs of one replicate share its base model, so with several the replicate is the unit of a test:
    Student's t on k means has k - 1 degrees of freedom and its level whatever the variance between
    replicates is; with means of unequal variances it keeps below its level (Bakirov & Szekely 2006;
    Ibragimov & Mueller 2010). Both arguments have a value for each run, indexed by seed.
    """
    return values.groupby(replicates).mean() if replicates.nunique() > 1 else values


def independent_statistics(runs: pd.DataFrame, *values: str) -> pd.DataFrame:
    """Values that are independent: means of columns `values` over the runs of each base model.

    With a single base model the runs are returned. The column `unit` replaces `seed` and `draw`: it
    has the draw, or the seed of a run. Rows with the same other columns are averaged.
    """
    unit = "draw" if "draw" in runs and runs["draw"].nunique() > 1 else "seed"
    keys = [name for name in runs if name not in ("seed", "draw", *values)]
    means = runs.groupby([*keys, unit], sort=False)[[*values]].mean().reset_index()
    return means.rename(columns={unit: "unit"})
