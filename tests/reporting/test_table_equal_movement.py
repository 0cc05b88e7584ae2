"""The table at equal movement, its figure, and cells of what is shipped by numpy alone."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_tables import made_up_tables
from shipped_studies import tidy_path, value_at

from geosd.config import load, resolve_family, resolve_study, settings
from geosd.reporting import figure_equal_movement, table_equal_movement
from geosd.scores.tidy import COLUMNS

ROOT = Path(__file__).parents[2]
T_975 = {3: 3.182446305284263, 4: 2.7764451051977987, 5: 2.570581835636314}
"""Student's .975 quantile by degrees of freedom, of printed tables."""
PATHS = ("miniature_paths_0", "miniature_paths_100")


def rows_of(study, tidy):
    """The rows of a shipped tidy table, each a dictionary of texts."""
    file = tidy_path(study, tidy)
    text = file.read_bytes()
    text = gzip.decompress(text) if file.suffix == ".gz" else text
    return list(csv.DictReader(text.decode().splitlines()))


def paths_over_rates(study, method, movement):
    """Draw -> movement and OOD gain of a method's path from π₀ over rates, after 200 steps."""
    accuracy = {
        (row["variant"], row["seed"], row["benchmark"]): float(row["value"])
        for row in rows_of(study, "scores")
        if row["metric"] == "avg@k" and row["benchmark"] in ("id", "ood_avg")
    }
    moved = {}
    if movement == "drift":
        for row in rows_of(study, "drift"):
            if row["quantity"] == "drift/pi_0":
                moved[row["variant"], row["seed"]] = float(row["value"])
    found: dict[str, list] = {}
    for run, seed, benchmark in accuracy:
        whole = run.endswith("-steps_200") or "-steps_" not in run
        if benchmark != "id" or not run.startswith(f"{method}-learning_rate_") or not whole:
            continue
        rate = float(run.removesuffix("-steps_200").split("learning_rate_")[1])
        gain = accuracy[run, seed, "id"] - accuracy["pi_0", seed, "id"]
        ood = accuracy[run, seed, "ood_avg"] - accuracy["pi_0", seed, "ood_avg"]
        x = moved[run, seed] if movement == "drift" else gain
        found.setdefault(seed, []).append((rate, x, ood))
    return {seed: np.array([(0, 0, 0), *sorted(path)])[:, 1:] for seed, path in found.items()}


def gain_at(path, level):
    """OOD gain where a path first gets so far; NaN where it never does."""
    return value_at(path[:, 0], path[:, 1], level)


@pytest.mark.parametrize(
    ("study", "method", "movement", "level"),
    [
        ("miniature_stepsize", "fwdkl", "drift", 0.05),
        ("miniature_stepsize", "fwdkl", "drift", 0.1),
        ("miniature_transfer_100", "fwdkl", "id", 9),
        ("miniature_transfer_100", "tropd", "id", 9),
        ("miniature_transfer_0", "tropd", "id", 6),
    ],
)
def test_a_shipped_cell_is_what_numpy_finds_in_the_shipped_tidy_files(
    study, method, movement, level
):
    labels = {"fwdkl": "FwdKL", "tropd": "TrOPD"}
    file = ROOT / "figures" / study / "table_equal_movement.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        (cells,) = (
            row
            for row in csv.DictReader(lines)
            if next(iter(row.values())).split(",")[0] == labels[method]
            and "paths over the learning rates" in row["kind"]
        )
    geosd, other = (paths_over_rates(study, name, movement) for name in ("geosd", method))
    own = np.array([gain_at(other[seed], level) for seed in sorted(other)])
    leads = np.array([gain_at(geosd[seed], level) for seed in sorted(other)]) - own
    own, of, leads = own[~np.isnan(own)], len(own), leads[~np.isnan(leads)]
    key = f"{movement}.{level:g}"
    assert float(cells[key]) == pytest.approx(own.mean(), abs=1e-9)
    assert cells[f"{key}.draws"] == f"{len(own)} of {of}"
    half = T_975[len(leads) - 1] * leads.std(ddof=1) / math.sqrt(len(leads))
    found = [float(cells[f"{key}.lead{end}"]) for end in ("", ".sd")]
    assert found == pytest.approx([leads.mean(), half], abs=1e-9)
    assert float(cells[f"{key}.pairs"]) == len(leads)


