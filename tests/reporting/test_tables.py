"""One table, three forms: nothing is lost in CSV, nothing misread in Markdown, LaTeX is whole."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from geosd.reporting.latex_tables import escape_latex, to_latex
from geosd.reporting.saved_tables import save
from geosd.reporting.tables import (
    Table,
    TableCell,
    TableColumn,
    TableRow,
    rank_table,
    table_to_csv,
    table_to_markdown,
)


def table(*columns_of_values, better="high"):
    rows = tuple(
        TableRow(f"r{i}", "A" if i < 2 else "B", tuple(TableCell(v) for v in values))
        for i, values in enumerate(zip(*columns_of_values, strict=True))
    )
    columns = tuple(
        TableColumn(f"c{i}", f"C{i}", "g", better) for i in range(len(columns_of_values))
    )
    return Table("demo", "Title", "A note.", "Method", columns, rows)


def ranks(built, column=0):
    return [row.cells[column].rank for row in rank_table(built).rows]


def test_best_and_second_best_are_marked_in_every_column():
    built = table([1.0, 3.0, 2.0], [9.0, 8.0, 7.0])
    assert ranks(built, 0) == ["", "best", "second"]
    assert ranks(built, 1) == ["best", "second", ""]


def test_what_prints_the_same_is_marked_the_same():
    assert ranks(table([3.04, 2.96, 2.0, 1.0])) == ["best", "best", "second", ""]
    assert ranks(table([3.0, 2.04, 1.96, 1.0])) == ["best", "second", "second", ""]


def test_low_can_be_better_and_empty_cells_are_never_best():
    assert ranks(table([1.0, 3.0, 2.0], better="low")) == ["best", "", "second"]
    assert ranks(table([None, math.nan, 2.0])) == ["", "", "best"]
    assert ranks(table([1.0, 3.0, 2.0], better=None)) == ["", "", ""]


def full():
    columns = (
        TableColumn("m.id", "ID", "m (paper: X)", "high"),
        TableColumn("m.name", "name", "m (paper: X)"),
        TableColumn("n.p", "p", "n_2"),
    )
    rows = (
        TableRow(
            "π₀",
            "Reference",
            (TableCell(np.float64(1 / 3), np.float64(0.25)), TableCell('a, "b"'), TableCell(None)),
        ),
        TableRow(
            "GeoSD",
            "Ours",
            (TableCell(2 / 3, None), TableCell("50% & _x_"), TableCell(2.9e-9, form=".1e")),
        ),
    )
    return rank_table(Table("demo", "Title", "Δ of 5% ± 1.", "Method", columns, rows))


def test_csv_parses_back_to_the_exact_values():
    lines = list(csv.DictReader(io.StringIO(table_to_csv(full()))))
    assert [line["method"] for line in lines] == ["π₀", "GeoSD"]
    assert [float(line["m.id"]) for line in lines] == [1 / 3, 2 / 3]
    assert [line["m.id.sd"] for line in lines] == ["0.25", ""]
    assert lines[0]["m.name"] == 'a, "b"' and lines[0]["n.p"] == ""
    assert float(lines[1]["n.p"]) == 2.9e-9


def test_markdown_lines_of_a_table_are_equally_long_and_marks_are_shown():
    text = table_to_markdown(full())
    for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M):
        assert len({len(line) for line in block.splitlines()}) == 1
    assert "_0.3_ ±0.2" in text and "**0.7**" in text and "2.9e-09" in text
    assert "## m (paper: X)" in text and "## n_2" in text


def test_latex_is_balanced_and_has_as_many_cells_in_every_row():
    text = to_latex(full())
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    begun = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    spans = [
        sum(int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row))
        + len([c for c in re.split(r"(?<!\\)&", row) if "multicolumn" not in c])
        for row in rows
    ]
    assert set(spans) == {4}
    assert r"$\mathbf{0.7}$" in text and r"$\underline{0.3}_{0.2}$" in text
    assert r"2.9\times10^{-9}" in text and r"50\% \& \_x\_" in text and r"$\pi_0$" in text


def test_a_zero_has_no_sign_and_no_loss_is_best():
    assert [TableCell(v, form="+.1f").text for v in (-0.04, 0.04, -0.06)] == ["0.0", "0.0", "-0.1"]
    assert ranks(table([-1.0, -0.01, -3.0], better="gain")) == ["", "", ""]
    assert ranks(table([-1.0, 2.0, 0.5], better="gain")) == ["", "best", "second"]


AFM = Path(matplotlib.get_data_path()) / "fonts/afm/ptmr8a.afm"
WIDTHS = {  # of Times-Roman, by letter, in thousandths of its size
    chr(int(code)): int(width)
    for code, width in re.findall(r"^C (\d+) ; WX (\d+)", AFM.read_text(), re.M)
}
SIGNS = {r"\\pi_0": "p0", r"\\times": "x", r"\\to": "--", r"\\(Delta|lambda|dagger|pm)": "D"}


def natural_width(cell: str) -> float:
    """The width of a cell of a LaTeX table in ems of Times."""
    for sign, letters in SIGNS.items():
        cell = re.sub(sign, letters, cell)
    small = "".join(re.findall(r"[_^]\{([^}]*)\}", cell))
    large = re.sub(r"[_^]\{[^}]*\}|\\(?:mathbf|underline|emph)|[${}\\]", "", cell)
    return sum(WIDTHS.get(c, 600) for c in large) / 1000 + 0.7 * sum(map(len, [small])) / 2


def parts_of(tex: str):
    """Each tabular of a LaTeX table: the types of its columns, and its rows of cells."""
    for form, body in re.findall(
        r"\\begin\{(?:tabular|longtable)\}\{([^\n]*)\}\n(.*?)\\end\{(?:tab|long)", tex, re.S
    ):
        kinds = re.findall(r"p\{([\d.]+)em\}|([lr])", re.sub(r">\{[^}]*\}", "", form))
        lines = [
            line for line in body.splitlines() if line.endswith(r"\\") and "multicol" not in line
        ]
        rows = [re.split(r"(?<!\\)&", line[:-2]) for line in lines if "caption" not in line]
        yield [float(em or 0) for em, _ in kinds], rows


SHIPPED = sorted((Path(__file__).parents[2] / "figures").glob("*/table_*.tex"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_shipped_table_fits_the_papers_text_in_letters_that_can_be_read(path):
    tex = path.read_text(encoding="utf-8")
    assert "resizebox" not in tex
    (size,) = re.findall(r"^\\(small|footnotesize|scriptsize)$", tex, re.M)
    points = {"small": 9, "footnotesize": 8, "scriptsize": 7}[size]
    lines = 0
    for fixed, rows in parts_of(tex):
        assert rows and {len(row) for row in rows} == {len(fixed)}
        natural = [
            max(natural_width(cell.strip()) for cell in column)
            for column in zip(*rows, strict=True)
        ]
        ems = [em or own for em, own in zip(fixed, natural, strict=True)]
        assert points * sum(ems) + 6 * len(ems) <= 397.5
        lines += 6 + len(rows)
    assert "longtable" in tex or 1.35 * points * lines < 600, "it is as high as a page"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is absent")
def test_latex_compiles(tmp_path):
    head = r"\documentclass{article}\usepackage{booktabs,array,longtable}\begin{document}"
    (tmp_path / "t.tex").write_text(head + to_latex(full()) + r"\end{document}", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]


def test_every_special_character_is_escaped():
    assert escape_latex("a_b & 5% #1 {x} ~ ^ \\ $") == (
        r"a\_b \& 5\% \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$"
    )


def test_write_makes_three_files_the_same_bytes_every_time(tmp_path):
    first = [path.read_bytes() for path in save(full(), tmp_path / "a")]
    assert first == [path.read_bytes() for path in save(full(), tmp_path / "b")]
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["demo.csv", "demo.md", "demo.tex"]


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="(?s)table demo, row r.*Hint:"):
        Table("demo", "", "", "M", (TableColumn("a", "A"),), (TableRow("r", "", ()),))
