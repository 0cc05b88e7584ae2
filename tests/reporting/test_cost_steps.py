"""The tables that no run enters are written without a tidy file."""

from __future__ import annotations

from pathlib import Path

import pytest

from geosd.cli import render

PARAMS = Path(__file__).parents[2] / "params.yaml"
TABLES = ("architectures", "flops", "memory", "hyperparameters", "kfac_memory")


@pytest.mark.parametrize("name", [f"table_{name}" for name in TABLES])
def test_each_is_written_as_three_files_twice_the_same(name, tmp_path):
    for folder in ("a", "b"):
        render.main(name, "quick", tmp_path / folder, params=PARAMS)
    written = {path.name for path in (tmp_path / "a").iterdir()}
    assert written == {f"{name}.{ending}" for ending in ("csv", "md", "tex")}
    for file in written:
        first, second = (tmp_path / folder / file for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


def test_the_studys_small_models_stand_below_the_papers(tmp_path):
    render.main("table_architectures", "quick", tmp_path, params=PARAMS)
    lines = (tmp_path / "table_architectures.csv").read_text(encoding="utf-8").splitlines()
    assert lines[-1].startswith("mini-qwen3,This study's models,2,,64,")
    assert lines[-1].endswith("Qwen3-8B")
