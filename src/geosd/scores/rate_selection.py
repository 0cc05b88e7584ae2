"""Which learning rate a selection chooses: for a method on a model, and one for all methods."""

import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from geosd.scores.collapse import COLLAPSE, ON_VALIDATION, collapses
from geosd.scores.tidy import select_tidy_rows

VALIDATION = "select_validation"
"""The benchmark of the validation problems."""
MARGIN = 0.5
"""Decades around a selected rate in which no run collapses."""
ROUNDING = 0.1
"""Decades by which a rate of a grid may miss: half a decade is written as a factor of 3 or 3.3."""
RULE = (
    "of the rates with no collapse within half a decade, on any model, the smallest within one"
    f" standard error of the best mean avg@k on {VALIDATION}; the error is that of the difference"
    f" to the best, paired by seed; a collapse is a run {COLLAPSE:g} points or more below pi_0"
    f" {ON_VALIDATION}"
)
"""The rule of `select_candidate`, in one line."""


def rates_around(rates: Iterable[float], rate: float, decades: float) -> list[float]:
    """The learning rates that are so many decades from a rate or fewer, ascending."""
    return sorted(r for r in rates if abs(math.log10(r / rate)) <= decades + ROUNDING)


def collapsed_runs_in_selection(scores: pd.DataFrame) -> pd.Series:
    """How many runs of each variant collapse on the validation problems of any model.

    The rule is that of `collapses`, on the only problems that a selection may look at: validation
    problems, in distribution, against pi_0 of the same model and seed. Few runs show where
    collapses begin, so the runs of all models count.

    Raises:
        ValueError: pi_0 was not validated with a model and seed of a variant.
    """
    runs = select_tidy_rows(scores, benchmark=VALIDATION, metric="avg@k").set_index(
        ["model", "seed"]
    )
    base = runs.loc[runs["variant"] == "pi_0", "value"]
    missing = sorted(set(runs.index) - set(base.index))
    if missing:
        named = ", ".join(f"{model} with seed {seed}" for model, seed in missing)
        raise ValueError(
            f"pi_0 was not validated: {named}, so no collapse can be told.\n"
            "Hint: the selection's `methods` need pi_0."
        )
    gains = (runs["value"] - base.reindex(runs.index)).to_frame(VALIDATION)
    return collapses(gains).groupby(runs["variant"]).sum()


def candidates_clear_of_collapse(scores: pd.DataFrame, rates: Mapping[str, float]) -> list[str]:
    """Candidates with no collapse within `MARGIN` decades of their rate, from the smallest rate on.

    What lies beyond the ends of the grid is not known, and excludes none. Errors are those of
    `collapsed_runs_in_selection`.
    """
    fallen = collapsed_runs_in_selection(scores)
    collapsed = [rate for name, rate in rates.items() if fallen.get(name)]
    ascending = sorted(rates, key=rates.__getitem__)
    return [name for name in ascending if not rates_around(collapsed, rates[name], MARGIN)]


def selection_behind_best(
    scores: pd.DataFrame, model: str, candidates: Sequence[str]
) -> pd.DataFrame:
    """How far each candidate of a grid lies behind the best one on the validation problems.

    With a_cs the avg@k of candidate c at seed s and b the candidate of the best mean, of equals the
    first: behind_c is the mean of d_cs = a_bs - a_cs over the n seeds, and its standard error
    is sd(d_cs) / sqrt(n), with n - 1 in the variance. Candidates of one seed start from the same
    base model, train on the same problems in the same order and are judged on the same draws, so
    what they share is no part of the error of a difference.

    A row is a candidate, in the order given, with `accuracy` (mean over seeds, in percent),
    `behind` and `error` (of the same unit); `error` is NaN where there is one seed.

    Raises:
        ValueError: A candidate was not validated, or not with the seeds of the others.
    """
    runs = select_tidy_rows(scores, model=model, benchmark=VALIDATION, metric="avg@k")
    by_seed = runs.pivot(index="seed", columns="variant", values="value")
    by_seed = by_seed.reindex(columns=list(candidates))
    missing = [name for name in candidates if by_seed[name].isna().any()]
    if missing:
        seeds = f"seeds {', '.join(map(str, by_seed.index))}" if len(by_seed) else "any seed"
        raise ValueError(
            f"{model}: no validation of {', '.join(missing)} with {seeds}; judged are"
            f" {', '.join(runs['variant'].unique()) or 'none'}.\n"
            "Hint: let the workflow finish the selection first."
        )
    accuracy = by_seed.mean()
    behind = by_seed.rsub(by_seed[accuracy.idxmax()], axis="index")
    return pd.DataFrame({"accuracy": accuracy, "behind": behind.mean(), "error": behind.sem()})


def select_candidate(scores: pd.DataFrame, model: str, rates: Mapping[str, float]) -> str | None:
    """Choose the candidate of a grid of learning rates for a model, clear of collapses.

    Of the candidates clear of a collapse that are behind the best of them by one standard error or
    less, the one of the smallest rate. With one seed no error is known: then only the best is
    taken, of equals the smallest. None where no candidate is clear of a collapse.

    Raises:
        ValueError: As `selection_behind_best` and `collapsed_runs_in_selection`.

    Source: Breiman, Friedman, Olshen, Stone 1984, section 3.4.3, with the error of the paired
    difference; the paper, Appendix Baselines: 200 validation problems, avg@8.
    """
    selection_behind_best(
        scores, model, list(rates)
    )  # all of them, or a collapse may not have been seen
    clear = candidates_clear_of_collapse(scores, rates)
    if not clear:
        return None
    judged = selection_behind_best(scores, model, clear)
    return str((judged["behind"] <= judged["error"].fillna(0)).idxmax())


def best_common_rate(
    scores: pd.DataFrame, rates: Mapping[str, Mapping[str, float]]
) -> float | None:
    """The one learning rate for all methods whose mean avg@k on the validation problems is best.

    The mean is over methods, models and seeds, each weighing the same; of equals the smallest rate
    is taken. Only rates that every method was trained at are compared: `rates` has method ->
    candidate -> its learning rate. None where there are no methods, or they have none in common.

    Source: the paper, Table hparams: one learning rate for all methods.
    """
    if not rates:
        return None
    common = set.intersection(*(set(of_method.values()) for of_method in rates.values()))
    rate_of = {}
    for of_method in rates.values():
        rate_of |= {name: rate for name, rate in of_method.items() if rate in common}
    runs = select_tidy_rows(scores, benchmark=VALIDATION, metric="avg@k")
    means = runs.groupby(runs["variant"].map(rate_of))["value"].mean()
    return None if means.empty else float(means.idxmax())


def is_at_configured_rate(runs: pd.DataFrame, configured: Mapping[str, float]) -> pd.Series:
    """Whether a run of a model's sweep has the rate that its study configures for its variant."""
    grid = runs["learning_rate"].unique()
    in_grid = {name: rate_above(grid, configured[name]) for name in runs["variant"].unique()}
    return runs["learning_rate"] == runs["variant"].map(in_grid)


def rate_above(rates: Iterable[float], rate: float, decades: float = 0.0) -> float | None:
    """The one of some learning rates that is so many decades above another; None without one.

    Example:
        >>> rate_above([1e-6, 3e-6, 1e-5], 3e-6, 0.5)
        1e-05
    """
    off = {one: abs(math.log10(one / rate) - decades) for one in rates}
    nearest = min(off, key=off.__getitem__, default=None)
    return nearest if nearest is not None and off[nearest] <= ROUNDING else None
