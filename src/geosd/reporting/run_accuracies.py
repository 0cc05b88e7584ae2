"""Accuracies of runs and sweeps as figures need them: a row for each run, a column a benchmark."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import ordered_methods
from geosd.scores.collapse import collapses
from geosd.scores.equal_movement import DRIFT
from geosd.scores.score_table import ID, OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.step_log_tables import step_log_final_drift
from geosd.scores.tidy import select_tidy_rows

BENCHMARKS = (ID, OOD_AVERAGE)
SweepPoints = Mapping[str, Sequence[Mapping[str, Any]]]
"""Of each model, the runs of its sweeps."""


def run_accuracies(
    scores: pd.DataFrame, model: str, variant: str, benchmarks: Sequence[str]
) -> pd.DataFrame:
    """A row for each run: `seed`, `draw` and benchmarks; empty if one was not scored."""
    runs = {name: scores_by_seed(scores, model, variant, name) for name in benchmarks}
    if any(column.empty for column in runs.values()):
        return pd.DataFrame(columns=["seed", "draw", *benchmarks])
    draws = score_table_replicates(select_tidy_rows(scores, model=model, variant=variant))
    return pd.DataFrame({"draw": draws, **runs}).rename_axis("seed").reset_index()


def _base_accuracies(scores: pd.DataFrame, model: str, benchmarks: Sequence[str]) -> pd.DataFrame:
    """Accuracies of pi_0 (index `seed`), a column a benchmark, and `draw`; ValueError if absent."""
    missing = [name for name in benchmarks if run_accuracies(scores, model, "pi_0", [name]).empty]
    if missing:
        raise ValueError(
            f"{model}: pi_0 has no score on {' and '.join(missing)}, so there is nothing to compare"
            " with.\nHint: add pi_0 to the study's methods."
        )
    return run_accuracies(scores, model, "pi_0", benchmarks).set_index("seed")


def _sweep_accuracies(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]], benchmarks: Sequence[str]
) -> pd.DataFrame:
    """Accuracies of every run of a model's sweep; points without scores are left out.

    Columns of the points, `run` (the name in the scores), `variant` and swept keys, then `seed`,
    `draw` and the benchmarks; variants in the paper's order, the points of each in the order given.
    """
    order = ordered_methods(point["variant"] for point in points)
    tables = []
    for point in sorted(points, key=lambda point: order.index(point["variant"])):
        runs = run_accuracies(scores, model, point["run"], benchmarks)
        if not runs.empty:
            tables.append(runs.assign(**point))
    of_points = list(points[0]) if points else ["run", "variant"]
    keys = [*of_points, "seed", "draw", *benchmarks]
    if not tables:
        return pd.DataFrame(columns=keys)
    return pd.concat(tables, ignore_index=True)[keys]


def sweep_run_gains(
    scores: pd.DataFrame,
    model: str,
    points: Sequence[Mapping[str, Any]],
    benchmarks: Sequence[str] = BENCHMARKS,
) -> pd.DataFrame:
    """`_sweep_accuracies`, as changes from pi_0 with the same seed in points.

    ValueError if pi_0 was not evaluated.
    """
    base = _base_accuracies(scores, model, benchmarks)
    runs = _sweep_accuracies(scores, model, points, benchmarks)
    return runs.assign(**_changes(runs, base, benchmarks))


def drift_of_runs(drift: pd.DataFrame, model: str, runs: Iterable[str]) -> pd.DataFrame:
    """The known drift of a model's runs, in radians: columns `run`, `seed` and `drift`."""
    by_run = {
        run: step_log_final_drift(drift, model, run).rename(DRIFT) for run in dict.fromkeys(runs)
    }
    return pd.concat(by_run, names=["run", "seed"]).reset_index()


def rate_run_accuracies(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Every run of a model's sweep of the learning rate, and those of pi_0 (index `seed`).

    A row a run, rates ascending: `run`, `variant`, `learning_rate`, `seed`, `id` and `ood_avg` in
    percent, and `collapsed`, by the rule of `collapses` in and out of distribution.
    ValueError if pi_0 was not evaluated.
    """
    base = _base_accuracies(scores, model, BENCHMARKS)
    by_rate = sorted(points, key=lambda point: point["learning_rate"])
    runs = _sweep_accuracies(scores, model, by_rate, BENCHMARKS)
    return runs.assign(collapsed=collapses(_changes(runs, base, BENCHMARKS))), base


def _changes(runs: pd.DataFrame, base: pd.DataFrame, benchmarks: Sequence[str]) -> pd.DataFrame:
    """The change of each run's accuracies from those of pi_0 with the same seed, in points."""
    own = base.loc[runs["seed"], [*benchmarks]].set_axis(runs.index)
    return runs[[*benchmarks]] - own
