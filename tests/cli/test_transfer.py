"""The dial's figures and tables follow from its shipped studies; an unshipped study is named."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from geosd.cli import transfer

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "figures"
SETTINGS = (0, 25, 50, 75, 100)
STUDIES = tuple(f"miniature_transfer_{s}{kind}" for s in SETTINGS for kind in ("", "_selection"))
METHODS = {"sft": "SFT", "fwdkl": "FwdKL", "revkl": "RevKL", "tropd": "TrOPD", "geosd": "GeoSD"}


def accuracies(study: str) -> pd.DataFrame:
    """avg@k of each run of a shipped study, a column a benchmark, by run and seed."""
    (path,) = (SHIPPED / study / "source").glob("scores.csv*")
    scores = pd.read_csv(path)
    rows = scores[scores["metric"] == "avg@k"]
    return rows.pivot(index=["variant", "seed"], columns="benchmark", values="value")


@pytest.mark.slow
def test_the_shipped_studies_give_the_shipped_figures_and_tables(tmp_path, monkeypatch, no_png):
    monkeypatch.chdir(ROOT)
    transfer.main(STUDIES, 1e-5, tmp_path)
    folder, drawn = SHIPPED / "miniature_transfer", (".svg", ".csv", ".md", ".tex")
    kept = [path for path in folder.iterdir() if path.suffix in drawn]
    assert len(kept) == 14
    for path in kept:
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_best_rate_is_that_of_the_best_validation_accuracy(setting):
    """Rates and gains of the shipped tables, reckoned from the shipped scores."""
    table = pd.read_csv(SHIPPED / "miniature_transfer/table_transfer_gains_best_rate.csv")
    table = table.set_index("method")
    validation = accuracies(f"miniature_transfer_{setting}_selection")["select_validation"]
    test = accuracies(f"miniature_transfer_{setting}")
    means = validation.groupby("variant").mean()
    ood = test[["ambiguous", "large", "mixed", "both"]].mean(axis="columns")
    for name, label in METHODS.items():
        best = means[means.index.str.startswith(f"{name}-learning_rate")].idxmax()
        for axis, of_runs in (("OOD", ood), ("ID", test["id"])):
            gain = (of_runs[best] - of_runs["pi_0"]).mean()
            assert table.loc[label, f"{axis} {setting / 100:g}"] == pytest.approx(gain, abs=1e-9)


def test_collapses_are_counted_against_the_base_model_of_the_same_seed(capsys):
    program = runpy.run_path(str(ROOT / "analysis/collapses.py"))
    program["main"](tuple(SHIPPED / f"miniature_transfer_{s}_selection" for s in SETTINGS))
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "FwdKL" in line)
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    for cell, rate in zip(cells, ("3e-06", "1e-05", "3e-05", "0.0001"), strict=True):
        fallen = 0
        for setting in SETTINGS:
            runs = accuracies(f"miniature_transfer_{setting}_selection")["select_validation"]
            fallen += (runs[f"fwdkl-learning_rate_{rate}"] - runs["pi_0"] <= -10).sum()
        assert cell == f"{fallen} of {6 * len(SETTINGS)}"


def test_a_study_that_is_not_shipped_is_named_with_the_command_that_ships_it(tmp_path):
    with pytest.raises(SystemExit, match=r"quick is not shipped\.\nHint: `make ship STUDY=quick`"):
        transfer.main(("quick",), 1e-5, tmp_path, SHIPPED, ROOT / "params.yaml")
