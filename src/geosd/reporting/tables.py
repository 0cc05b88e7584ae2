"""One table model, three forms: CSV for programs, Markdown for terminals, booktabs for papers."""

import csv
import io
import math
import re
import textwrap
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
        if self.number is None:
            return MISSING
        text = format(self.number, self.form)
        return text if float(text) else text.lstrip("+-")  # a zero has no sign


@dataclass(frozen=True)
class Column:
    """A column of a table: key in the CSV, heading, one over neighbours, and which is `better`.

    Of a column of gains only what is above 0 is marked.
    """

    key: str
    label: str
    group: str = ""
    better: Literal["high", "low", "gain"] | None = None


@dataclass(frozen=True)
class Row:
    """A row of a table: its label, the block of rows it stands in, a cell for each column.

    A `mark` stands behind the label where people read it, and not in the CSV.
    """

    label: str
    kind: str
    cells: tuple[Cell, ...]
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
        marked = {v for v in values if v is not None and (column.better != "gain" or v > 0)}
        order = sorted(marked, reverse=column.better != "low")
        for cells, value in zip(rows, values, strict=True):
            if value is not None and value in order[:2]:
                cells[i] = replace(cells[i], rank="best" if value == order[0] else "second")
    pairs = zip(table.rows, rows, strict=True)
    return replace(table, rows=tuple(replace(row, cells=tuple(cells)) for row, cells in pairs))


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
            line += [_exact(cell.value), _exact(cell.sd)] if has else [_exact(cell.value)]
        writer.writerow(line)
    return out.getvalue()


def _exact(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else str(value)


def to_markdown(table: Table) -> str:
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
    "†": r"$\dagger$",
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


TEXT_PT = 397.5
"""The paper's text width, 5.5 inches, in TeX's points."""
SIZES = {"small": 9, "footnotesize": 8, "scriptsize": 7}
"""Sizes of LaTeX's letters in points; a table of numbers is set in the largest that fits."""
GAP_PT = 6.0
"""Between two columns."""
WORDS = 26
"""Letters from which on a column is of words, in lines of that width."""
LONG = 45
"""Lines from which on a table runs over pages."""


def to_latex(table: Table) -> str:
    """A table in LaTeX for the paper's text width; it needs booktabs, array and longtable.

    It is set in the largest of `SIZES` in which it fits. One that is too wide for all has parts
    below each other, each with its rows' labels; one that is too long for a page is a longtable.
    """
    columns = range(len(table.columns))
    size = next((s for s in SIZES if _width(table, columns) * SIZES[s] <= _room(columns)), None)
    parts = [columns] if size else _parts(table, SIZES["footnotesize"])
    size = size or "footnotesize"
    bodies = [_latex_part(table, part) for part in parts]
    caption = escape_latex(f"{table.title}. {table.note}".strip())
    label = rf"\label{{tab:{table.name.replace('_', '-')}}}"
    remarks = [rf"\par\smallskip {{\footnotesize {escape_latex(r)}\par}}" for r in table.remarks]
    begin = [rf"\{size}", rf"\setlength{{\tabcolsep}}{{{GAP_PT / 2:g}pt}}"]
    if sum(len(table.rows) + 4 for _ in parts) < LONG:
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", label]
        lines += [r"\smallskip", *begin]
        for number, (form, head, body) in enumerate(bodies):
            lines += [r"\par\medskip"] if number else []
            lines += [rf"\begin{{tabular}}{{{form}}}", r"\toprule", *head, r"\midrule", *body]
            lines += [r"\bottomrule", r"\end{tabular}"]
        return "\n".join([*lines, *remarks, r"\end{table}"]) + "\n"
    lines = ["{", *begin, r"\setlength{\LTcapwidth}{\linewidth}"]
    for number, (form, head, body) in enumerate(bodies):
        top = [r"\toprule", *head, r"\midrule"]
        lines += [rf"\begin{{longtable}}{{{form}}}"]
        lines += [] if number else [rf"\caption{{{caption}}}{label}\\", *top, r"\endfirsthead"]
        lines += [*top, r"\endhead", *body, r"\bottomrule", r"\end{longtable}"]
    return "\n".join([*lines, *remarks, "}"]) + "\n"


def _latex_part(table: Table, part: Sequence[int]) -> tuple[str, list[str], list[str]]:
    """The column types, the head and the rows of the columns `part` of a table."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    columns = [table.columns[i] for i in part]
    groups = [(group, len(list(of))) for group, of in groupby(column.group for column in columns)]
    head = [line(map(escape_latex, [table.row_heading, *(c.label for c in columns)]))]
    if any(group for group, _ in groups):
        titles = [rf"\multicolumn{{{n}}}{{c}}{{{escape_latex(group)}}}" for group, n in groups]
        ends = pairwise(accumulate((n for _, n in groups), initial=1))
        rules = [rf"\cmidrule(lr){{{before + 1}-{end}}}" for before, end in ends]
        head = [line(["", *titles]), "".join(rules), *head]
    body: list[str] = []
    named = len({row.kind for row in table.rows}) > 1
    for kind, rows in groupby(table.rows, key=lambda row: row.kind):
        if named:
            body += [r"\midrule"] if body else []
            title = rf"\emph{{{escape_latex(kind)}}}"
            body.append(rf"\multicolumn{{{1 + len(columns)}}}{{l}}{{{title}}} \\")
        for row in rows:
            cells = (_latex_cell(row.cells[i]) for i in part)
            body.append(line([escape_latex(row.shown), *cells]))
    words = [i for i in part if _em(table, i) > WORDS / 2]
    kinds = [
        rf">{{\raggedright\arraybackslash}}p{{{WORDS / 2:g}em}}" if i in words else "r"
        for i in part
    ]
    return "l" + "".join(kinds), head, body


def _em(table: Table, column: int) -> float:
    """The width of a column in ems of a serif, with a little room; -1 has the rows' labels."""
    if column < 0:
        return max(map(_ems, [table.row_heading, *(row.shown for row in table.rows)]))
    cells = (row.cells[column] for row in table.rows)
    widths = (_ems(cell.text) + 0.7 * _ems(cell.spread) for cell in cells)  # set smaller
    return max(_ems(table.columns[column].label), *widths)


def _ems(text: str) -> float:
    return math.fsum(
        0.32 if c in " .,:;()'ijlt" else 0.8 if c in "mwMW%–→" else 0.72 if c.isupper() else 0.52
        for c in text
    )


def _width(table: Table, part: Iterable[int]) -> float:
    """The width of a part of a table in ems, its rows' labels first, without the gaps."""
    columns = math.fsum(min(_em(table, i), WORDS / 2) for i in part)
    return columns + _em(table, -1)


def _room(part: Sequence[int]) -> float:
    """The points that the letters of a part of a table may take."""
    return TEXT_PT - GAP_PT * (1 + len(part))


def _parts(table: Table, size: float) -> list[list[int]]:
    """Parts of neighbouring columns that fit, a group of columns in one part where it does."""
    parts: list[list[int]] = [[]]
    for _, group in groupby(range(len(table.columns)), lambda i: table.columns[i].group):
        together = [*group]
        if parts[-1] and _width(table, parts[-1] + together) * size > _room(parts[-1] + together):
            parts.append([])
        for i in together:
            if parts[-1] and _width(table, [*parts[-1], i]) * size > _room([*parts[-1], i]):
                parts.append([])
            parts[-1].append(i)
    return parts


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
