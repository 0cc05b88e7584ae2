"""Gains of each run over the dial, at a rate that all methods share or at each method's best one.

The studies of a family are of one model: one or more for each setting of `data.conflict`. Those on
the test problems have the gains, those on validation problems choose the best rates.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method_style_rate
from geosd.reporting.run_accuracies import BENCHMARKS, sweep_run_gains
from geosd.scores.rate_selection import best_common_rate

CANDIDATE = ["setting", "variant", "learning_rate"]
ByStudy = Mapping[str, Any]
"""What each study of a family has: its tidy scores, or one of its settings."""
Rates = Mapping[str, Mapping[str, Any]]
"""Of each run of a study its variant and learning rate."""


def dial_gains_at_common_rate(
    scores: ByStudy,
    rates_of_runs: ByStudy,
    conflict: ByStudy,
    purpose: ByStudy,
    common_rate: ByStudy,
) -> tuple[str, pd.DataFrame]:
    """The gains at the learning rate that all studies have in common, and that rate in words.

    A row is a run, with its gains in points and its `setting`.

    Raises:
        ValueError: The studies have no rate in common.
    """
    rates = set(common_rate.values())
    if len(rates) > 1:
        given = ", ".join(
            f"{study} {method_style_rate(rate)}" for study, rate in common_rate.items()
        )
        raise ValueError(
            f"The studies of the dial have no learning rate in common: {given}.\nHint: give them"
            " one `training.learning_rate` in params.yaml."
        )
    (rate,) = rates
    gains = dial_gains(scores, rates_of_runs, conflict, purpose)
    return f"learning rate {method_style_rate(rate)}", gains[gains["learning_rate"] == rate]


def dial_gains_at_best_rates(
    scores: ByStudy, rates_of_runs: ByStudy, conflict: ByStudy, purpose: ByStudy
) -> tuple[str, pd.DataFrame]:
    """The gains at each method's best rate on the validation problems of the setting, and words.

    Raises:
        ValueError: A method was not validated at a setting.
    """
    gains = dial_gains(scores, rates_of_runs, conflict, purpose)
    if "best" not in gains:
        raise ValueError(
            "The studies of the dial do not choose best rates: a method or a setting has no run on"
            " validation problems.\nHint: name a study with `data: {purpose: validation}` for each"
            " setting under `of`, or leave the outputs at best rates out."
        )
    return "best rate by validation", gains[gains["best"].astype(bool)]


def dial_gains(
    scores: ByStudy, rates_of_runs: ByStudy, conflict: ByStudy, purpose: ByStudy
) -> pd.DataFrame:
    """The gain of every run over pi_0 of the same draw, a row a run.

    Columns are those of `sweep_run_gains` and `setting`; where every method was validated at each
    setting and rate, also `best`, as `_validated` has it.
    """
    runs, validated = [], []
    for study, own in scores.items():
        rates, setting = rates_of_runs[study], conflict[study]
        if purpose[study] == "validation":
            validated.append(_validated(own, rates).assign(setting=setting))
            continue
        points = [{"run": run, **rate} for run, rate in rates.items()]
        (model,) = own["model"].unique()
        # Each run is looked up in all rows; few are of these.
        accuracies = own[(own["metric"] == "avg@k") & own["benchmark"].isin(BENCHMARKS)]
        runs.append(sweep_run_gains(accuracies, model, points).assign(setting=setting))
    gains = pd.concat(runs).drop_duplicates([*CANDIDATE, "seed"]).reset_index(drop=True)
    if not validated:
        return gains
    judged = gains.merge(pd.concat(validated), how="left", on=CANDIDATE)
    return judged if judged["best"].notna().all() else gains


def _validated(scores: pd.DataFrame, rates: Rates) -> pd.DataFrame:
    """Of each variant and rate, whether it is the variant's `best` on the validation problems."""
    by_variant: dict[str, dict[str, float]] = {}
    for run, of_run in rates.items():
        by_variant.setdefault(of_run["variant"], {})[run] = of_run["learning_rate"]
    rows = []
    for variant, of_variant in by_variant.items():
        best = best_common_rate(scores, {variant: of_variant})
        for rate in of_variant.values():
            rows.append({"variant": variant, "learning_rate": rate, "best": rate == best})
    return pd.DataFrame(rows)
