"""Tables that no run enters: planned alone, rerun by what they read and by nothing else."""

from __future__ import annotations

import re
import shutil

import pytest
from cases import with_studies

from geosd.config import load, resolve_study, settings

TABLES = (
    "table_architectures",
    "table_flops",
    "table_memory",
    "table_kfac_memory",
    "table_hyperparameters",
)


@pytest.fixture
def shown(fresh, tmp_path):
    """A fresh workflow whose study shows these tables and nothing else."""
    shutil.copytree(fresh.folder, tmp_path / "copy", symlinks=True)
    workflow = type(fresh)(tmp_path / "copy")
    workflow.keep_studies("quick", "quick_selection")
    text = (workflow.folder / "params.yaml").read_text(encoding="utf-8")
    edited = re.sub(r"outputs: \[table_main.*\]", f"outputs: [{', '.join(TABLES)}]", text, count=1)
    assert edited != text
    (workflow.folder / "params.yaml").write_text(edited, encoding="utf-8")
    return workflow


def test_a_study_that_shows_them_makes_each_once_by_its_module_and_trains_nothing(shown):
    printed = shown.snakemake("--profile", "local", "--dry-run", "--printshellcmds")
    counts = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", printed, re.M)}
    report = dict.fromkeys(("configuration", "environment", "front_page", "all"), 1)
    report["page"] = len(TABLES) + 2
    report["total"] = len(TABLES) + sum(report.values())
    assert counts == {**dict.fromkeys(TABLES, 1), **report}
    commands = dict(re.findall(r"python -m geosd (?:render )?([\w-]+) (.*)", printed))
    assert set(commands) == {*TABLES, "environment", "front-page"}
    del commands["front-page"]
    for name, command in commands.items():
        assert command.endswith(f"--out figures/quick > logs/quick/{name}.log 2>&1")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("subsample: 0.125 ", "subsample: 0.25 ", {"table_flops"}),
        ("    top_k: 1024 ", "    top_k: 512 ", {"table_memory"}),
        ("    problems: 8 ", "    problems: 16 ", {"table_flops", "table_memory"}),
        ("      top_k: 16 ", "      top_k: 8 ", set()),
    ],
)
def test_each_reads_its_part_of_the_protocol_only(root, tmp_path, old, new, changed):
    text = with_studies((root / "params.yaml").read_text(encoding="utf-8"), ["quick"])
    (tmp_path / "params.yaml").write_text(text.replace(old, new), encoding="utf-8")
    before, after = (
        resolve_study(load(folder / "params.yaml"), "quick") for folder in (root, tmp_path)
    )
    assert old in text
    costs = [name for name in TABLES if name != "table_hyperparameters"]
    assert {n for n in costs if settings(n, before) != settings(n, after)} == changed
