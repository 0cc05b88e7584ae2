"""Common parts of tables with a row per method or candidate: cells, notes, the paper's columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import method_style
from geosd.reporting.sentences import accuracy_in_sentence, number_of_runs_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow, rank_table
from geosd.scores.factorial_effects import effect_over_draws
from geosd.scores.problems_and_seeds import ProblemsAndSeedsInterval
from geosd.scores.score_table import scores_by_seed
from geosd.scores.statistics import GroupStatistics, replicate_means, student_effect_interval


def mean_method_cell(runs: pd.Series, form: str = ".1f") -> TableCell:
    """A method's cell of mean and standard deviation over runs; empty without runs."""
    if runs.empty:
        return TableCell(None)
    group = GroupStatistics.of(runs)
    return TableCell(group.mean, group.sd if group.n > 1 else None, form)


def accuracy_method_cell(
    scores: pd.DataFrame, model: str, variant: str, benchmark: str
) -> TableCell:
    """A method's cell of avg@k on a benchmark, mean and standard deviation over runs."""
    return mean_method_cell(scores_by_seed(scores, model, variant, benchmark))


def published_method_cell(
    family: str | None, variant: str, benchmark: str, metric: str = "avg@k", form: str = ".1f"
) -> TableCell:
    """A method's cell of the paper's number, with its deviation where the paper gives one."""
    number = paper.published_number(family, variant, benchmark, metric)
    return TableCell(None) if number is None else TableCell(number.mean, number.sd, form)


def change_method_cell(value: float | None, reference: float | None) -> TableCell:
    """A method's cell of the change from a reference; empty where either number is missing."""
    if value is None or reference is None:
        return TableCell(None)
    return TableCell(value - reference, form="+.1f")


def paired_method_cell(
    runs: pd.Series, reference: pd.Series, draws: pd.Series, form: str = ".1f"
) -> TableCell:
    """A cell of the mean change over pairs of equal seed, ± half of Student's 95 % interval.

    `draws` has the draw of the base model that each seed starts from.
    """
    pairs = (runs - reference).dropna()
    if pairs.empty:
        return TableCell(None)
    test = student_effect_interval([(pairs, draws.reindex(pairs.index))])
    return TableCell(test.difference, test.high - test.difference, f"+{form}")


def over_draws_method_cell(values: pd.Series, draws: pd.Series, form: str) -> TableCell:
    """A cell of the mean over draws ± half of Student's 95 % interval; empty without a value.

    Runs without a value are left out. Both arguments have a value for each run, indexed by seed.
    """
    known = values.dropna()
    found = effect_over_draws(replicate_means(known, draws.reindex(known.index)))
    if found is None:
        return TableCell(None)
    return TableCell(found[0].difference, found[0].high - found[0].difference, form)


def interval_text(interval: ProblemsAndSeedsInterval) -> str:
    """The ends of an interval in points, in brackets."""
    return f"[{signed_text(interval.low)}, {signed_text(interval.high)}]"


def signed_text(value: float) -> str:
    """A number with one decimal and its sign; a zero has none."""
    text = f"{value:+.1f}"
    return (text if float(text) else text[1:]).replace("-", "−")


MethodColumn = tuple[TableColumn, Callable[[str], TableCell]]
"""A column of a table that has a row per method, and the cell of each variant."""


def method_columns(
    column: TableColumn,
    measured: Callable[[str], TableCell],
    published: Callable[[str], TableCell] | None,
    label: str = "paper",
) -> list[MethodColumn]:
    """Columns of a table of methods: the study's, and the paper's where the paper has one."""
    if published is None:
        return [(column, measured)]
    return [
        (column, measured),
        (TableColumn(f"{column.key}.paper", label, column.group), published),
    ]


def method_table(
    name: str,
    title: str,
    note: str,
    variants: Sequence[str],
    columns: Sequence[MethodColumn],
    row_heading: str = "Method",
    kind: str = "",
) -> Table:
    """Make a table with a row per method, in blocks by its kind or `kind`, the best marked."""
    rows = tuple(
        TableRow(
            method_style(v).label,
            kind or method_style(v).kind,
            tuple(cell(v) for _, cell in columns),
        )
        for v in variants
    )
    return rank_table(Table(name, title, note, row_heading, tuple(c for c, _ in columns), rows))


def candidate_method_table(
    name: str,
    title: str,
    note: str,
    row_heading: str,
    columns: Sequence[TableColumn],
    candidates: Iterable[tuple[str, str, Mapping[str, TableCell]]],
) -> Table:
    """Make a table of rows, each of a label, a block, and cells by their columns' keys."""
    rows = tuple(
        TableRow(label, kind, tuple(cells.get(column.key, TableCell(None)) for column in columns))
        for label, kind, cells in candidates
    )
    return Table(name, title, note, row_heading, tuple(columns), rows)


def method_table_title(model: str, family: str | None) -> str:
    """Heading over a model's columns in a table of methods: its name and the paper's family."""
    return f"{model} (paper: {family})" if family else model


def method_table_accuracy_note(scores: pd.DataFrame) -> str:
    """The beginning of a table's note: what its accuracies are."""
    return (
        f"{accuracy_in_sentence(scores)} in percent, mean ± standard deviation over"
        f" {number_of_runs_sentence(scores)}"
    )


def method_table_paired_note(scores: pd.DataFrame, reference: str) -> str:
    """The note of a table of accuracies, of changes by pairs from a reference, and of drift."""
    return (
        f"{method_table_accuracy_note(scores)}. Δ is the change from {reference}, the mean over"
        " pairs of equal seed ± the half-width of Student's 95 % interval, without correction for"
        " the number of rows. d_FR is the mean Fisher-Rao distance from π₀ at the end of training,"
        " in radians."
    )
