"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims.judging import HARDLY_MOVED
from geosd.reporting.fresh_columns import FRESH_NOTE, fresh_columns
from geosd.reporting.interval_columns import INTERVALS_NOTE, has_intervals, interval_columns
from geosd.reporting.method_style import method_style, ordered_methods
from geosd.reporting.method_tables import (
    MethodColumn,
    accuracy_method_cell,
    change_method_cell,
    method_table,
    method_table_accuracy_note,
)
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import (
    ID,
    NOT_COMPARED_METRICS,
    OOD_AVERAGE,
    POOL,
    WITH_SOLUTION,
    scores_by_seed,
)
from geosd.scores.step_log_tables import step_log_final_drift

SHOWN_PERCENT = 0.05
"""Least share of responses, in percent, that is not printed as 0.0."""
STILL = "†"
"""Stands at the label of a method that hardly moved from the base model, on one model or more."""


def build(
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    shares: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
) -> Table:
    """Build `table_main`: ID, OOD average and its change from pi_0 by method.

    Next to the change stand its intervals over problems, and over problems and seeds, where
    `shares` has rows: a study that was shipped without them has none. Fresh benchmarks have
    another group of columns.

    Where the scores say why responses were not compared with the right answer, their shares stand
    under the table. `STILL` marks methods whose mean d_FR from pi_0 ends below `HARDLY_MOVED`.
    """
    columns: list[MethodColumn] = []
    with_intervals, has_fresh = False, False
    for model in models:
        accuracy = partial(accuracy_method_cell, scores, model)
        in_distribution = TableColumn(f"{model}.{ID}", "ID", model, "high")
        average = TableColumn(f"{model}.{OOD_AVERAGE}", "OOD avg.", model, "high")
        change = TableColumn(f"{model}.delta_ood", "Δ OOD", model, "gain")
        columns += [
            (in_distribution, partial(accuracy, benchmark=ID)),
            (average, partial(accuracy, benchmark=OOD_AVERAGE)),
            (change, partial(_change, scores, model)),
        ]
        with_intervals = with_intervals or has_intervals(shares, model)
        if has_intervals(shares, model):
            columns += interval_columns(shares, model, methods)
        fresh = fresh_columns(scores, model)
        has_fresh = has_fresh or bool(fresh)
        columns += fresh
    note = (
        f"{method_table_accuracy_note(scores)}. OOD avg. is taken within each run over its OOD"
        " benchmarks; Δ OOD is its change from π₀."
    )
    if with_intervals:
        note += INTERVALS_NOTE
    if has_fresh:
        note += FRESH_NOTE
    still = [name for name in methods if _hardly_moved(drift, models, name)]
    if still:
        note += (
            f" {STILL}: the method ends less than {HARDLY_MOVED:g} radians (mean d_FR) from π₀, on"
            " one model or more."
        )
    title = "In-distribution and out-of-distribution accuracy"
    table = method_table("table_main", title, note, ordered_methods(methods), columns)
    rows = []
    for row, name in zip(table.rows, ordered_methods(methods), strict=True):
        rows.append(replace(row, mark=STILL if name in still else ""))
    table = replace(table, rows=tuple(rows))
    if NOT_COMPARED_METRICS["no answer"] not in set(scores["metric"]):
        return table
    remarks = []
    for model in models:
        remarks += _remarks(scores, model, ordered_methods(methods))
    return replace(table, remarks=tuple(remarks))


def _hardly_moved(drift: pd.DataFrame, models: Sequence[str], variant: str) -> bool:
    """Whether a method's runs end near the base model, on one model or more."""
    return any(
        step_log_final_drift(drift, model, variant).mean() < HARDLY_MOVED for model in models
    )


def _change(scores: pd.DataFrame, model: str, variant: str) -> TableCell:
    """The change of a method's OOD average from that of pi_0."""
    if variant == "pi_0":
        return TableCell(None)
    own = accuracy_method_cell(scores, model, variant, OOD_AVERAGE)
    base = accuracy_method_cell(scores, model, "pi_0", OOD_AVERAGE)
    return change_method_cell(own.number, base.number)


def _remarks(scores: pd.DataFrame, model: str, variants: Sequence[str]) -> Iterator[str]:
    """Responses of a model that were not compared: those of its pool, and those of each method."""

    def mean(variant: str, benchmark: str, metric: str) -> float:
        return scores_by_seed(scores, model, variant, benchmark, metric).mean()

    solved = mean(variants[0], POOL, WITH_SOLUTION)
    if not math.isnan(solved):
        shares = []
        for reason, metric in NOT_COMPARED_METRICS.items():
            share = mean(variants[0], POOL, metric)
            if share >= SHOWN_PERCENT:
                shares.append(f"{share:.1f} % {reason}")
        yield (
            f"Pool of {model}: {solved:.1f} % of the training problems have a verified solution;"
            " training sees these alone. Rollouts that were not compared with the right answer:"
            f" {', '.join(shares) or 'none'}."
        )
    found = []
    for reason, metric in NOT_COMPARED_METRICS.items():
        cells = []
        for variant in variants:
            in_distribution = mean(variant, ID, metric)
            average = mean(variant, OOD_AVERAGE, metric)
            if in_distribution >= SHOWN_PERCENT or average >= SHOWN_PERCENT:
                both = f"{TableCell(in_distribution).text} / {TableCell(average).text}"
                cells.append(f"{method_style(variant).label} {both}")
        if cells:
            found.append(f"{reason}: {', '.join(cells)}")
    yield (
        f"Responses of {model} that were not compared, in percent (ID / OOD): "
        f"{'; '.join(found) or 'none'}."
    )
