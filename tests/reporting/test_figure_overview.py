"""The overview's curves are gradients of the losses in training, and show the paper's mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from geosd.reporting import figure_overview as overview


@pytest.mark.parametrize("name", overview.WEIGHTS)
def test_each_pull_is_the_norm_of_the_gradient_that_training_computes(name):
    torch = pytest.importorskip("torch")
    from geosd import geometry

    loss = {
        "fwdkl": geometry.forward_kl,
        "revkl": geometry.reverse_kl,
        "jsd": geometry.jsd,
        "skewkl": geometry.skew_kl,
        "geosd": geometry.hellinger,
    }[name]
    draw = np.random.default_rng(0)
    p, q = draw.dirichlet(np.ones(5), 20), draw.dirichlet(np.ones(5), 20)
    logits = torch.tensor(np.log(p), requires_grad=True)
    loss(logits, torch.tensor(np.log(q))).sum().backward()
    expected = logits.grad.norm(dim=-1).numpy()
    assert overview.figure_overview_pull(overview.WEIGHTS[name], p, q) == pytest.approx(
        expected, rel=1e-9
    )


def test_students_run_from_exclusion_to_agreement():
    p, q = overview.figure_overview_states(0.9)
    along = np.sqrt(p * q).sum(-1)
    assert along[0] == pytest.approx(np.sqrt(0.1), abs=1e-3) and along[-1] == pytest.approx(1)
    assert (np.diff(along) > 0).all() and p.sum(-1) == pytest.approx(1)


def test_hellinger_lets_go_of_what_the_student_excludes_and_forward_kl_does_not():
    p, q = overview.figure_overview_states(0.99)
    pulls = {
        name: overview.figure_overview_pull(weight, p, q)
        for name, weight in overview.WEIGHTS.items()
    }
    assert pulls["geosd"][0] < 1e-3
    assert pulls["fwdkl"][0] == pytest.approx(np.sqrt(2) * 0.99)
    assert (np.diff(pulls["fwdkl"]) < 0).all(), "grows as overlap falls"
    assert (np.diff(overview.WEIGHTS["geosd"](p, q)[:, 0]) > 0).all(), "grows with agreement"


def test_the_drawn_chord_and_arc_are_those_of_the_points():
    axes = overview.plot().axes[2]
    chord, arc = (line for line in axes.lines if line.get_linewidth() in (1.5, 3))
    ends = chord.get_xydata()
    assert np.linalg.norm(ends, axis=1) == pytest.approx(1)
    p, q = np.square(ends)
    squared_chord = np.square(ends[0] - ends[1]).sum()
    assert squared_chord / 2 == pytest.approx(1 - np.sqrt(p * q).sum())
    assert arc.get_xydata()[-1] == pytest.approx(ends[0]), "the arc begins at the student"


def test_nothing_touches_in_the_overview():
    figure = overview.plot()
    figure.draw_without_rendering()
    weights, _, circle = figure.axes
    names = [text.get_text() for text in weights.texts if text.get_text().strip()]
    assert sorted(names) == sorted(["FwdKL", "RevKL", "JSD", "SkewKL", "Hellinger (GeoSD)"])
    boxes = [t.get_window_extent() for t in [*weights.texts, *circle.texts] if t.get_text().strip()]
    for at, box in enumerate(boxes):
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert not any(box.shrunk(1, 0.8).overlaps(o.shrunk(1, 0.8)) for o in boxes[at + 1 :])
