"""How many runs of each method collapse at each learning rate, over the studies of a family."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method_style, method_style_rate, ordered_methods
from geosd.reporting.method_tables import candidate_method_table
from geosd.reporting.run_accuracies import rate_run_accuracies
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.collapse import ON_TEST, ON_VALIDATION, collapse_rule
from geosd.scores.rate_selection import VALIDATION, collapsed_runs_in_selection
from geosd.scores.tidy import select_tidy_rows

ByStudy = Mapping[str, Any]
"""What each study of a family has: its tidy scores, or one of its settings."""
GROUPS = {"test": "test problems, ID or OOD", "validation": "ID validation problems"}
"""What the runs are judged on, and how the columns of each say so."""


def build(scores: ByStudy, rates_of_runs: ByStudy, purpose: ByStudy) -> Table:
    """Build `table_collapses`: `collapsed of all` runs, a row a method, columns of rates.

    The runs of the studies on test problems are judged in and out of distribution, those of the
    studies on validation problems in distribution, which is all that a selection sees.

    Raises:
        ValueError: No study is on test problems, or none on validation problems.
    """
    studies: dict[str, list[str]] = {problems: [] for problems in GROUPS}
    for study in scores:
        on_validation = purpose[study] == "validation"
        studies["validation" if on_validation else "test"].append(study)
    missing = [problems for problems, of_problems in studies.items() if not of_problems]
    if missing:
        raise ValueError(
            f"No study has runs on {missing[0]} problems, and the table has both.\nHint: name"
            " studies under `of`: each setting's, and one with `data: {purpose: validation}`."
        )
    counted = {"test": _on_test, "validation": _on_validation}
    counts = {}
    for problems, of_problems in studies.items():
        each = [counted[problems](scores[name], rates_of_runs[name]) for name in of_problems]
        counts[problems] = pd.concat(each).groupby(level=["variant", "rate"]).sum()
    return _table(counts, settings=len(studies["test"]))


def _on_test(scores: pd.DataFrame, rates_of_runs: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """`collapsed` and `runs` of each variant and rate of a study on test problems."""
    points = [{"run": run, **rate} for run, rate in rates_of_runs.items()]
    (model,) = scores["model"].unique()
    runs, _ = rate_run_accuracies(scores, model, points)
    by_rate = runs.rename(columns={"learning_rate": "rate"}).groupby(["variant", "rate"])
    return by_rate["collapsed"].agg(collapsed="sum", runs="size")


def _on_validation(
    scores: pd.DataFrame, rates_of_runs: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """`collapsed` and `runs` of each variant and rate of a study on validation problems."""
    collapsed = collapsed_runs_in_selection(scores)
    runs = select_tidy_rows(scores, benchmark=VALIDATION, metric="avg@k")["variant"].value_counts()
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


def _table(counts: Mapping[str, pd.DataFrame], settings: int) -> Table:
    """The table of the counts on each kind of problems, over so many settings of the dial."""
    columns = []
    cells: dict[str, dict[str, TableCell]] = {}
    for problems, of_problems in counts.items():
        for rate in sorted(of_problems.index.unique("rate")):
            key = f"{problems} {method_style_rate(rate)}"
            columns.append(TableColumn(key, method_style_rate(rate), GROUPS[problems]))
            for name, row in of_problems.xs(rate, level="rate").iterrows():
                cell = TableCell(f"{row['collapsed']:g} of {row['runs']:g}")
                cells.setdefault(str(name), {})[key] = cell
    rows = [
        (method_style(name).label, method_style(name).kind, cells[name])
        for name in ordered_methods(cells)
    ]
    note = (
        f"Runs that collapse, of all runs of a method and rate over {settings} settings of the"
        f" dial. {collapse_rule(ON_TEST)} The other columns judge the same runs"
        f" {ON_VALIDATION}."
    )
    title = "Runs that collapse, by learning rate"
    return candidate_method_table("table_collapses", title, note, "Method", columns, rows)
