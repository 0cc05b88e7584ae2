"""The notebook of examples/ runs, and stores what running gives."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import matplotlib
import nbformat
import pandas as pd
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FILE = EXAMPLES / "geosd_tour.ipynb"
RUNNER = runpy.run_path(str(EXAMPLES / "run_notebook.py"))


@pytest.fixture(scope="module")
def notebook():
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def outputs(notebook):
    """What the cells of code give, run here."""
    return RUNNER["run_cells"](notebook)


def test_the_notebook_is_one_by_its_format_and_has_ten_cells(notebook):
    nbformat.validate(nbformat.from_dict(notebook))
    assert len(notebook["cells"]) == 10


def test_the_stored_outputs_are_what_running_gives(notebook, outputs):
    stored = [cell["outputs"] for cell in RUNNER["code_cells"](notebook)]
    assert len(outputs) == len(stored) == 5 and all(outputs)
    drawn_by = f"Matplotlib v{matplotlib.__version__},"
    for found, kept in zip(outputs, stored, strict=True):
        assert words(found) == words(kept)
        for svg, kept_svg in zip(pictures(found), pictures(kept), strict=True):
            assert "GeoSD" in svg and "mini-qwen3 at conflict 1" in svg
            if drawn_by in kept_svg:
                assert svg == kept_svg


def words(outputs):
    """The outputs of a cell that are text."""
    return [output.get("text") or output["data"]["text/plain"] for output in outputs]


def pictures(outputs):
    """The outputs of a cell that are pictures."""
    shown = [output["data"] for output in outputs if "data" in output]
    return ["".join(data[RUNNER["SVG"]]) for data in shown if RUNNER["SVG"] in data]


def test_the_main_test_of_the_notebook_is_the_ledger_s(outputs):
    ledger = pd.read_csv(EXAMPLES.parent / "figures/miniature_all/claims_all.csv")
    rows = ledger[ledger["claim"] == "geosd-above-fwdkl-at-one-rate"]
    (row,) = rows[rows["model"] == "all models"].itertuples()
    said = f"{row.effect:+.1f} points [{row.low:.1f}, {row.high:.1f}] over 18 base models\n"
    assert words(outputs[3]) == [[said]]


def test_a_cell_with_an_error_stops_the_run():
    cell = {"cell_type": "code", "source": ["1 / 0\n"]}
    with pytest.raises(ZeroDivisionError):
        RUNNER["run_cells"]({"cells": [cell]})


def test_what_a_cell_prints_and_its_last_value_are_kept():
    cells = [{"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x + 1"]}]
    ((printed, value),) = RUNNER["run_cells"]({"cells": cells})
    assert printed["text"] == ["2\n"] and value["data"] == {"text/plain": ["3"]}
