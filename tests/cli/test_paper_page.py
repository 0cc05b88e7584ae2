"""The page on the paper's study holds what the plan prints."""

from __future__ import annotations

import re

import pytest

from geosd.cli import plan
from geosd.config import load, resolve_study
from geosd.costs.assumptions import DEFAULTS


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/cluster.md").read_text(encoding="utf-8")


def printed(root, capsys, *which):
    plan.main(*which, root / "params.yaml", DEFAULTS)
    return capsys.readouterr().out.splitlines()


def test_what_a_gpu_holds_of_32b_stands_on_the_page(root, page, capsys):
    lines = printed(root, capsys, "paper_ladder", "qwen3-32b")
    first = next(i for i, line in enumerate(lines) if line.startswith("| One of 8 training"))
    assert "\n".join(lines[first : lines.index("", first)]) in page


def test_the_peaks_of_all_six_studies_stand_on_the_page(root, page):
    params = load(root / "params.yaml")
    rows = re.findall(r"^\| `(paper\w*)` \|(.*)\|$", page, re.M)
    assert len(rows) == 6
    for study, row in rows:
        [peak] = plan.plan_disk_peaks(resolve_study(params, study), [(10, 2)], DEFAULTS)
        stored = {part.name: part.bytes / 1e12 for part in peak}
        waiting = stored.pop("weights for other studies")
        cells = [cell.strip() for cell in row.split("|")][-2:]
        assert cells == [f"{sum(stored.values()):.2f}", f"{waiting:.2f}"], study
