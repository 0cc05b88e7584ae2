"""A table in LaTeX, for the width of the paper's text."""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise

from geosd.reporting.tables import Table, TableCell

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


def _latex_cell(cell: TableCell) -> str:
    if isinstance(cell.value, str) or cell.number is None:
        return escape_latex(cell.text)
    # 1.2e-05 -> 1.2\times10^{-5}
    number = re.sub(
        r"e\+?(-?)0*(\d+)$", lambda power: rf"\times10^{{{power[1]}{power[2]}}}", cell.text
    )
    marked = {"best": rf"\mathbf{{{number}}}", "second": rf"\underline{{{number}}}"}
    spread = f"_{{{cell.spread}}}" if cell.spread else ""
    return f"${marked.get(cell.rank, number)}{spread}$"