def made_up(gains):
    """Scores, drift and points of one model: method -> draws of points (ID, OOD, drift) by rate."""
    scores, drift, points = [], [], []
    for name, draws in gains.items():
        for draw, path in enumerate(draws):
            for number, (id_gain, ood, moved) in enumerate(path):
                run = f"{name}-{number}"
                for benchmark, value in (("id", 50 + id_gain), ("ood_avg", 50 + ood)):
                    scores.append(("m", run, draw, draw, benchmark, "", "avg@k", 16, value))
                drift.append(("m", run, draw, draw, "drift/pi_0", moved))
                point = {"run": run, "variant": name, "learning_rate": 10.0 ** (number - 6)}
                point["steps"] = 200
                if point not in points:
                    points.append(point)
            for benchmark in ("id", "ood_avg"):
                row = ("m", "pi_0", draw, draw, benchmark, "", "avg@k", 16, 50.0)
                if row not in scores:
                    scores.append(row)
    frames = (
        pd.DataFrame(scores, columns=[*COLUMNS["scores"]]),
        pd.DataFrame(drift, columns=[*COLUMNS["drift"]]),
    )
    return (*frames, ["m"], {"m": points})


GEOSD = [[(4, -1, 0.05), (8, -3, 0.2)], [(4, -2, 0.05), (8, -4, 0.2)]]
SFT = [[(1, -1, 0.01), (2, -3, 0.02)], [(1, -1, 0.01), (5, -5, 0.02)]]


def cells_of(table):
    keys = [column.key for column in table.columns]
    return {row.label: dict(zip(keys, row.cells, strict=True)) for row in table.rows}


def test_the_table_says_on_how_many_draws_a_method_gets_so_far():
    cells = cells_of(table_equal_movement.build(*made_up({"geosd": GEOSD, "sft": SFT})))
    assert cells["GeoSD"]["id.6"].value == pytest.approx(-2.5)
    assert cells["GeoSD"]["drift.0.05"].value == pytest.approx(-1.5)
    assert cells["SFT"]["id.3"].value == pytest.approx(-3.0)
    assert cells["SFT"]["id.3.draws"].value == "1 of 2"
    assert cells["SFT"]["id.3.lead"].value == pytest.approx(1.5)
    assert cells["SFT"]["id.3.lead"].sd is None  # of a single pair
    assert cells["SFT"]["id.9"].value == cells["SFT"]["drift.0.05"].value == "not reached"
    assert cells["SFT"]["id.9.draws"].value == "0 of 2"
    assert cells["SFT"]["id.9.pairs"].value == 0


def test_without_drift_the_table_has_no_columns_of_it_and_says_so():
    scores, drift, models, points = made_up({"geosd": GEOSD, "sft": SFT})
    table = table_equal_movement.build(scores, drift.iloc[:0], models, points)
    assert "id.6" in cells_of(table)["GeoSD"]
    assert not [column.key for column in table.columns if column.key.startswith("drift")]
    assert "drift of these runs is not known" in table.note


@pytest.fixture(scope="module")
def params():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield load("params.yaml")


@pytest.mark.slow
def test_the_paths_of_the_dial_are_of_one_kind_each_method_at_its_rate(params):
    study = resolve_study(params, PATHS[1])
    tables = made_up_tables(study)
    table = table_equal_movement.build(
        tables["scores"], tables["drift"], **settings("table_equal_movement", study)
    )
    assert len(table.rows) == 8 and "steps, each method at its rate" in table.note
    assert {"GRPO at 1e-4", "GeoSD at 3e-5"} <= {row.label for row in table.rows}


@pytest.mark.slow
def test_the_figure_has_a_path_of_each_method_at_either_end(params):
    family = resolve_family(params, "miniature_paths")
    tables = {name: made_up_tables(resolve_study(params, name)) for name in PATHS}
    given = {
        tidy: {name: tables[name][tidy] for name in PATHS} for tidy in ("scores", "drift")
    } | family.settings("figure_equal_movement")
    figure = figure_equal_movement.plot(**given)
    titles = [axes.get_title(loc="left") for axes in figure.axes[:2]]
    assert titles == ["conflict 0", "conflict 1"]
    study = PATHS[0]
    values = tables[study]["drift"].query("quantity == 'drift/pi_0'")
    for axes in figure.axes:
        paths = [line for line in axes.lines if len(line.get_xdata()) == 5]
        assert len(paths) == 8
        assert all(line.get_xdata()[0] == line.get_ydata()[0] == 0 for line in paths)
    stops = [f"grpo-learning_rate_0.0001-steps_{steps}" for steps in (24, 48, 96, 200)]
    expected = [values.loc[values["variant"] == run, "value"].mean() for run in stops]
    drawn = [list(line.get_xdata()[1:]) for line in figure.axes[0].lines]
    assert any(x == pytest.approx(expected) for x in drawn if len(x) == 4)


def test_a_figure_of_runs_without_stops_is_refused():
    scores, drift, models, points = made_up({"geosd": GEOSD, "sft": SFT})
    given = [{"s": value} for value in (scores, drift, models, points, 1.0)]
    with pytest.raises(ValueError, match=r"s has no path over the steps.*\nHint: "):
        figure_equal_movement.plot(*given)
