"""Common parts of tables with a row per method or candidate: cells, notes, the paper's columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import method
from geosd.reporting.sentences import accuracy_name, number_of_runs
from geosd.reporting.tables import Cell, Column, Row, Table, ranked
from geosd.scores.factorial_effects import over_draws
from geosd.scores.score_table import scores_by_seed
from geosd.scores.statistics import Group, effect_interval, replicate_means


def mean_cell(runs: pd.Series, form: str = ".1f") -> Cell:
    """A method's cell of mean and standard deviation over runs; empty without runs."""
    if runs.empty:
        return Cell(None)
    group = Group.of(runs)
    return Cell(group.mean, group.sd if group.n > 1 else None, form)


def accuracy_cell(scores: pd.DataFrame, model: str, variant: str, benchmark: str) -> Cell:
    """A method's cell of avg@k on a benchmark, mean and standard deviation over runs."""
    return mean_cell(scores_by_seed(scores, model, variant, benchmark))


def published_cell(
    family: str | None, variant: str, benchmark: str, metric: str = "avg@k", form: str = ".1f"
) -> Cell:
    """A method's cell of the paper's number, with its deviation where the paper gives one."""
    number = paper.published_number(family, variant, benchmark, metric)
    return Cell(None) if number is None else Cell(number.mean, number.sd, form)


def change_cell(value: float | None, reference: float | None) -> Cell:
    """A method's cell of the change from a reference; empty where either number is missing."""
    if value is None or reference is None:
        return Cell(None)
    return Cell(value - reference, form="+.1f")


def paired_change_cell(
    runs: pd.Series, reference: pd.Series, draws: pd.Series, form: str = ".1f"
) -> Cell:
    """A cell of the mean change over pairs of equal seed, ± half of Student's 95 % interval.

    `draws` has the draw of the base model that each seed starts from.
    """
    pairs = (runs - reference).dropna()
    if pairs.empty:
        return Cell(None)
    test = effect_interval([(pairs, draws.reindex(pairs.index))])
    return Cell(test.difference, test.high - test.difference, f"+{form}")


def over_draws_cell(values: pd.Series, draws: pd.Series, form: str) -> Cell:
    """A cell of the mean over draws ± half of Student's 95 % interval; empty without a value.

    Runs without a value are left out. Both arguments have a value for each run, indexed by seed.
    """
    known = values.dropna()
    found = over_draws(replicate_means(known, draws.reindex(known.index)))
    if found is None:
        return Cell(None)
    return Cell(found[0].difference, found[0].high - found[0].difference, form)


MethodColumn = tuple[Column, Callable[[str], Cell]]
"""A column of a table that has a row per method, and the cell of each variant."""


def method_columns(
    column: Column,
    measured: Callable[[str], Cell],
    published: Callable[[str], Cell] | None,
    label: str = "paper",
) -> list[MethodColumn]:
    """Columns of a table of methods: the study's, and the paper's where the paper has one."""
    if published is None:
        return [(column, measured)]
    return [(column, measured), (Column(f"{column.key}.paper", label, column.group), published)]


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
        Row(method(v).label, kind or method(v).kind, tuple(cell(v) for _, cell in columns))
        for v in variants
    )
    return ranked(Table(name, title, note, row_heading, tuple(c for c, _ in columns), rows))


def candidate_table(
    name: str,
    title: str,
    note: str,
    row_heading: str,
    columns: Sequence[Column],
    candidates: Iterable[tuple[str, str, Mapping[str, Cell]]],
) -> Table:
    """Make a table of rows, each of a label, a block, and cells by their columns' keys."""
    rows = tuple(
        Row(label, kind, tuple(cells.get(column.key, Cell(None)) for column in columns))
        for label, kind, cells in candidates
    )
    return Table(name, title, note, row_heading, tuple(columns), rows)


def group_title(model: str, family: str | None) -> str:
    """Heading over a model's columns in a table of methods: its name and the paper's family."""
    return f"{model} (paper: {family})" if family else model


def accuracy_note(scores: pd.DataFrame) -> str:
    """The beginning of a table's note: what its accuracies are."""
    return (
        f"{accuracy_name(scores)} in percent, mean ± standard deviation over"
        f" {number_of_runs(scores)}"
    )


def paired_note(scores: pd.DataFrame, reference: str) -> str:
    """The note of a table of accuracies, of changes by pairs from a reference, and of drift."""
    return (
        f"{accuracy_note(scores)}. Δ is the change from {reference}, the mean over pairs of equal"
        " seed ± the half-width of Student's 95 % interval, without correction for the number of"
        " rows. d_FR is the mean Fisher-Rao distance from π₀ at the end of training, in radians."
    )
