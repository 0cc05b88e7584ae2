"""What each method has gained out of distribution where all have moved alike."""

import math
from collections.abc import Sequence

import pandas as pd

from geosd.reporting.method_style import method_style, method_style_rate, ordered_methods
from geosd.reporting.method_tables import candidate_method_table
from geosd.reporting.movement_runs import movement_path_words, movement_runs
from geosd.reporting.run_accuracies import SweepPoints
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.equal_movement import DRIFT
from geosd.scores.movement_paths import (
    LEVEL,
    LEVELS,
    RATE,
    REFERENCE,
    MovementPaths,
    PathComparison,
    compare_paths,
    path_gains_where_reached,
    paths_of_runs,
)
from geosd.scores.score_table import ID
from geosd.scores.statistics import ContrastStatistics

ALL = "all models"
NOT_REACHED = "not reached"
MOVEMENTS = {ID: ("ID gain", "+g", ""), DRIFT: ("drift", ".3f", " rad")}
"""Movement -> its name, the form of a level, and its unit."""
REFERENCE_LABEL = method_style(REFERENCE).label


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], points: SweepPoints
) -> Table:
    """Build `table_equal_movement`: a row for each method of each kind of path, on each model.

    Where no drift is known there are no columns at equal drift.
    """
    runs = {model: movement_runs(scores, drift, model, points) for model in models}
    movements = [ID, DRIFT] if all(DRIFT in of for of in runs.values()) else [ID]
    of_models = {model: paths_of_runs(of) for model, of in runs.items()}
    kinds = _kinds(of_models)
    rows = []
    for words, of_kind in kinds.items():
        groups = {model: [model] for model in of_kind}
        if len(of_kind) > 1:
            groups[ALL] = list(of_kind)
        for group, names in groups.items():
            block = f"{group}, paths over the {words}"
            cells = _rows({name: of_kind[name] for name in names}, movements)
            for variant, own in cells.items():
                label = _label(variant, of_kind[names[0]])
                before = f"{group}: " if len(models) > 1 else ""
                after = f", {words}" if len(kinds) > 1 else ""
                rows.append((f"{before}{label}{after}", block, own))
    return candidate_method_table(
        "table_equal_movement",
        "OOD gain at equal movement",
        _note(list(kinds), movements),
        "Method, path over the" if len(kinds) > 1 else "Method",
        _columns(movements),
        rows,
    )


def _kinds(of_models: dict[str, list[MovementPaths]]) -> dict[str, dict[str, MovementPaths]]:
    """Each kind of path in words -> the paths of each model that has it."""
    kinds: dict[str, dict[str, MovementPaths]] = {}
    for model, of_model in of_models.items():
        for paths in of_model:
            kinds.setdefault(movement_path_words(paths), {})[model] = paths
    return kinds


def _label(variant: str, paths: MovementPaths) -> str:
    """The name of a method, with its rate where each has its own."""
    label = method_style(variant).label
    if paths.along == RATE or paths.at is not None:
        return label
    points = paths.points
    (rate,) = points.loc[points["variant"] == variant, RATE].unique()
    return f"{label} at {method_style_rate(rate)}"


def _rows(
    of_models: dict[str, MovementPaths], movements: Sequence[str]
) -> dict[str, dict[str, TableCell]]:
    """The cells of each method, over the paths of some models together."""
    names = ordered_methods(
        name for paths in of_models.values() for name in paths.points["variant"]
    )
    cells: dict[str, dict[str, TableCell]] = {name: {} for name in names}
    for movement in movements:
        for at in LEVELS[movement]:
            gains = {
                model: path_gains_where_reached(paths, movement, at)
                for model, paths in of_models.items()
            }
            for name, found in compare_paths(gains).items():
                cells[name] |= _cells(f"{movement}.{at:g}", name, found)
    return cells


def _cells(key: str, variant: str, found: PathComparison) -> dict[str, TableCell]:
    """The cells of a method at one level."""
    gain = TableCell(NOT_REACHED) if found.gain is None else _interval_cell(found.gain)
    cells = {key: gain, f"{key}.draws": TableCell(f"{found.reached} of {found.of}")}
    if variant == REFERENCE:
        return cells
    if found.difference is not None:
        rank = "best" if found.p < LEVEL else ""
        cells[f"{key}.lead"] = _interval_cell(found.difference, rank)
    cells[f"{key}.pairs"] = TableCell(float(found.pairs), form=".0f")
    return cells


def _interval_cell(result: ContrastStatistics, rank: str = "") -> TableCell:
    half = result.high - result.difference
    return TableCell(result.difference, None if math.isnan(half) else half, "+.1f", rank)


def _columns(movements: Sequence[str]) -> list[TableColumn]:
    columns = []
    for movement in movements:
        name, form, unit = MOVEMENTS[movement]
        gains, leads = f"OOD gain at equal {name}", f"{REFERENCE_LABEL} minus it, at equal {name}"
        of_gains, of_leads = [], []
        for at in LEVELS[movement]:
            key, label = f"{movement}.{at:g}", format(at, form) + unit
            of_gains += [
                TableColumn(key, label, gains),
                TableColumn(f"{key}.draws", "draws", gains),
            ]
            of_leads += [
                TableColumn(f"{key}.lead", label, leads),
                TableColumn(f"{key}.pairs", "pairs", leads),
            ]
        columns += [*of_gains, *of_leads]
    return columns


def _note(kinds: Sequence[str], movements: Sequence[str]) -> str:
    over = f", here over the {kinds[0]}" if len(kinds) == 1 else ""
    note = (
        "OOD gain over π₀ of the same draw, in points, where a path first reaches the ID gain or"
        " the drift: mean over draws ± half-width of Student's 95 % interval. A path leads from π₀"
        f" in straight lines through the points of one draw{over}. Draws: on how many the path gets"
        " so far; nothing is extrapolated, so the others have no value."
        f" {REFERENCE_LABEL} minus it: over the draws on which both do, the pairs. Bold:"
        f" p < {LEVEL} by the paired t test, two-sided, with Holm's correction over the methods of"
        " one kind of path."
    )
    if DRIFT in movements:
        return f"{note} Drift is the mean d_FR to π₀, in radians."
    return f"{note} The drift of these runs is not known."
