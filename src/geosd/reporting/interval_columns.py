"""Intervals of the change from pi_0 over problems, and over problems and seeds, by method."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from geosd.reporting.method_tables import MethodColumn, interval_text
from geosd.reporting.tables import TableCell, TableColumn
from geosd.scores.problems_and_seeds import (
    ProblemsAndSeedsInterval,
    gaps_by_problem_and_seed,
    of_independent_runs,
    over_problems,
    over_problems_and_seeds,
    shares_by_problem_and_seed,
)
from geosd.scores.score_table import score_table_replicates
from geosd.scores.tidy import select_tidy_rows

BASE = "pi_0"
INTERVALS_NOTE = (
    " Behind Δ OOD stand two 95 % intervals of it by bootstrap: over the problems of each"
    " benchmark, for these trained students; and over problems and seeds, drawn again independently"
    " (Owen 2007), for other students too. Seeds of one base model count as one there. With few"
    " seeds the second interval can be too narrow (docs/reading.md)."
)


def has_intervals(shares: pd.DataFrame, model: str) -> bool:
    """Whether the table of shares has pi_0 of a model on benchmarks of the OOD average."""
    return bool(shares_by_problem_and_seed(shares, model, BASE, outside=True))


def interval_columns(
    shares: pd.DataFrame, model: str, methods: Sequence[str]
) -> list[MethodColumn]:
    """Both intervals of each method's Δ OOD, in points."""
    gaps = {name: _gaps(shares, model, name) for name in methods if name != BASE}
    over = {"problems": over_problems, "problems_and_seeds": over_problems_and_seeds}
    labels = {"problems": "over problems", "problems_and_seeds": "over problems and seeds"}
    found: list[MethodColumn] = []
    for key, interval_of in over.items():
        cells = {name: TableCell(_text(interval_of, of_name)) for name, of_name in gaps.items()}
        column = TableColumn(f"{model}.delta_ood.{key}", labels[key], model)
        found.append((column, partial(_cell, cells)))
    return found


def _cell(cells: dict[str, TableCell], name: str) -> TableCell:
    return cells.get(name, TableCell(None))


def _text(
    interval_of: Callable[[Sequence[np.ndarray]], ProblemsAndSeedsInterval],
    gaps: Sequence[np.ndarray],
) -> str | None:
    """The ends of an interval; None of a method without rows."""
    return interval_text(interval_of(gaps)) if gaps else None


def _gaps(shares: pd.DataFrame, model: str, name: str) -> list[np.ndarray]:
    """Of each OOD benchmark the method's shares less pi_0's, independent runs by problems."""
    own = shares_by_problem_and_seed(shares, model, name, outside=True)
    if not own:
        return []
    base = shares_by_problem_and_seed(shares, model, BASE, outside=True)
    draws = score_table_replicates(select_tidy_rows(shares, model=model, variant=name))
    return of_independent_runs(gaps_by_problem_and_seed(own, base), draws.to_numpy())
