"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import method, ordered
from geosd.reporting.tables import Cell, Column, Row, Table, ranked
from geosd.scores.score_table import OOD_AVERAGE, values
from geosd.scores.statistics import Group

SPEC = OutputSpec(
    title="accuracy in and out of distribution",
    caption=(
        "Accuracy in and out of distribution, mean over seeds and its standard deviation, beside "
        "the paper's."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)

QUANTITIES = (("id", "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """The main table: a row per method, per model ID, OOD average and its change from pi_0.

    Args:
        scores: Tidy scores.
        models: Models, in order.
        methods: Variants, in any order; the rows take the paper's.

    Returns:
        The table, best and second-best marked. A model that stands for a family of the paper has
        the paper's number beside each of its own.
    """
    columns: list[Column] = []
    cells: dict[str, list[Cell]] = {variant: [] for variant in ordered(methods)}
    for model in models:
        family = paper.family(model)
        title = f"{model} (paper: {family})" if family else model
        for key, label in QUANTITIES:
            columns.append(Column(f"{model}.{key}", label, title, "high"))
            for variant, row in cells.items():
                row.append(_ours(scores, model, variant, key))
            if family:
                columns.append(Column(f"{model}.{key}.paper", "paper", title))
                for variant, row in cells.items():
                    row.append(_paper(family, variant, key))
    rows = tuple(Row(method(v).label, method(v).kind, tuple(row)) for v, row in cells.items())
    note = (
        f"{said_k(scores)} in percent, mean ± standard deviation over {said_runs(scores)}. OOD avg."
        " is taken within each run over its OOD benchmarks; Δ OOD is its change from π₀. A model of"
        " this study stands beside the paper's model of the same architecture; they are not the"
        " same model, and only the pattern can be compared."
    )
    title = "In-distribution and out-of-distribution accuracy"
    return ranked(Table("table_main", title, note, "Method", tuple(columns), rows))


def measured(scores: pd.DataFrame, model: str, variant: str, benchmark: str) -> Cell:
    """avg@k of a variant on a benchmark, mean and standard deviation over its runs."""
    runs = values(scores, model, variant, benchmark, "avg@k")
    if runs.empty:
        return Cell(None)
    group = Group.of(runs)
    return Cell(group.mean, group.sd if group.n > 1 else None)


def _ours(scores: pd.DataFrame, model: str, variant: str, key: str) -> Cell:
    if key != "delta_ood":
        return measured(scores, model, variant, key)
    mine = measured(scores, model, variant, OOD_AVERAGE)
    base = measured(scores, model, "pi_0", OOD_AVERAGE)
    if variant == "pi_0" or mine.number is None or base.number is None:
        return Cell(None)
    return Cell(mine.number - base.number, form="+.1f")


def _paper(family: str, variant: str, key: str) -> Cell:
    if key != "delta_ood":
        return published(family, variant, key)
    mine = paper.lookup(family, variant, OOD_AVERAGE)
    base = paper.lookup(family, "pi_0", OOD_AVERAGE)
    if variant == "pi_0" or mine is None or base is None:
        return Cell(None)
    return Cell(round(mine.mean - base.mean, 10), form="+.1f")


def published(family: str | None, variant: str, benchmark: str) -> Cell:
    """The paper's avg@16 for a benchmark."""
    number = paper.lookup(family, variant, benchmark)
    return Cell(None) if number is None else Cell(number.mean, number.sd)


def said_k(scores: pd.DataFrame) -> str:
    """The accuracy's name with its k, e.g. `avg@16`."""
    ks = sorted(scores.loc[scores["metric"] == "avg@k", "k"].unique())
    return " / ".join(f"avg@{k}" for k in ks)


def said_runs(scores: pd.DataFrame) -> str:
    """How many runs a variant has, e.g. `3 runs` or `1 to 3 runs`."""
    counts = scores.groupby(["model", "variant"])["seed"].nunique()
    low, high = counts.min(), counts.max()
    if low != high:
        return f"{low} to {high} runs"
    return "1 run" if high == 1 else f"{high} runs"
