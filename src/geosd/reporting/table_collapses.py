"""How many runs of each method collapse at each learning rate, over the studies of a family."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method, ordered, short_rate
from geosd.reporting.method_tables import candidate_table
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.rate_selection import COLLAPSE, VALIDATION, collapsed_runs
from geosd.scores.tidy import select_rows

ByStudy = Mapping[str, Any]
"""What each study of a family has: its tidy scores, or one of its settings."""


def build(scores: ByStudy, rates_of_runs: ByStudy, purpose: ByStudy) -> Table:
    """Build `table_collapses`: `collapsed of all` runs, a row a method, a column a rate.

    Counted are the runs of the studies on validation problems (`collapsed_runs`).

    Raises:
        ValueError: No study is on validation problems.
    """
    validated = [study for study in scores if purpose[study] == "validation"]
    if not validated:
        raise ValueError(
            "No study has runs on validation problems, by which a collapse is known.\nHint: name"
            " studies with `data: {purpose: validation}` under `of`."
        )
    each = [_counts(scores[study], rates_of_runs[study]) for study in validated]
    counts = pd.concat(each).groupby(level=["variant", "rate"]).sum()
    rates = sorted(counts.index.unique("rate"))
    columns = [Column(short_rate(rate), short_rate(rate), "learning rate") for rate in rates]
    rows = []
    for name in ordered(counts.index.unique("variant")):
        of_variant = counts.loc[name]
        cells = {
            short_rate(rate): Cell(f"{row['collapsed']:g} of {row['runs']:g}")
            for rate, row in of_variant.iterrows()
        }
        rows.append((method(name).label, method(name).kind, cells))
    note = (
        f"Runs whose avg@k on the validation problems lies {COLLAPSE:g} points or more below that"
        f" of π₀ with the same seed, of all runs of {len(validated)} studies."
    )
    title = "Runs that collapse, by learning rate"
    return candidate_table("table_collapses", title, note, "Method", columns, rows)


def _counts(scores: pd.DataFrame, rates_of_runs: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """`collapsed` and `runs` of each variant and rate of a study."""
    collapsed = collapsed_runs(scores)
    runs = select_rows(scores, benchmark=VALIDATION, metric="avg@k")["variant"].value_counts()
    rows = [
        {
            "variant": of_run["variant"],
            "rate": of_run["learning_rate"],
            "collapsed": collapsed[run],
            "runs": runs[run],
        }
        for run, of_run in rates_of_runs.items()
    ]
    return pd.DataFrame(rows).set_index(["variant", "rate"])
