"""The privilege sweep shows the runs' changes, and says what a study lacks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from geosd.reporting import figure_privilege as privilege
from geosd.reporting.figures import save
from geosd.reporting.method_style import METHODS
from geosd.scores.score_table import scores_by_seed
from geosd.scores.tidy import COLUMNS

SWEPT = {"geosd": 6, "fwdkl": -9, "revkl": -8}
SHARES = (0.25, 0.5, 0.75, 1.0)


def points(full="geosd"):
    """Runs of the sweep; one variant's full privilege is the plain variant."""
    return [
        {
            "run": v if v == full and share == 1 else f"{v}-privilege_{share}",
            "variant": v,
            "privilege": share,
        }
        for v in SWEPT
        for share in SHARES
    ]


def made_up_scores(seeds=3, models=("m",)) -> pd.DataFrame:
    draw, rows = np.random.default_rng(2), []
    for model in models:
        centres = {"pi_0": 50.0}
        centres |= {p["run"]: 50 + SWEPT[p["variant"]] * p["privilege"] for p in points()}
        for run, centre in centres.items():
            for seed in range(seeds):
                value = centre + draw.normal(0, 0.8)
                rows.append((model, run, seed, 0, "ood_avg", "OOD", "avg@k", 16, value))
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def drawn(scores, models, swept=None):
    rates = {model: {"fwdkl": 1e-6, "revkl": 1e-5, "geosd": 3e-5} for model in models}
    return privilege.plot(scores, models, {model: swept or points() for model in models}, rates)


def test_changes_and_intervals_are_those_of_the_runs():
    scores = made_up_scores(seeds=5)
    sweep = privilege.figure_privilege_changes(scores, "m", points())
    order = ["fwdkl", "revkl", "geosd"]
    assert list(sweep["variant"].unique()) == order, "in the order of every figure"
    (axes,) = drawn(scores, ["m"]).axes
    line, band = axes.lines[1 + order.index("geosd")], axes.collections[order.index("geosd")]
    runs = scores_by_seed(scores, "m", "geosd", "ood_avg")
    base = scores_by_seed(scores, "m", "pi_0", "ood_avg")
    low, high = DescrStatsW(runs - base).tconfint_mean()
    assert line.get_color() == METHODS["geosd"].colour
    assert line.get_xydata()[-1] == pytest.approx((100, runs.mean() - base.mean()))
    corners = band.get_paths()[0].vertices
    ends = corners[corners[:, 0] == 100, 1]
    assert (ends.min(), ends.max()) == pytest.approx((low, high))


def test_points_stand_in_the_order_of_privilege_whatever_the_order_of_the_grid():
    (axes,) = drawn(made_up_scores(seeds=4), ["m"], points()[::-1]).axes
    assert list(axes.lines[2].get_xdata()) == [100 * share for share in SHARES]
    assert axes.lines[2].get_color() == METHODS["revkl"].colour


def test_one_seed_draws_a_line_without_a_band():
    (axes,) = drawn(made_up_scores(seeds=1), ["m"]).axes
    assert len(axes.lines) == 4 and all(np.isfinite(line.get_ydata()).all() for line in axes.lines)
    assert not any(band.get_paths() for band in axes.collections)


@pytest.mark.parametrize("models", [("m",), ("a", "b", "c")])
def test_labels_stay_on_the_page_and_apart(models):
    figure = drawn(made_up_scores(models=models), models)
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = {text.get_text() for text in axes.texts}
        assert texts == {"FwdKL at 1e-6", "RevKL at 1e-5", "GeoSD at 3e-5"}
        boxes = [t.get_window_extent() for t in axes.texts]
        assert len(boxes) == 3 and max(box.x1 for box in boxes) <= figure.bbox.x1
        for at, box in enumerate(boxes):
            assert not any(box.shrunk(1, 0.8).overlaps(o.shrunk(1, 0.8)) for o in boxes[at + 1 :])


def test_the_same_scores_draw_the_same_bytes(tmp_path, svg_alone):
    files = []
    for folder in ("a", "b"):
        paths = save(drawn(made_up_scores(), ["m"]), tmp_path / folder, "p")
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]


def test_a_study_without_base_is_refused_with_a_hint():
    scores = made_up_scores()
    with pytest.raises(ValueError, match="(?s)pi_0 has no score on ood_avg.*Hint:"):
        drawn(scores[scores["variant"] != "pi_0"], ["m"])
