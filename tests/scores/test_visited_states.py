"""The table of visited states, by hand from four states of one model."""

import runpy
from pathlib import Path

import pandas as pd

PROGRAM = Path(__file__).parents[2] / "analysis/visited_states.py"

STATES = pd.DataFrame(
    {
        "model": "m",
        "q_star": [0.8, 0.9, 0.7, 1.0],
        "p_star": [0.1, 0.05, 0.0, 0.97],
        "overlap": [0.4, 0.3, 0.6, 0.99],
        "entropy": [2.0, 1.0, 0.5, 0.1],
    }
)
RUNS = [("geosd", 0.95), ("geosd", 0.97), ("fwdkl", 0.5)]
DRIFT = pd.DataFrame(
    [("m", variant, "support/teacher_mass_mean", value) for variant, value in RUNS],
    columns=["model", "variant", "quantity", "value"],
)


def test_a_row_counts_the_mismatch_region_with_its_borders():
    measured = runpy.run_path(str(PROGRAM))["measured"]
    expected = ["m", "4", "50.0 %", "0.850", "0.280", "0.573", "50.0 %", "0.900", "96.00 %"]
    assert measured("m", STATES, DRIFT) == expected
    assert measured("m", STATES, DRIFT[DRIFT["variant"] == "fwdkl"])[-1] == "–"


def test_the_shipped_miniature_has_a_row_for_each_family_below_the_papers(root, capsys):
    runpy.run_path(str(PROGRAM))["main"]((root / "figures/miniature",))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        *("the paper", "mini-qwen3", "mini-olmo3", "mini-llama")
    ]
    assert "27 %" in lines[2] and "> 99.9 %" in lines[2]
