"""The programs of the tables that no run enters: they write the outputs of their rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from geosd.steps import (
    table_architectures,
    table_flops,
    table_hyperparameters,
    table_kfac_memory,
    table_memory,
)

PARAMS = Path(__file__).parents[2] / "params.yaml"
STEPS = {
    "table_architectures": lambda out: table_architectures.main("quick", out, PARAMS),
    "table_flops": lambda out: table_flops.main("quick", out, PARAMS),
    "table_memory": lambda out: table_memory.main("quick", out, PARAMS),
    "table_hyperparameters": lambda out: table_hyperparameters.main("quick", out, PARAMS),
    "table_kfac_memory": table_kfac_memory.main,
}


@pytest.mark.parametrize("name", STEPS)
def test_each_program_writes_its_three_files_twice_the_same(name, tmp_path):
    for folder in ("a", "b"):
        STEPS[name](tmp_path / folder)
    made = {path.name for path in (tmp_path / "a").iterdir()}
    assert made == {f"{name}.{ending}" for ending in ("csv", "md", "tex")}
    for file in made:
        first, second = (tmp_path / folder / file for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_the_studys_small_models_stand_below_the_papers(tmp_path):
    STEPS["table_architectures"](tmp_path)
    lines = (tmp_path / "table_architectures.csv").read_text(encoding="utf-8").splitlines()
    assert lines[-1].startswith("mini-qwen3,This study's models,2,,64,")
    assert lines[-1].endswith("Qwen3-8B")
