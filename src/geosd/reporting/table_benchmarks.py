"""Accuracy on every OOD benchmark (the paper's Table ood_per_bench)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import method, ordered
from geosd.reporting.table_main import measured, published, said_k, said_runs
from geosd.reporting.tables import Cell, Column, Row, Table, ranked
from geosd.scores.score_table import OOD_AVERAGE, ood_benchmarks

SPEC = OutputSpec(
    title="accuracy on each benchmark",
    caption=(
        "Accuracy on each out-of-distribution benchmark, mean over seeds and its standard "
        "deviation. The paper's numbers stand beside the average, and beside a benchmark that is "
        "the paper's."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """A row per method, per model a column for each OOD benchmark and their average.

    Args:
        scores: Tidy scores.
        models: Models, in order.
        methods: Variants, in any order; the rows take the paper's.

    Returns:
        The table, best and second-best marked. The paper's number stands beside the average, and
        beside a benchmark only if it is one of the paper's: other benchmarks have no counterpart.
    """
    columns: list[Column] = []
    cells: dict[str, list[Cell]] = {variant: [] for variant in ordered(methods)}
    for model in models:
        family = paper.family(model)
        title = f"{model} (paper: {family})" if family else model
        for benchmark in [*ood_benchmarks(scores, model), OOD_AVERAGE]:
            label = "OOD avg." if benchmark == OOD_AVERAGE else benchmark
            columns.append(Column(f"{model}.{benchmark}", label, title, "high"))
            for variant, row in cells.items():
                row.append(measured(scores, model, variant, benchmark))
            if paper.lookup(family, "pi_0", benchmark) is not None:
                columns.append(Column(f"{model}.{benchmark}.paper", "paper", title))
                for variant, row in cells.items():
                    row.append(published(family, variant, benchmark))
    rows = tuple(Row(method(v).label, method(v).kind, tuple(row)) for v, row in cells.items())
    note = (
        f"{said_k(scores)} in percent, mean ± standard deviation over {said_runs(scores)}; the"
        " paper's numbers are avg@16 over ten runs."
    )
    title = "Per-benchmark OOD accuracy"
    return ranked(Table("table_benchmarks", title, note, "Method", tuple(columns), rows))
