"""What tables of methods share: accuracies over runs as cells, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.style import method
from geosd.reporting.tables import Cell, Column, Row
from geosd.scores.score_table import values
from geosd.scores.statistics import Group

NOT_THE_SAME_MODEL = (
    "A model of this study stands beside the paper's model of the same architecture; they are not"
    " the same model, and only the pattern can be compared."
)


def accuracy_name(scores: pd.DataFrame) -> str:
    """The accuracy's name with its k, e.g. `avg@16`."""
    ks = sorted(scores.loc[scores["metric"] == "avg@k", "k"].unique())
    return " / ".join(f"avg@{k}" for k in ks)


def count_runs(scores: pd.DataFrame) -> str:
    """How many runs a variant has, e.g. `3 runs` or `1 to 3 runs`."""
    counts = scores.groupby(["model", "variant"])["seed"].nunique()
    low, high = counts.min(), counts.max()
    if low != high:
        return f"{low} to {high} runs"
    return "1 run" if high == 1 else f"{high} runs"


def mean_cell(runs: pd.Series, form: str = ".1f") -> Cell:
    """Mean and standard deviation over runs; empty without runs, no deviation of a single one."""
    if runs.empty:
        return Cell(None)
    group = Group.of(runs)
    return Cell(group.mean, group.sd if group.n > 1 else None, form)


def accuracy_cell(scores: pd.DataFrame, model: str, variant: str, benchmark: str) -> Cell:
    """avg@k of a variant on a benchmark."""
    return mean_cell(values(scores, model, variant, benchmark, "avg@k"))


def published_cell(
    family: str | None, variant: str, benchmark: str, metric: str = "avg@k", form: str = ".1f"
) -> Cell:
    """The paper's number of a family, with its deviation where the paper gives one."""
    number = paper.lookup(family, variant, benchmark, metric)
    return Cell(None) if number is None else Cell(number.mean, number.sd, form)


def change_cell(value: float | None, reference: float | None) -> Cell:
    """How far one number is from another; empty where one of them is missing."""
    if value is None or reference is None:
        return Cell(None)
    return Cell(value - reference, form="+.1f")


class MethodColumns:
    """Columns of a table that has a row per method, and the cells below them."""

    def __init__(self, variants: Sequence[str]) -> None:
        """Begin without columns.

        Args:
            variants: One row each, in this order.
        """
        self.columns: tuple[Column, ...] = ()
        self._cells: dict[str, list[Cell]] = {variant: [] for variant in variants}

    def add(self, column: Column, cell: Callable[[str], Cell]) -> None:
        """Add a column with the cell of each variant."""
        self.columns += (column,)
        for variant, row in self._cells.items():
            row.append(cell(variant))

    def rows(self, kinds: Mapping[str, str] | None = None) -> tuple[Row, ...]:
        """The rows, each in the block of its method's kind or of `kinds`."""
        return tuple(
            Row(method(v).label, kinds[v] if kinds else method(v).kind, tuple(cells))
            for v, cells in self._cells.items()
        )


def group_title(model: str, family: str | None) -> str:
    """Heading over the columns of a model, with the family of the paper beside it."""
    return f"{model} (paper: {family})" if family else model
