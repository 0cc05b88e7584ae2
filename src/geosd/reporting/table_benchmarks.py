"""Accuracy on every OOD benchmark (the paper's Table ood_per_bench)."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.fresh_columns import FRESH_NOTE, fresh_columns
from geosd.reporting.method_style import ordered_methods
from geosd.reporting.method_tables import (
    MethodColumn,
    accuracy_method_cell,
    method_columns,
    method_table,
    method_table_accuracy_note,
    method_table_title,
    published_method_cell,
)
from geosd.reporting.paper_comparison import beside_paper
from geosd.reporting.tables import Table, TableColumn
from geosd.scores.score_table import OOD_AVERAGE, scored_ood_benchmarks


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_benchmarks`: accuracy on each OOD benchmark, and the paper's on its.

    Fresh benchmarks have another group of columns, after the average, which leaves them out.
    """
    columns: list[MethodColumn] = []
    has_fresh = False
    for model in models:
        family = paper.published_family(model)
        for benchmark in [*scored_ood_benchmarks(scores, model), OOD_AVERAGE]:
            label = "OOD avg." if benchmark == OOD_AVERAGE else benchmark
            column = TableColumn(
                f"{model}.{benchmark}", label, method_table_title(model, family), "high"
            )
            measured = partial(accuracy_method_cell, scores, model, benchmark=benchmark)
            published = None
            if paper.published_number(family, "pi_0", benchmark) is not None:
                published = partial(published_method_cell, family, benchmark=benchmark)
            columns += method_columns(column, measured, published)
        fresh = fresh_columns(scores, model)
        columns += fresh
        has_fresh = has_fresh or bool(fresh)
    published_runs = beside_paper(columns, "; the paper's numbers are avg@16 over ten runs")
    note = f"{method_table_accuracy_note(scores)}{published_runs}."
    if has_fresh:
        note += FRESH_NOTE
    title = "Per-benchmark OOD accuracy"
    return method_table("table_benchmarks", title, note, ordered_methods(methods), columns)
