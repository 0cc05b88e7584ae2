"""Figures of states and checkpoints show the tables' numbers, the same bytes every time."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from scipy import stats

from geosd.reporting import figure_alignment, figure_density, figure_mechanism, figure_overview
from geosd.reporting.figures import save
from geosd.reporting.method_style import METHODS
from geosd.scores.state_table import bin_states_by_overlap
from geosd.scores.tidy import COLUMNS

MODELS = ("mini-qwen3", "mini-llama")
DRIFTING = ["fwdkl", "geosd_no_prox", "geosd"]
RATES = {model: dict.fromkeys(DRIFTING, 1e-5) for model in MODELS}


@pytest.fixture(scope="module")
def states():
    draw = np.random.default_rng(0)
    tables = []
    for model in MODELS:
        overlap = draw.beta(4, 1, 500)
        table = pd.DataFrame({"model": model, "overlap": overlap})
        table["q_star"], table["p_star"] = draw.beta(5, 1, 500), draw.beta(2, 2, 500)
        for name, pull in (("fwdkl", 1 - overlap), ("revkl", 0.5), ("hellinger", overlap / 4)):
            table[f"gradient_{name}"] = pull * draw.uniform(0.8, 1.2, 500)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


@pytest.fixture(scope="module")
def drift():
    slopes = {"fwdkl": 4e-3, "geosd_no_prox": 3e-3, "geosd": 2.9e-3}  # two ends that touch
    rows = [
        (model, variant, seed, 0, step, slope * step + 1e-3 * seed)
        for model in MODELS
        for variant, slope in slopes.items()
        for seed in range(4)
        for step in range(0, 100, 5)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["drift_over_steps"]))


@pytest.fixture(scope="module")
def masses():
    rows = [
        (model, variant, seed, 0, step, ranking, rank, (0.4 + step / 200) / rank**2, 30)
        for model in MODELS
        for variant in ("fwdkl", "geosd")
        for seed in range(2)
        for step in (0, 10, 50, 100)
        for ranking in ("pi_0", "live")
        for rank in range(1, 9)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["alignment"]))


@pytest.fixture(scope="module")
def figures(states, drift, masses):
    return {
        "mechanism": lambda models: figure_mechanism.plot(states, drift, models, DRIFTING, RATES),
        "alignment": lambda models: figure_alignment.plot(
            masses, models, ["fwdkl", "geosd"], RATES
        ),
        "density": lambda models: figure_density.plot(states, models),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mechanism", "alignment", "density"])
def test_the_same_tables_draw_the_same_bytes(figures, name, tmp_path, svg_alone):
    first, second = (
        [path.read_bytes() for path in save(figures[name](MODELS[:1]), tmp_path / folder, name)]
        for folder in "ab"
    )
    assert first == second
    assert len(first) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mechanism", "alignment", "density"])
@pytest.mark.parametrize("models", [MODELS[:1], MODELS])
def test_no_text_covers_another_or_leaves_the_page(figures, name, models):
    figure = figures[name](models)
    figure.draw_without_rendering()
    for axes in figure.axes:
        titles = [
            axes.title,
            axes._left_title,
            axes._right_title,
            axes.xaxis.label,
            axes.yaxis.label,
        ]
        texts = [t for t in [*axes.texts, *titles] if t.get_text()]
        boxes = [(t.get_text(), t.get_window_extent()) for t in texts]
        for (a, first_box), (b, second_box) in itertools.combinations(boxes, 2):
            assert not first_box.shrunk(0.95, 0.7).overlaps(second_box.shrunk(0.95, 0.7)), (a, b)
        for text, box in boxes:
            assert box.x0 >= -1 and box.y0 >= -1, text
            assert box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1, text


def lines(axes):
    return {line.get_color().lower(): line for line in axes.lines if len(line.get_xdata())}


def ends_of_band(axes, colour, at):
    """Lower and upper ends of the band of a colour, at each x."""
    (band,) = [c for c in axes.collections if np.allclose(c.get_facecolor()[0][:3], to_rgb(colour))]
    corners = band.get_paths()[0].vertices
    heights = [corners[np.isclose(corners[:, 0], x), 1] for x in at]
    return [(height.min(), height.max()) for height in heights]


def quartiles(groups):
    return [tuple(np.percentile(values, [25, 75])) for _, values in groups]


def ends_of(axes):
    """The labels at the ends of a panel's lines."""
    return {text.get_text() for text in axes.texts if " at " in text.get_text()}


def panel(figure, title):
    return next(axes for axes in figure.axes if title in axes.get_title("left"))


def test_panel_a_draws_the_medians_of_each_bin(figures, states):
    figure = figures["mechanism"](MODELS[:1])
    axes = next(a for a in figure.axes if a.get_ylabel().startswith("gradient"))
    states = bin_states_by_overlap(states[states["model"] == MODELS[0]])
    bins = states.groupby("mean_overlap")
    for divergence, variant in (("fwdkl", "fwdkl"), ("revkl", "revkl"), ("hellinger", "geosd")):
        norms, colour = bins[f"gradient_{divergence}"], METHODS[variant].colour
        line = lines(axes)[colour.lower()]
        np.testing.assert_allclose(line.get_xdata(), list(bins.groups))
        np.testing.assert_allclose(line.get_ydata(), norms.median())
        np.testing.assert_allclose(ends_of_band(axes, colour, line.get_xdata()), quartiles(norms))


def test_panel_a_has_no_line_where_it_has_no_data(states, drift):
    parted = states[(states["overlap"] < 0.6) | (states["overlap"] >= 0.8)]
    figure = figure_mechanism.plot(parted, drift, MODELS[:1], DRIFTING, RATES)
    axes = next(a for a in figure.axes if a.get_ylabel().startswith("gradient"))
    for line in lines(axes).values():
        empty = np.flatnonzero(np.isnan(line.get_ydata()))
        assert len(empty) == 4 and (np.diff(empty) == 1).all(), "bins from .6 to .8"


