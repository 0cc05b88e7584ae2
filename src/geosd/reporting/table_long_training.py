"""What long trainings have moved, how fast, and when they fell: a row for each refresh."""

from collections.abc import Sequence

import pandas as pd

from geosd.reporting.factorial_runs import DIVERGENCES
from geosd.reporting.long_runs import (
    CELL,
    REFRESH,
    LongRuns,
    long_run_refresh_words,
    long_run_steps,
)
from geosd.reporting.method_tables import candidate_method_table, over_draws_method_cell
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.equal_movement import DRIFT
from geosd.scores.long_training import late_growth, long_training_fall, long_training_growth
from geosd.scores.rate_selection import COLLAPSE
from geosd.scores.score_table import ID, OOD_AVERAGE

LATE, FALL, BEST_ID = "late_growth", "step_of_fall", "best_id"


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], long_runs: LongRuns
) -> Table:
    """Build `table_long_training`: a row for each divergence and refresh of the anchor."""
    stops = long_run_steps(scores, drift, models[0], long_runs)
    steps = int(stops["steps"].max())
    rows = []
    for (divergence, refresh), cell in stops.groupby([*CELL], sort=False):
        label = f"{DIVERGENCES[divergence]}, {long_run_refresh_words(refresh, steps)}"
        rows.append((label, DIVERGENCES[divergence], _cells(cell, steps)))
    return candidate_method_table(
        "table_long_training",
        "Long training, by refresh of the anchor",
        _note(models[0], stops, steps),
        "Divergence, refresh of the anchor",
        _columns(steps),
        rows,
    )


def _phases_of(steps: int) -> list[tuple[int, int]]:
    """First and last step of the three phases in which drift is told: to a tenth, a half, the end.

    Example:
        >>> _phases_of(2000)
        [(0, 200), (200, 1000), (1000, 2000)]
    """
    ends = [steps // 10, steps // 2, steps]
    return list(zip([0, *ends], ends, strict=False))


def _endpoints_of_run(path: pd.DataFrame, steps: int) -> dict[str, float]:
    """The endpoints of a run: drift and its growth a window in each phase, and the others."""
    moved = {0: 0.0, **path.set_index("steps")[DRIFT]}
    refresh = int(path[REFRESH].iloc[0])
    values = {}
    for first, last in _phases_of(steps):
        values[f"{DRIFT}_{last}"] = moved[last]
        if refresh <= steps:
            grown = long_training_growth((moved[first], moved[last]), (first, last), refresh)
            values[f"window_{last}"] = grown
    values[LATE] = 100 * late_growth(moved[steps // 2], moved[steps])
    values[FALL] = long_training_fall(path["steps"], path[OOD_AVERAGE], COLLAPSE)
    values[BEST_ID] = path[ID].max()
    last_gains = path.set_index("steps").loc[steps]
    values |= {ID: last_gains[ID], OOD_AVERAGE: last_gains[OOD_AVERAGE]}
    return values


def _columns(steps: int) -> list[TableColumn]:
    phases = _phases_of(steps)
    drift = [TableColumn(f"{DRIFT}_{last}", f"step {last}", "drift (rad)") for _, last in phases]
    windows = [
        TableColumn(f"window_{last}", f"{first} to {last}", "drift a window (rad)")
        for first, last in phases
    ]
    late = TableColumn(LATE, "in the second half (%)", "drift (rad)")
    after = f"after {steps} steps"
    return [
        *drift,
        late,
        *windows,
        TableColumn(FALL, "at step", f"{COLLAPSE:g} points lost OOD"),
        TableColumn(f"{FALL}.n", "by", f"{COLLAPSE:g} points lost OOD"),
        TableColumn(BEST_ID, "best ID gain", "at any stop"),
        TableColumn(ID, "ID gain", after),
        TableColumn(OOD_AVERAGE, "OOD gain", after),
    ]


def _cells(cell: pd.DataFrame, steps: int) -> dict[str, TableCell]:
    """The cells of a row: means over draws ± half-width of the interval."""
    by_run = {
        (seed, draw): _endpoints_of_run(path, steps)
        for (seed, draw), path in cell.groupby(["seed", "draw"], sort=False)
    }
    runs = pd.DataFrame(by_run).T.rename_axis(["seed", "draw"]).reset_index("draw")
    cells = {}
    for key in runs.columns.drop("draw"):
        cells[key] = over_draws_method_cell(runs[key], runs["draw"], _form(key))
    fallen = runs[FALL].notna().sum()
    cells[f"{FALL}.n"] = TableCell(f"{fallen} of {len(runs)}")
    return cells


def _form(key: str) -> str:
    if key.startswith((DRIFT, "window")):
        return ".3f"
    return ".0f" if key in (LATE, FALL) else "+.1f"


def _note(model: str, stops: pd.DataFrame, steps: int) -> str:
    judged = ", ".join(map(str, sorted(stops["steps"].unique())))
    return (
        f"Mean over {stops['seed'].nunique()} runs on {stops['draw'].nunique()} draws of {model} ±"
        " half-width of Student's 95 % interval. Drift is the mean d_FR to π₀; drift a window is"
        " its growth between two steps over the number of refreshes between them. Gains are over"
        f" π₀ of the same draw in points, on the test problems. All were judged after {judged}"
        f" steps; the step at which {COLLAPSE:g} points are lost lies linearly between two of them,"
        " and is the mean over the runs that lose so many. Never refreshed, the anchor is π₀ for"
        f" all {steps} steps."
    )
