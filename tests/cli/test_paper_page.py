"""The page on the paper's study holds what the plan prints."""

from __future__ import annotations

import re

import pytest

from geosd.cli import plan
from geosd.costs.workload import DEFAULTS


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/paper.md").read_text(encoding="utf-8")


def printed(root, capsys, *which):
    plan.main(*which, root / "params.yaml", DEFAULTS)
    return capsys.readouterr().out.splitlines()


def test_every_line_of_the_studys_plan_stands_on_the_page(root, page, capsys):
    lines = printed(root, capsys, "paper", None)
    table = lines[2 : lines.index("", 2)]
    assert len(table) == 21
    assert "\n".join(table) in page


def test_what_a_gpu_holds_of_32b_stands_on_the_page(root, page, capsys):
    lines = printed(root, capsys, "paper_ladder", "qwen3-32b")
    first = next(i for i, line in enumerate(lines) if line.startswith("| One of 8 training"))
    assert "\n".join(lines[first : lines.index("", first)]) in page


@pytest.mark.slow
def test_the_sums_of_all_six_studies_stand_on_the_page(root, page, capsys):
    rows = re.findall(r"^\| `(paper\w*)` \|(.*)\|$", page, re.M)
    assert len(rows) == 6
    for study, row in rows:
        lines = printed(root, capsys, study, None)
        (sums,) = [line for line in lines if line.startswith("| all ")]
        cells = [cell.strip() for cell in sums.strip("|").split("|")]
        stored = {
            cell.strip(): float(size)
            for cell, size in (
                line.split("|")[1:3] for line in lines if re.match(r"\| [a-z ]+\|", line)
            )
            if re.fullmatch(r" *\d\.\d\d *", size)
        }
        waiting = stored["weights for other studies"]
        page_cells = [cell.strip() for cell in row.split("|")][-4:]
        assert page_cells[:2] == [cells[2], cells[-1]], study
        assert float(page_cells[2]) == pytest.approx(stored["together"] - waiting, abs=0.011), study
        assert float(page_cells[3]) == waiting, study


@pytest.mark.parametrize("first", ["| Hours of one evaluation", "| On disk at most"])
def test_the_studys_evaluation_and_its_peak_stand_on_the_page(root, page, capsys, first):
    lines = printed(root, capsys, "paper", None)
    start = next(i for i, line in enumerate(lines) if line.startswith(first))
    assert "\n".join(lines[start : lines.index("", start)]) in page
