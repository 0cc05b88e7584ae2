"""The sweeps stand where the runs scored, and a study without them is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from geosd.reporting import figure_stepsize as stepsize
from geosd.reporting.figures import save
from geosd.reporting.id_ood_plane import FRAME, plane_path
from geosd.reporting.method_style import method_style_rate
from geosd.reporting.run_accuracies import sweep_run_gains
from geosd.scores.score_table import scores_by_seed
from geosd.scores.tidy import COLUMNS

RATES = (3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5)
STOPS = (25, 75, 125, 250, 500)
FULL = 625


def points(rates=RATES, stops=STOPS):
    return [
        {"run": f"{v}-{r}-{s}", "variant": v, "learning_rate": r, "steps": s}
        for v in ("fwdkl", "geosd")
        for r in rates[v == "geosd" :]
        for s in (*stops, FULL)
    ]


def made_up_scores(models=("m",), seeds=3) -> pd.DataFrame:
    draw, rows = np.random.default_rng(6), []
    for model in models:
        for point in [{"run": "pi_0", "variant": "pi_0"}, *points()]:
            rate, steps = point.get("learning_rate", 0), point.get("steps", 0)
            far = 1 - np.exp(-((rate / 4e-7) ** 0.8) * (steps / FULL) ** 0.7)
            gain = {"fwdkl": (22, -9), "geosd": (21, 9), "pi_0": (0, 0)}[point["variant"]]
            for seed in range(seeds):
                for benchmark, base, by in (("id", 61, gain[0]), ("ood_avg", 52, gain[1])):
                    split = "ID" if benchmark == "id" else "OOD"
                    value = base + by * far + draw.normal(0, 0.5)
                    rows.append(
                        (model, point["run"], seed, 0, benchmark, split, "avg@k", 16, value)
                    )
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


@pytest.fixture(scope="module")
def drawn():
    """Scores of five seeds, and the figure of them, which tests only look at."""
    scores = made_up_scores(seeds=5)
    return scores, stepsize.plot(scores, ["m"], {"m": points()})


def configurations(scores, points):
    return stepsize.stepsize_figure_points(sweep_run_gains(scores, "m", points))


def gain(scores, run, benchmark):
    """Changes of a run from the base model, by seed."""
    own, base = (scores_by_seed(scores, "m", name, benchmark) for name in (run, "pi_0"))
    return own - base


def test_the_solid_line_is_the_full_runs_by_learning_rate():
    scores = made_up_scores()
    line = stepsize.figure_stepsize_rates(configurations(scores, points()[::-1])).query(
        "variant == 'fwdkl'"
    )
    assert list(line["learning_rate"]) == list(RATES)
    for point in line.itertuples():
        gains = gain(scores, f"fwdkl-{point.learning_rate}-{FULL}", "id")
        assert point.id == pytest.approx(gains.mean()) and point.steps == FULL


def test_lines_and_whiskers_are_those_of_the_runs(drawn):
    scores, figure = drawn
    axes, *_ = figure.axes
    means = configurations(scores, points())
    full = stepsize.figure_stepsize_rates(means).query("variant == 'geosd'")[["id", "ood_avg"]]
    lines = [line.get_xydata() for line in axes.lines]
    path = np.vstack([(0, 0), full])
    assert any(line.shape == path.shape and np.allclose(line, path) for line in lines)
    across, up = (gain(scores, f"geosd-3e-06-{FULL}", name) for name in ("id", "ood_avg"))
    low, high = stats.t.interval(0.95, 4, across.mean(), stats.sem(across))
    whisker = [(low, up.mean()), (high, up.mean())]
    assert any(line.shape == (2, 2) and np.allclose(line, whisker) for line in lines)


def test_a_path_that_leaves_the_frame_has_an_arrow_where_it_does():
    axes = Figure().subplots()
    axes.set(xlim=(-10, 5), ylim=(-15, 5))
    plane_path(axes, pd.DataFrame({"id": [-4, -16, -40], "ood_avg": [-5, -11, -40]}))
    (arrow,) = axes.texts
    assert arrow.xy == pytest.approx((-10, -8)), "half way from (-4, -5) to (-16, -11)"


def test_the_dashed_line_of_each_learning_rate_ends_at_its_full_run():
    lines = stepsize.figure_stepsize_stops(configurations(made_up_scores(), points()))
    for variant, rates in (("fwdkl", RATES), ("geosd", RATES[1:])):
        for rate in rates:
            line = lines[(lines["variant"] == variant) & (lines["learning_rate"] == rate)]
            assert list(line["steps"]) == [*STOPS, FULL]


@pytest.mark.slow
def test_the_maps_are_the_changes_from_the_base_model_at_every_rate_and_step(drawn):
    scores, figure = drawn
    _, *maps = figure.axes
    titles = [axes.get_title(loc="left") for axes in maps]
    assert titles == ["FwdKL, ID", "FwdKL, OOD", "GeoSD, ID", "GeoSD, OOD"]
    for axes, (variant, benchmark) in zip(
        maps, itertools.product(("fwdkl", "geosd"), ("id", "ood_avg")), strict=True
    ):
        rates = RATES[::-1][: len(RATES) - (variant == "geosd")]  # the largest on top
        shown = [text.get_text() for text in axes.get_yticklabels()]
        assert shown == [method_style_rate(rate) for rate in rates]
        expected = [
            [
                gain(scores, f"{variant}-{rate}-{steps}", benchmark).mean()
                for steps in (*STOPS, FULL)
            ]
            for rate in rates
        ]
        (mesh,) = axes.collections
        np.testing.assert_allclose(mesh.get_array().reshape(len(rates), -1), expected)
        assert mesh.get_clim() == (-FRAME, FRAME), "no change is the middle of the scale"
        numbers = [text.get_text().replace("−", "-") for text in axes.texts]
        assert [*map(float, numbers)] == pytest.approx(np.ravel(expected).tolist(), abs=0.5)


def test_a_rate_that_was_not_stopped_at_a_step_has_an_empty_field():
    sparse = [p for p in points() if p["steps"] == FULL or p["learning_rate"] == 1e-6]
    figure = stepsize.plot(made_up_scores(), ["m"], {"m": sparse})
    (mesh,) = figure.axes[1].collections
    known = ~np.ma.getmaskarray(mesh.get_array()).reshape(len(RATES), -1)
    assert known.sum(axis=1).tolist() == [1, 1, len(STOPS) + 1, 1, 1, 1]


def test_a_grid_over_both_gives_a_dashed_line_for_each_learning_rate():
    both = pd.DataFrame(
        [("geosd", rate, steps) for rate in (1e-6, 1e-5) for steps in (10, 20)],
        columns=["variant", "learning_rate", "steps"],
    )
    assert stepsize.figure_stepsize_stops(both)["learning_rate"].value_counts().to_dict() == {
        1e-6: 2,
        1e-5: 2,
    }
    assert list(stepsize.figure_stepsize_rates(both)["learning_rate"]) == [1e-6, 1e-5]


@pytest.mark.slow
def test_without_early_stopping_there_is_no_dashed_line_and_the_bytes_are_the_same(
    tmp_path, svg_alone
):
    files = []
    for folder in ("a", "b"):
        figure = stepsize.plot(made_up_scores(), ["m"], {"m": points(stops=())})
        assert len(figure.axes) == 1
        assert "stopped early" not in [t.get_text() for t in figure.legends[0].get_texts()]
        files.append([path.read_bytes() for path in save(figure, tmp_path / folder, "s")])
    assert files[0] == files[1]


def test_a_study_without_base_is_refused_with_a_hint():
    scores = made_up_scores()
    with pytest.raises(ValueError, match="(?s)pi_0 has no score on .*Hint:"):
        stepsize.plot(scores[scores["variant"] != "pi_0"], ["m"], {"m": points()})
