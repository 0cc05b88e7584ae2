"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import method, ordered
from geosd.reporting.method_tables import (
    MethodColumn,
    accuracy_cell,
    accuracy_note,
    beside_paper,
    change_cell,
    group_title,
    mean_cell,
    method_columns,
    method_table,
    published_cell,
)
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.score_table import (
    ID,
    NOT_COMPARED_METRICS,
    OOD_AVERAGE,
    POOL,
    WITH_SOLUTION,
    scores_by_seed,
)

SPEC = OutputSpec(
    title="accuracy in and out of distribution",
    caption="""Accuracy in and out of distribution, mean over seeds and its standard deviation{,
    beside the paper's}.""",
    reads=("scores",),
    settings=("models", "methods"),
    paper="Table main_id_ood",
    needs=("benchmarks",),
)

TRUNCATED = "truncated"
QUANTITIES = ((ID, "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))
SHOWN_PERCENT = 0.05
"""Least share of responses, in percent, that is not printed as 0.0."""


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_main`: ID, OOD average and its change from pi_0 by method.

    Where the scores say why responses were not compared with the right answer, shares of truncated
    ones stand beside the accuracies, and the others under the table.
    """
    columns: list[MethodColumn] = []
    why = NOT_COMPARED_METRICS["no answer"] in set(scores["metric"])
    for model in models:
        family = paper.paper_family(model)
        measured, published = partial(accuracy_cell, scores, model), None
        for key, label in QUANTITIES:
            group = group_title(model, family)
            if family:
                published = partial(_cell, partial(published_cell, family), key, digits=10)
            column = Column(f"{model}.{key}", label, group, "high")
            columns += method_columns(column, partial(_cell, measured, key), published)
            if why and key != "delta_ood":
                share = partial(_share_cell, scores, model, benchmark=key)
                columns.append((Column(f"{column.key}.{TRUNCATED}", "cut", group), share))
    note = (
        f"{accuracy_note(scores)}. OOD avg. is taken within each run over its OOD benchmarks;"
        " Δ OOD is its change from π₀."
    )
    if why:
        note += " cut: share of responses that were truncated at the cap; they have no answer."
    note += beside_paper(columns)
    title = "In-distribution and out-of-distribution accuracy"
    table = method_table("table_main", title, note, ordered(methods), columns)
    remarks = (remark for model in models for remark in _remarks(scores, model, ordered(methods)))
    return replace(table, remarks=tuple(remarks) if why else ())


def _share_cell(scores: pd.DataFrame, model: str, variant: str, benchmark: str) -> Cell:
    shares = scores_by_seed(scores, model, variant, benchmark, TRUNCATED)
    return replace(mean_cell(shares), sd=None)


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
        if reason == TRUNCATED:
            continue
        both = {v: [mean(v, at, metric) for at in (ID, OOD_AVERAGE)] for v in variants}
        cells = [
            f"{method(v).label} {' / '.join(Cell(share).text for share in shares)}"
            for v, shares in both.items()
            if any(share >= SHOWN_PERCENT for share in shares)
        ]
        found += [f"{reason}: {', '.join(cells)}"] if cells else []
    yield (
        f"Other responses of {model} that were not compared, in percent (ID / OOD): "
        f"{'; '.join(found) or 'none'}."
    )


def _cell(
    accuracy: Callable[[str, str], Cell], key: str, variant: str, digits: int | None = None
) -> Cell:
    """An accuracy, or the change from pi_0, rounded if both numbers have few digits."""
    if key != "delta_ood":
        return accuracy(variant, key)
    if variant == "pi_0":
        return Cell(None)
    change = change_cell(*(accuracy(v, OOD_AVERAGE).number for v in (variant, "pi_0")))
    if digits is None or change.number is None:
        return change
    return replace(change, value=round(change.number, digits))
