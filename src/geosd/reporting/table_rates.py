"""Each method at its configured learning rate and half a decade to either side of it."""

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method_style, method_style_rate, ordered_methods
from geosd.reporting.method_tables import (
    candidate_method_table,
    mean_method_cell,
    method_table_accuracy_note,
)
from geosd.reporting.run_accuracies import SweepPoints, rate_run_accuracies
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.collapse import ON_TEST, collapse_rule
from geosd.scores.rate_selection import MARGIN, rate_above, rates_around
from geosd.scores.score_table import ID, OOD_AVERAGE

LABELS = {ID: "ID", OOD_AVERAGE: "OOD"}
STEPS = {"below": -0.5, "": 0.0, "above": 0.5}
"""Decades from the configured rate, by the word in a column's heading."""


def build(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: SweepPoints,
    learning_rates: Mapping[str, Mapping[str, float]],
) -> Table:
    """Build `table_rates`: methods at their rate and half a decade off; empty where not trained."""
    variants = ordered_methods(point["variant"] for model in models for point in points[model])
    cells: dict[str, dict[str, TableCell]] = {name: {} for name in ("pi_0", *variants)}
    for model in models:
        runs, base = rate_run_accuracies(scores, model, points[model])
        cells["pi_0"] |= {f"{model}.{key}": mean_method_cell(base[key]) for key in LABELS}
        for name in variants:
            rate = learning_rates[model][name]
            cells[name] |= _cells(model, runs[runs["variant"] == name], rate)
    note = (
        f"{method_table_accuracy_note(scores)}, OOD averaged within each run over its OOD"
        " benchmarks. Below and above: half a decade from the configured rate; empty where the"
        " grid ends. Collapse: the rates at most half a decade from the configured one at which"
        f" runs collapse, and how many do. {collapse_rule(ON_TEST)}"
    )
    return candidate_method_table(
        "table_rates",
        "Accuracy around the configured learning rates",
        note,
        "Method",
        [column for model in models for column in _columns(model)],
        (
            (method_style(v).label, method_style(v).kind, of_variant)
            for v, of_variant in cells.items()
        ),
    )


def _key(model: str, benchmark: str, step: str) -> str:
    return f"{model}.{benchmark}.{step}".rstrip(".")


def _columns(model: str) -> list[TableColumn]:
    accuracies = [
        TableColumn(_key(model, key, step), f"{label} {step}".rstrip(), model)
        for step in STEPS
        for key, label in LABELS.items()
    ]
    rate = TableColumn(f"{model}.learning_rate", "rate", model)
    return [rate, *accuracies, TableColumn(f"{model}.collapse", "collapse", model)]


def _cells(model: str, runs: pd.DataFrame, rate: float) -> dict[str, TableCell]:
    """The cells of a method on a model, from its runs at every rate."""
    grid = runs["learning_rate"].unique()
    near = runs[runs["learning_rate"].isin(rates_around(grid, rate, MARGIN))]
    cells = {
        f"{model}.learning_rate": TableCell(rate, form=".1e"),
        f"{model}.collapse": _collapse(near),
    }
    for step, decades in STEPS.items():
        at = runs[runs["learning_rate"] == rate_above(grid, rate, decades)]
        cells |= {_key(model, key, step): mean_method_cell(at[key]) for key in LABELS}
    return cells


def _collapse(runs: pd.DataFrame) -> TableCell:
    """Which rates collapse, and how many of their runs, in words."""
    if runs.empty:
        return TableCell(None)
    counts = runs.groupby("learning_rate")["collapsed"].agg(["sum", "size"])
    words = [f"{method_style_rate(at)}: {n} of {of}" for at, (n, of) in counts.iterrows() if n]
    return TableCell(", ".join(words) or "no")
