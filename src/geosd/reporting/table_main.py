"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims.judging import HARDLY_MOVED
from geosd.reporting.method_style import method, ordered
from geosd.reporting.method_tables import (
    MethodColumn,
    accuracy_cell,
    accuracy_note,
    change_cell,
    method_table,
)
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.score_table import (
    ID,
    NOT_COMPARED_METRICS,
    OOD_AVERAGE,
    POOL,
    WITH_SOLUTION,
    scores_by_seed,
)
from geosd.scores.step_log_tables import final_drift

SHOWN_PERCENT = 0.05
"""Least share of responses, in percent, that is not printed as 0.0."""
STILL = "†"
"""Stands at the label of a method that hardly moved from the base model, on one model or more."""


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], methods: Sequence[str]
) -> Table:
    """Build `table_main`: ID, OOD average and its change from pi_0 by method.

    Where the scores say why responses were not compared with the right answer, their shares stand
    under the table. `STILL` marks methods whose mean d_FR from pi_0 ends below `HARDLY_MOVED`.
    """
    columns: list[MethodColumn] = []
    for model in models:
        accuracy = partial(accuracy_cell, scores, model)
        columns += [
            (Column(f"{model}.{ID}", "ID", model, "high"), partial(accuracy, benchmark=ID)),
            (
                Column(f"{model}.{OOD_AVERAGE}", "OOD avg.", model, "high"),
                partial(accuracy, benchmark=OOD_AVERAGE),
            ),
            (Column(f"{model}.delta_ood", "Δ OOD", model, "gain"), partial(_change, scores, model)),
        ]
    note = (
        f"{accuracy_note(scores)}. OOD avg. is taken within each run over its OOD benchmarks;"
        " Δ OOD is its change from π₀."
    )
    still = [name for name in methods if _hardly_moved(drift, models, name)]
    if still:
        note += (
            f" {STILL}: the method ends less than {HARDLY_MOVED:g} radians (mean d_FR) from π₀, on"
            " one model or more."
        )
    title = "In-distribution and out-of-distribution accuracy"
    table = method_table("table_main", title, note, ordered(methods), columns)
    marks = [STILL if v in still else "" for v in ordered(methods)]
    rows = (replace(row, mark=mark) for row, mark in zip(table.rows, marks, strict=True))
    table = replace(table, rows=tuple(rows))
    if NOT_COMPARED_METRICS["no answer"] not in set(scores["metric"]):
        return table
    remarks = (remark for model in models for remark in _remarks(scores, model, ordered(methods)))
    return replace(table, remarks=tuple(remarks))


def _hardly_moved(drift: pd.DataFrame, models: Sequence[str], variant: str) -> bool:
    """Whether a method's runs end near the base model, on one model or more."""
    return any(final_drift(drift, model, variant).mean() < HARDLY_MOVED for model in models)


def _change(scores: pd.DataFrame, model: str, variant: str) -> Cell:
    """The change of a method's OOD average from that of pi_0."""
    if variant == "pi_0":
        return Cell(None)
    both = (accuracy_cell(scores, model, v, OOD_AVERAGE).number for v in (variant, "pi_0"))
    return change_cell(*both)


def _remarks(scores: pd.DataFrame, model: str, variants: Sequence[str]) -> Iterator[str]:
    """What responses of a model were not compared: those of its pool, and those of each method."""

    def mean(variant: str, benchmark: str, metric: str) -> float:
        return scores_by_seed(scores, model, variant, benchmark, metric).mean()

    solved = mean(variants[0], POOL, WITH_SOLUTION)
    if not math.isnan(solved):
        of_pool = {r: mean(variants[0], POOL, metric) for r, metric in NOT_COMPARED_METRICS.items()}
        shares = [f"{share:.1f} % {r}" for r, share in of_pool.items() if share >= SHOWN_PERCENT]
        yield (
            f"Pool of {model}: {solved:.1f} % of the training problems have a verified solution;"
            " training sees these alone. Rollouts that were not compared with the right answer:"
            f" {', '.join(shares) or 'none'}."
        )
    found = []
    for reason, metric in NOT_COMPARED_METRICS.items():
        both = {v: [mean(v, at, metric) for at in (ID, OOD_AVERAGE)] for v in variants}
        cells = [
            f"{method(v).label} {' / '.join(Cell(share).text for share in shares)}"
            for v, shares in both.items()
            if any(share >= SHOWN_PERCENT for share in shares)
        ]
        found += [f"{reason}: {', '.join(cells)}"] if cells else []
    yield (
        f"Responses of {model} that were not compared, in percent (ID / OOD): "
        f"{'; '.join(found) or 'none'}."
    )
