"""The ladder shows each model's accuracy before and after."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.reporting import figure_scale as scale
from geosd.reporting.figures import save
from geosd.reporting.method_style import METHODS
from geosd.scores.score_table import scores_by_seed
from geosd.scores.tidy import COLUMNS

LADDER = ["mini-qwen3-xs", "mini-qwen3-s", "mini-qwen3", "mini-qwen3-l", "mini-qwen3-xl"]
BOTH = ["pi_0", "geosd"]


def made_up_scores(models=tuple(LADDER), seeds=3) -> pd.DataFrame:
    draw, rows = np.random.default_rng(4), []
    for at, model in enumerate(models):
        for variant, gain in (("pi_0", 0), ("geosd", 8 - abs(at - 2) * 2)):
            for seed in range(seeds):
                for benchmark, base, times in (("id", 45, 2.5), ("ood_avg", 32, 1)):
                    split = "ID" if benchmark == "id" else "OOD"
                    value = base + 6 * at + times * gain + draw.normal(0, 1)
                    rows.append((model, variant, seed, 0, benchmark, split, "avg@k", 16, value))
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def test_lines_are_the_means_of_the_runs_in_the_studys_order():
    scores = made_up_scores(seeds=5)
    figure = scale.plot(scores, LADDER, BOTH)
    lines = {line.get_color(): line for line in figure.axes[1].lines}
    for variant in BOTH:
        line = lines[METHODS[variant].colour]
        expected = [scores_by_seed(scores, m, variant, "ood_avg").mean() for m in LADDER]
        assert line.get_ydata() == pytest.approx(expected)
        assert list(line.get_xdata()) == [scale.figure_scale_size(model) for model in LADDER]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == [METHODS[variant].label for variant in BOTH]
    bands = [band.get_paths()[0].vertices for band in figure.axes[1].collections]
    runs = scores_by_seed(scores, LADDER[0], "geosd", "ood_avg")
    _, high = stats.t.interval(0.95, 4, runs.mean(), stats.sem(runs))
    smallest = scale.figure_scale_size(LADDER[0])
    tops = [band[:, 1][band[:, 0] == smallest].max() for band in bands]
    assert any(top == pytest.approx(high) for top in tops)


def test_both_panels_say_the_gain_of_each_size():
    scores = made_up_scores()
    for axes, benchmark in zip(
        scale.plot(scores, LADDER, BOTH).axes, ("id", "ood_avg"), strict=True
    ):
        means = {v: [scores_by_seed(scores, m, v, benchmark).mean() for m in LADDER] for v in BOTH}
        gains = np.subtract(means["geosd"], means["pi_0"])
        said = [text.get_text() for text in axes.texts if text.get_text()[0] in "+−"]
        assert said == [f"{gain:+.1f}".replace("-", "−") for gain in gains]


def test_the_axis_is_the_logarithm_of_all_parameters():
    axes = scale.plot(made_up_scores(), LADDER, BOTH).axes[1]
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert axes.get_xscale() == "log" and shown == ["27k", "52k", "102k", "203k", "598k"]
    assert [scale.figure_scale_count(scale.figure_scale_size(f"qwen3-{n}b")) for n in (8, 14)] == [
        "8.2B",
        "15B",
    ]


def test_labels_stay_on_the_page_and_apart():
    figure = scale.plot(made_up_scores(), LADDER, BOTH)
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = [t for t in [*axes.texts, *axes.get_xticklabels()] if t.get_visible()]
        boxes = [text.get_window_extent() for text in texts]
        assert max(box.x1 for box in boxes) <= figure.bbox.x1
        for at, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[at + 1 :])


def test_one_seed_has_no_band_and_the_same_scores_draw_the_same_bytes(tmp_path, svg_alone):
    files = []
    for folder in ("a", "b"):
        paths = save(scale.plot(made_up_scores(seeds=1), LADDER, BOTH), tmp_path / folder, "s")
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]
