"""The consensus figure shows the runs' means, and says what a study lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.reporting import figure_consensus as consensus
from geosd.reporting.figures import save
from geosd.reporting.method_style import EMPHASIZED, METHODS
from geosd.scores.tidy import COLUMNS

ALL = list(METHODS)


def made_up_table(
    models: Sequence[str], variants: Sequence[str], seeds: int, n: int
) -> pd.DataFrame:
    """A table of the shape that analyse writes, with made-up numbers."""
    draw, rows = np.random.default_rng(7), []
    for model in models:
        for at, variant in enumerate(variants):
            for seed in range(seeds):
                head = (model, variant, seed, 0)
                slope = 0.10 + 0.02 * (at % 7) + draw.normal(0, 0.006)
                for k in range(1, n + 1):
                    rows.append((*head, "pass@k", k, 80, 100 * (1 - np.exp(-slope * k**0.6 - 0.5))))
                rate = abs(draw.normal(6 - 0.4 * at, 1.2))
                rows.append((*head, "false_consensus", 0.75, 80, rate))
                for j in range(n + 1):
                    right = np.clip(100 * (j / n) ** (1 + 0.1 * at) + draw.normal(0, 6), 0, 100)
                    problems = int(draw.integers(0 if j < 3 else 2, 9))
                    if problems:
                        rows.append((*head, "majority_accuracy", j / n, problems, right))
    return pd.DataFrame(rows, columns=list(COLUMNS["consensus"]))


def test_curves_and_bands_are_those_of_the_runs():
    table = made_up_table(["m"], ["geosd"], seeds=4, n=16)
    coverage, wrong, _ = consensus.plot(table, ["m"], ["geosd"]).axes
    runs = table.query("quantity == 'pass@k' and x == 8")["value"]
    low, high = stats.t.interval(0.95, 3, runs.mean(), stats.sem(runs))
    assert coverage.lines[0].get_xydata()[7] == pytest.approx((8, runs.mean()))
    corners = coverage.collections[0].get_paths()[0].vertices
    ends = corners[corners[:, 0] == 8, 1]
    assert (ends.min(), ends.max()) == pytest.approx((low, high))
    rates = table.query("quantity == 'false_consensus'")["value"]
    low, high = stats.t.interval(0.95, 3, rates.mean(), stats.sem(rates))
    assert wrong.patches[0].get_width() == pytest.approx(rates.mean())
    assert tuple(wrong.lines[0].get_xdata()) == pytest.approx((max(low, 0), high))


def test_strengths_are_binned_by_problems_and_the_threshold_begins_a_bin():
    rows = [
        ("m", "geosd", 0, 0, "majority_accuracy", 0.0, 50, 0.0),  # no answer: no majority
        ("m", "geosd", 0, 0, "majority_accuracy", 0.6875, 10, 100.0),
        ("m", "geosd", 0, 0, "majority_accuracy", 0.75, 6, 0.0),
        ("m", "geosd", 0, 0, "majority_accuracy", 0.8125, 2, 100.0),
        ("m", "geosd", 1, 0, "majority_accuracy", 0.75, 4, 100.0),
        ("m", "geosd", 1, 0, "majority_accuracy", 1.0, 4, 100.0),  # too few to draw
    ]
    found = consensus.consensus_figure_points(
        pd.DataFrame(rows, columns=list(COLUMNS["consensus"]))
    )
    strong = (10 * 0.75 + 2 * 0.8125) / 12
    assert found["strength"].tolist() == pytest.approx([0.6875, strong, strong])
    assert found["accuracy"].tolist() == pytest.approx([100, 25, 100])


def test_bins_say_how_many_problems_of_the_first_method_they_hold():
    table = made_up_table(["m"], ["pi_0", "geosd"], seeds=4, n=16)
    right = consensus.plot(table, ["m"], ["pi_0", "geosd"]).axes[2]
    rows = table.query("quantity == 'majority_accuracy' and variant == 'pi_0' and x > 0")
    counts, _ = np.histogram(rows["x"], [*consensus.STRENGTHS[:-1], 1.1], weights=rows["problems"])
    said = [text.get_text() for text in right.texts if text.get_text().strip()]
    assert said == [str(int(n)) for n in counts if n >= 10]


def test_one_run_has_no_band():
    table = made_up_table(["m"], ["geosd"], seeds=1, n=8)
    coverage, wrong, right = consensus.plot(table, ["m"], ["geosd"]).axes
    assert len(coverage.lines[0].get_xdata()) == 8
    assert not any(band.get_paths() for axes in (coverage, right) for band in axes.collections)
    assert not wrong.lines


@pytest.mark.parametrize(("seeds", "n"), [(3, 16), (2, 32)])
def test_k_runs_to_the_number_of_samples_on_a_log2_axis(seeds, n):
    figure = consensus.plot(made_up_table(["m"], ALL, seeds, n), ["m"], ALL)
    axes = figure.axes[0]
    assert axes.get_xscale() == "log" and axes.xaxis.get_transform().base == 2
    assert axes.get_xticklabels()[-1].get_text() == str(n)
    assert max(axes.lines[0].get_xdata()) == n


def test_methods_of_the_paper_are_shown_and_ablations_are_not():
    figure = consensus.plot(made_up_table(["m"], ALL, 2, 8), ["m"], [*ALL, "geosd-privilege_0.5"])
    bars = [text.get_text() for text in figure.axes[1].get_yticklabels()]
    assert bars == [METHODS[v].label for v in ALL[:10]]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == [*(METHODS[v].label for v in EMPHASIZED), "other methods"]


def test_at_most_five_methods_have_a_colour_and_a_band():
    models = ["mini-qwen3", "mini-olmo3"]
    figure = consensus.plot(made_up_table(models, ALL, 4, 8), models, ALL)
    panels = np.reshape(figure.axes, (2, 3))
    for axes in panels[:, [0, 2]].flat:
        assert len([band for band in axes.collections if band.get_paths()]) == len(EMPHASIZED)
        colours = {line.get_color() for line in axes.lines if line.get_linewidth() > 1}
        assert colours == {METHODS[v].colour for v in EMPHASIZED}
    titles = [[axes.get_title("left") for axes in row] for row in panels]
    assert titles == [["A", "B", "C"], ["", "", ""]]
    for row, model in zip(panels, models, strict=True):
        assert row[0].get_ylabel().startswith(model)
    for column in panels.T:
        assert column[0].get_xlim() == column[1].get_xlim()


@pytest.mark.slow
def test_nothing_is_cut_and_every_model_has_its_row(tmp_path, svg_alone):
    models = ["mini-qwen3", "mini-olmo3"]
    table = made_up_table(models, ALL, 2, 16)
    figure = consensus.plot(table, models, ALL)
    figure.draw_without_rendering()
    assert len(figure.axes) == 6
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for at, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])
    files = []
    for folder in ("a", "b"):
        paths = save(consensus.plot(table, models, ALL), tmp_path / folder, "c")
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]
