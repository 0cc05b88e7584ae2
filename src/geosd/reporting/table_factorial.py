"""What each cell of a factorial of GeoSD's parts has gained where all have moved alike."""

from collections.abc import Sequence

import pandas as pd

from geosd.reporting.factorial_runs import (
    DIVERGENCES,
    FACTORS,
    OPTIMISERS,
    Parts,
    factorial_run_stops,
)
from geosd.reporting.method_tables import candidate_method_table, over_draws_method_cell
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.collapse import ON_TEST, collapse_rule
from geosd.scores.equal_movement import (
    AT_DRIFT,
    AT_ID_GAIN,
    COLLAPSED,
    DRIFT,
    EQUAL_DRIFT,
    EQUAL_ID_GAIN,
    gains_at_equal_movement,
)
from geosd.scores.score_table import ID, OOD_AVERAGE

ENDPOINTS = {
    AT_ID_GAIN: f"at an ID gain of {EQUAL_ID_GAIN:g} points",
    AT_DRIFT: f"at a drift of {EQUAL_DRIFT:.2f} rad",
}
LAST = {ID: "ID gain", OOD_AVERAGE: "OOD gain", DRIFT: "drift"}


def build(scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], parts: Parts) -> Table:
    """Build `table_factorial`: a row for each cell, with its OOD gains at equal movement."""
    stops = factorial_run_stops(scores, drift, models[0], parts)
    runs = gains_at_equal_movement(stops, [*FACTORS, "seed", "draw"])
    rows = []
    for (divergence, ratio, optimiser), cell in runs.groupby([*FACTORS], sort=False):
        label = f"{DIVERGENCES[divergence]}, {ratio:g}, {OPTIMISERS[optimiser]}"
        rows.append((label, DIVERGENCES[divergence], _cells(cell)))
    return candidate_method_table(
        "table_factorial",
        "OOD gain at equal movement",
        _note(models[0], stops, runs),
        "Divergence, curvature ratio, optimiser",
        _columns(stops["steps"].max()),
        rows,
    )


def _columns(steps: int) -> list[TableColumn]:
    columns = []
    for key, words in ENDPOINTS.items():
        columns += [
            TableColumn(key, "OOD gain", words),
            TableColumn(f"{key}.n", "reached by", words),
        ]
    after = f"after {steps} steps"
    columns += [TableColumn(key, label, after) for key, label in LAST.items()]
    return [*columns, TableColumn(COLLAPSED, "collapsed", after)]


def _cells(runs: pd.DataFrame) -> dict[str, TableCell]:
    """The cells of a row: means over the runs of a cell of the factorial that have a value."""
    by_seed = runs.set_index("seed")
    cells = {}
    for key in (*ENDPOINTS, *LAST):
        form = ".3f" if key == DRIFT else "+.1f"
        cells[key] = over_draws_method_cell(by_seed[key], by_seed["draw"], form)
        if key in ENDPOINTS:
            cells[f"{key}.n"] = TableCell(f"{by_seed[key].notna().sum()} of {len(runs)}")
    cells[COLLAPSED] = TableCell(f"{runs[COLLAPSED].sum()} of {len(runs)}")
    return cells


def _note(model: str, stops: pd.DataFrame, runs: pd.DataFrame) -> str:
    judged = ", ".join(map(str, sorted(stops["steps"].unique())))
    return (
        f"Gains over π₀ of the same draw in points, mean over {runs['seed'].nunique()} runs on"
        f" {runs['draw'].nunique()} draws of {model} ± half-width of Student's 95 % interval. The"
        f" OOD gain of a run is interpolated linearly between π₀ and its steps {judged}, where it"
        " first reaches the ID gain or the drift; a run that never does has none. Drift is the"
        " mean d_FR to π₀. The curvature ratio is that of λ d_FR² to the divergence near"
        f" agreement. {collapse_rule(ON_TEST)}"
    )