def test_panel_a_begins_where_its_bins_do(states, drift):
    agreeing = states[states["overlap"] > 0.62]
    figure = figure_mechanism.plot(agreeing, drift, MODELS[:1], DRIFTING, RATES)
    for axes in figure.axes:
        if axes.get_title("left") != "B":
            assert axes.get_xlim() == pytest.approx((0.6, 1))


def test_a_divergence_has_one_name_in_all_figures(figures):
    names = [text.get_text() for text in figures["mechanism"](MODELS[:1]).legends[0].get_texts()]
    overview = {text.get_text() for text in figure_overview.plot().axes[0].texts}
    assert len(names) == 3 and {*names} <= overview


def test_panel_b_draws_the_mean_over_seeds_at_each_step(figures):
    axes = panel(figures["mechanism"](MODELS[:1]), "B")
    line = lines(axes)[METHODS["fwdkl"].colour.lower()]
    np.testing.assert_allclose(line.get_xdata(), range(0, 100, 5))
    np.testing.assert_allclose(line.get_ydata(), 4e-3 * np.arange(0, 100, 5) + 1.5e-3)
    bands = np.array(ends_of_band(axes, METHODS["fwdkl"].colour, line.get_xdata()))
    low, high = stats.t.interval(0.95, 3, 0, stats.sem([0, 1e-3, 2e-3, 3e-3]))
    np.testing.assert_allclose(bands, line.get_ydata()[:, None] + [[low, high]])
    assert ends_of(axes) == {f"{METHODS[variant].label} at 1e-5" for variant in DRIFTING}


def test_a_variant_that_the_study_does_not_train_is_left_out(states, drift):
    figure = figure_mechanism.plot(states, drift, MODELS[:1], ["fwdkl", "geosd"], RATES)
    assert len(ends_of(panel(figure, "B"))) == 2


def test_a_map_says_the_masses_of_the_base_model_and_the_changes_from_it(figures):
    axes = figures["alignment"](MODELS[:1]).axes[0]
    words = np.reshape([text.get_text() for text in axes.texts], (4, 8))
    assert words[0, 0] == ".400" and words[0, 1] == ".100"
    changes = [[f"+{1000 * step / 200 / rank**2:.1f}" for rank in range(1, 9)] for step in (10, 50)]
    assert words[1:3].tolist() == changes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["π₀", "10", "50", "100"]
    (mesh,) = axes.collections
    assert mesh.get_clim() == pytest.approx((-0.5, 0.5)), "no change is the middle of the scale"
    assert axes.get_title("left") == "FwdKL at 1e-5, mini-qwen3"


def test_the_share_in_the_mismatch_region_is_counted_from_the_states(figures, states):
    of_model = states[states["model"] == MODELS[0]]
    inside = [row.q_star >= 0.8 and row.p_star <= 0.1 for row in of_model.itertuples()]
    share = np.mean(inside)
    axes = figures["density"](MODELS[:1]).axes[0]
    (words,) = axes.texts
    assert words.get_text() == f"{100 * share:.2g} % in the frame (n = {len(of_model)})"
    assert words.xy[1] > 1, "no text over cells"
    assert axes.patches[0].get_xy() == (0.8, 0)
    cells = axes.collections[0].get_array()
    assert cells.sum() == pytest.approx(1.0)
    ends = (cells[cells > 0].min(), cells.max())
    assert axes.collections[0].get_clim() == pytest.approx(ends), "all of the scale is in use"


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_row_of_densities_may_be_short(states, number):
    names = [f"m-{n}" for n in range(number)]
    tables = [states[states["model"] == MODELS[0]].assign(model=name) for name in names]
    figure = figure_density.plot(pd.concat(tables), names)
    figure.draw_without_rendering()
    assert [axes.get_title("left") for axes in figure.axes] == names


def test_without_states_the_figures_say_what_to_do(states, drift):
    with pytest.raises(ValueError, match="(?s)other has no states.*Hint:"):
        figure_density.plot(states, ["other"])
    with pytest.raises(ValueError, match="(?s)other has no states.*Hint:"):
        figure_mechanism.plot(states, drift, ["other"], DRIFTING, RATES)


def rows_of_seed(seed, steps):
    return [
        ("m", "fwdkl", seed, 0, step, ranking, rank, seed + step / 10 + rank / 100, 5)
        for step in steps
        for ranking in ("pi_0", "live")
        for rank in (1, 2)
    ]


def test_a_mass_is_the_mean_over_seeds_at_each_rank():
    table = pd.DataFrame(
        rows_of_seed(0, [0, 3]) + rows_of_seed(1, [0, 3]), columns=list(COLUMNS["alignment"])
    )
    found = figure_alignment.figure_alignment_masses(table, "m", "fwdkl")
    assert found.index.tolist() == [0, 3] and found.columns.tolist() == [1, 2]
    assert found.to_numpy() == pytest.approx(np.array([[0.51, 0.52], [0.81, 0.82]]))


def test_seeds_with_unlike_checkpoints_are_not_averaged():
    table = pd.DataFrame(
        rows_of_seed(0, [0, 3]) + rows_of_seed(1, [0]), columns=list(COLUMNS["alignment"])
    )
    with pytest.raises(ValueError, match="(?s)fwdkl on m.*unlike checkpoints.*Hint:"):
        figure_alignment.figure_alignment_masses(table, "m", "fwdkl")
    with pytest.raises(ValueError, match="(?s)geosd on m.*no rows.*Hint:"):
        figure_alignment.figure_alignment_masses(table, "m", "geosd")
