"""The numbers of docs/lean.md are those of the plan and of analysis/lean_design.py."""

from __future__ import annotations

import importlib.util
import re

import pytest

from geosd.cli.plan import _of_design, plan_model_workload
from geosd.config import load, resolve_study
from geosd.costs.assumptions import DEFAULTS


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/lean.md").read_text()


@pytest.fixture(scope="module")
def design(root):
    spec = importlib.util.spec_from_file_location("lean_design", root / "analysis/lean_design.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def share(design):
    studies = ("miniature", "miniature_wide_0")
    return max(design.shares_within(design.scores_of(study)).max() for study in studies)


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


@pytest.mark.slow
def test_hours_seeds_and_power_are_those_of_the_plan(root, page):
    study = resolve_study(load(root / "params.yaml"), "paper_lean")
    works = {model: plan_model_workload(study, model, DEFAULTS) for model in study.models}
    printed = _of_design(study, works, DEFAULTS)
    assert max(map(len, printed.splitlines())) <= 80
    rows = {row[0]: row[1:] for row in map(cells, printed.splitlines()[2:4])}
    for name, (seeds, hours, share, power) in rows.items():
        [line] = re.findall(rf"^\| `{name}` \| (.*) %", page, re.M)
        assert [float(each.replace(",", "")) for each in cells(line)] == [
            float(each.replace(",", "").strip(" %")) for each in (seeds, hours, share)
        ]
        assert ", ".join(power.split("/")) in page
    words = " ".join(printed.split())
    for hours, seeds in re.findall(r"([\d,]+) after (\d+) seeds", words):
        assert f"{hours} after {seeds}" in page
    assert float(rows["paper_lean"][2].strip(" %")) <= 35


def test_samples_and_responses_are_those_of_the_studies(root, page):
    for name, kept in (("paper", 32), ("paper_lean", 22)):
        study = resolve_study(load(root / "params.yaml"), name)
        evaluation = study.section("evaluation")
        drawn = dict.fromkeys(("aime24", "aime25", "amc23", "math500"), kept)
        drawn |= {"id": evaluation["samples"]} | (evaluation.get("allocation") or {})
        responses = plan_model_workload(study, study.models[0], DEFAULTS).evaluation.sequences
        expected = [*(str(drawn[each]) for each in ("aime24", "aime25", "amc23", "math500", "id"))]
        lines = re.findall(rf"^\| `{name}` \| (.*) \|$", page, re.M)
        assert [*expected, f"{responses:,}"] in [cells(line) for line in lines]


def test_the_allocation_is_neymans_and_its_errors_are_those_of_the_page(root, page, design, share):
    table, added = design.allocation_table(share)
    study = resolve_study(load(root / "params.yaml"), "paper_lean")
    allocation = study.section("evaluation")["allocation"]
    rows = table.set_index("benchmark")
    assert {name: rows.loc[name, "samples, lean"] for name in allocation} == allocation
    assert added < 0  # no more variance than with 16 samples of each problem
    for name in ("OOD average", "id"):
        lean, paper = (rows.loc[name, f"error, {each}"].lstrip("0") for each in ("lean", "paper"))
        assert f"{lean} points in place of {paper}" in page or f"{lean} in place of {paper}" in page


def test_the_page_of_the_analysis_has_its_tables(root, page, design, share):
    written = (root / "analysis/lean_design.md").read_text()
    table, _ = design.allocation_table(share)
    assert table.to_markdown(index=False, disable_numparse=True) in written
    same, rows = (
        sum(
            int(row[place])
            for row in map(
                cells, re.findall(r"^\| (?:miniature|dial [\d.]+) +\| .*\|$", written, re.M)
            )
            if len(row) == 4 and row[1].isdigit()
        )
        for place in (2, 1)
    )
    assert f"Of {rows} rows {same} have the word of the whole study" in page
    others = re.findall(r"^\| (?:miniature|dial [\d.]+) .*\| (True|False) +\|$", written, re.M)
    assert len(others) == rows - same and set(others) == {"False"}
