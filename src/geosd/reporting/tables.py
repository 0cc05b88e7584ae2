"""The model of a table, as CSV for programs, and as Markdown for terminals."""

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

MISSING = "–"


@dataclass(frozen=True)
class TableCell:
    """One entry of a table, and how it is printed: a number, a word, or None for nothing.

    `sd` is a deviation after the number, `form` the format of both, e.g. ".1f", "+.1f", "d"; the
    best of a column is bold, the second underlined.
    """

    value: float | str | None
    sd: float | None = None
    form: str = ".1f"
    rank: Literal["", "best", "second"] = ""

    @property
    def number(self) -> float | None:
        """The cell's value if it is a finite number."""
        if isinstance(self.value, str) or self.value is None or not math.isfinite(self.value):
            return None
        return self.value

    @property
    def spread(self) -> str:
        """The cell's deviation as text, without sign; empty where there is none."""
        if self.sd is None or not math.isfinite(self.sd) or self.number is None:
            return ""
        return format(self.sd, self.form.lstrip("+"))

    @property
    def text(self) -> str:
        """The cell's value as text, without deviation and rank."""
        if isinstance(self.value, str):
            return self.value
        if self.number is None:
            return MISSING
        text = format(self.number, self.form)
        return text if float(text) else text.lstrip("+-")  # a zero has no sign


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: key in the CSV, heading, one over neighbours, and which is `better`.

    Of a column of gains only what is above 0 is marked.
    """

    key: str
    label: str
    group: str = ""
    better: Literal["high", "low", "gain"] | None = None


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its label, the block of rows it stands in, a cell for each column.

    A `mark` stands behind the label where people read it, and not in the CSV.
    """

    label: str
    kind: str
    cells: tuple[TableCell, ...]
    mark: str = ""

    @property
    def shown(self) -> str:
        """The row's label with its mark."""
        return self.label + self.mark


@dataclass(frozen=True)
class Table:
    """A table with its caption, `title` and `note`, its file's `name`, and `remarks` under it."""

    name: str
    title: str
    note: str
    row_heading: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every row has a cell for every column."""
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"table {self.name}, row {row.label}: {len(row.cells)} cells for"
                    f" {len(self.columns)} columns.\nHint: an empty entry is Cell(None)."
                )


def rank_table(table: Table) -> Table:
    """Mark the best and the second-best cell, as printed, of columns that have a `better`."""
    rows = [list(row.cells) for row in table.rows]
    for i, column in enumerate(table.columns):
        if column.better is None:
            continue
        values = [None if cells[i].number is None else float(cells[i].text) for cells in rows]
        marked = {v for v in values if v is not None and (column.better != "gain" or v > 0)}
        order = sorted(marked, reverse=column.better != "low")
        for cells, value in zip(rows, values, strict=True):
            if value is not None and value in order[:2]:
                cells[i] = replace(cells[i], rank="best" if value == order[0] else "second")
    pairs = zip(table.rows, rows, strict=True)
    return replace(table, rows=tuple(replace(row, cells=tuple(cells)) for row, cells in pairs))


def table_to_csv(table: Table) -> str:
    """A table as CSV: full precision; a deviation has a column of its own, `<key>.sd`."""
    with_sd = [
        any(row.cells[i].sd is not None for row in table.rows) for i in range(len(table.columns))
    ]
    header = [table.row_heading.lower(), "kind"]
    for column, has in zip(table.columns, with_sd, strict=True):
        header += [column.key, f"{column.key}.sd"] if has else [column.key]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in table.rows:
        line = [row.label, row.kind]
        for cell, has in zip(row.cells, with_sd, strict=True):
            line += [_exact(cell.value), _exact(cell.sd)] if has else [_exact(cell.value)]
        writer.writerow(line)
    return out.getvalue()


def _exact(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else str(value)


def table_to_markdown(table: Table) -> str:
    """A table as Markdown, one for each group of columns, so that a terminal shows it whole."""
    parts = [f"# {table.title}", textwrap.fill(table.note, 96)] if table.note else [table.title]
    if any(cell.rank == "second" for row in table.rows for cell in row.cells):
        parts.append("**best**, _second-best_")
    for group in dict.fromkeys(column.group for column in table.columns):
        at = [i for i in range(len(table.columns)) if table.columns[i].group == group]
        lines = [[table.row_heading, *(table.columns[i].label for i in at)]]
        lines += [[row.shown, *(_markdown(row.cells[i]) for i in at)] for row in table.rows]
        parts += [f"## {group}"] if group else []
        parts.append(markdown_table(lines))
    parts += [textwrap.fill(remark, 96) for remark in table.remarks]
    return "\n\n".join(parts) + "\n"


def _markdown(cell: TableCell) -> str:
    marks = {"best": "**", "second": "_", "": ""}[cell.rank]
    spread = f" ±{cell.spread}" if cell.spread else ""
    return f"{marks}{cell.text}{marks}{spread}"


def markdown_table(lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Lines of cells, header first, as a padded Markdown table; `left` columns are flush left."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(cells[0]))]

    def joined(line: Sequence[str]) -> str:
        padded = [
            cell.ljust(w) if i < left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|".join(
        ":" + "-" * (w + 1) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(widths)
    )
    return "\n".join([joined(cells[0]), f"|{rule}|", *map(joined, cells[1:])])
