"""One table model, three forms: CSV for programs, Markdown for terminals, booktabs for papers."""

import csv
import io
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Literal

from geosd.files import write_text

MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """One entry of a table, and how it is printed: a number, a word, or None for nothing.

    `sd` is a deviation beside the number, `form` the format of both, e.g. ".1f", "+.1f", "d"; the
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
        return MISSING if self.number is None else format(self.number, self.form)


@dataclass(frozen=True)
class Column:
    """A column of a table: key in the CSV, heading, one over neighbours, and which is `better`."""

    key: str
    label: str
    group: str = ""
    better: Literal["high", "low"] | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: its label, the block of rows it stands in, a cell for each column."""

    label: str
    kind: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table with its caption, `title` and `note`, its file's `name`, and `remarks` under it."""

    name: str
    title: str
    note: str
    row_heading: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that every row has a cell for every column."""
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"table {self.name}, row {row.label}: {len(row.cells)} cells for"
                    f" {len(self.columns)} columns.\nHint: an empty entry is Cell(None)."
                )


def ranked(table: Table) -> Table:
    """Mark the best and the second-best cell, as printed, of columns that have a `better`."""
    rows = [list(row.cells) for row in table.rows]
    for i, column in enumerate(table.columns):
        if column.better is None:
            continue
        values = [None if cells[i].number is None else float(cells[i].text) for cells in rows]
        order = sorted({v for v in values if v is not None}, reverse=column.better == "high")
        for cells, value in zip(rows, values, strict=True):
            if value is not None and value in order[:2]:
                cells[i] = replace(cells[i], rank="best" if value == order[0] else "second")
    marked = tuple(
        replace(row, cells=tuple(cells)) for row, cells in zip(table.rows, rows, strict=True)
    )
    return replace(table, rows=marked)


def save(table: Table, folder: Path | str, name: str = "") -> list[Path]:
    """Save a table as CSV, Markdown and LaTeX; ValueError if no row has a number or a word."""
    if all(cell.value is None for row in table.rows for cell in row.cells):
        raise ValueError(
            f"table {name or table.name} is empty: of {len(table.rows)} rows none has a cell with a"
            " value.\nHint: the study has nothing that it shows; take it from the study's"
            " `outputs`."
        )
    forms = {"csv": to_csv(table), "md": to_markdown(table), "tex": to_latex(table)}
    paths = [Path(folder) / f"{name or table.name}.{ending}" for ending in forms]
    for path, text in zip(paths, forms.values(), strict=True):
        write_text(path, text)
    return paths


def to_csv(table: Table) -> str:
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
            line.append(_exact(cell.value))
            if has:
                line.append(_exact(cell.sd))
        writer.writerow(line)
    return out.getvalue()


def _exact(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else str(value)


def to_markdown(table: Table) -> str:
    """A table as Markdown, one for each group of columns, so that a terminal shows it whole."""
    parts = [f"# {table.title}", textwrap.fill(table.note, 96)] if table.note else [table.title]
    if any(cell.rank for row in table.rows for cell in row.cells):
        parts.append("**best**, _second-best_")
    for group in dict.fromkeys(column.group for column in table.columns):
        at = [i for i in range(len(table.columns)) if table.columns[i].group == group]
        lines = [[table.row_heading, *(table.columns[i].label for i in at)]]
        lines += [[row.label, *(_markdown(row.cells[i]) for i in at)] for row in table.rows]
        parts += [f"## {group}"] if group else []
        parts.append(markdown_table(lines))
    parts += [textwrap.fill(remark, 96) for remark in table.remarks]
    return "\n\n".join(parts) + "\n"


def _markdown(cell: Cell) -> str:
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


_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "π₀": r"$\pi_0$",
    "λ": r"$\lambda$",
    "Δ": r"$\Delta$",
    "→": r"$\to$",
    "±": r"$\pm$",
    "–": "--",
    "<": r"$<$",
    ">": r"$>$",
}


def escape_latex(text: str) -> str:
    """Text with LaTeX's special characters escaped and our symbols as math."""
    pattern = "|".join(re.escape(key) for key in sorted(_LATEX, key=len, reverse=True))
    return re.sub(pattern, lambda match: _LATEX[match[0]], text)


def to_latex(table: Table) -> str:
    """A table as a LaTeX float, which needs the packages booktabs and graphicx."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    groups = Counter(column.group for column in table.columns)
    head = [line(map(escape_latex, [table.row_heading, *(c.label for c in table.columns)]))]
    if any(groups):
        titles = [rf"\multicolumn{{{n}}}{{c}}{{{escape_latex(g)}}}" for g, n in groups.items()]
        ends = pairwise(accumulate(groups.values(), initial=1))
        rules = [rf"\cmidrule(lr){{{before + 1}-{end}}}" for before, end in ends]
        head = [line(["", *titles]), "".join(rules), *head]
    body: list[str] = []
    width = 1 + len(table.columns)
    named = len({row.kind for row in table.rows}) > 1
    for kind, rows in groupby(table.rows, key=lambda row: row.kind):
        if named:
            body += [r"\midrule"] if body else []
            body.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{escape_latex(kind)}}}}} \\")
        body += [line([escape_latex(row.label), *map(_latex_cell, row.cells)]) for row in rows]
    caption = escape_latex(f"{table.title}. {table.note}".strip())
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\small",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.name.replace('_', '-')}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        *head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}%",
        "}",
        *(rf"\par\smallskip {{\footnotesize {escape_latex(text)}\par}}" for text in table.remarks),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell.value, str) or cell.number is None:
        return escape_latex(cell.text)
    # 1.2e-05 -> 1.2\times10^{-5}
    number = re.sub(
        r"e\+?(-?)0*(\d+)$", lambda power: rf"\times10^{{{power[1]}{power[2]}}}", cell.text
    )
    marked = {"best": rf"\mathbf{{{number}}}", "second": rf"\underline{{{number}}}"}
    spread = f"_{{{cell.spread}}}" if cell.spread else ""
    return f"${marked.get(cell.rank, number)}{spread}$"
