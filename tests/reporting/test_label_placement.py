"""Direct labels: on a crowd of points no label lies on another's line."""

import random

import matplotlib.pyplot as plt
import pytest
from matplotlib.transforms import Bbox

from geosd.reporting.label_placement import LabelledPoint, place_labels


@pytest.fixture
def axes():
    figure, axes = plt.subplots(figsize=(2.3, 2.3), dpi=100, layout="constrained")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    yield axes
    plt.close(figure)


def crowd(seed, count):
    draw = random.Random(seed)
    at = [(0.5 + draw.gauss(0, 0.08), 0.5 + draw.gauss(0, 0.08)) for _ in range(count)]
    return [LabelledPoint(x, y, f"method {i}", "k", 4.0, (0.2, 0.2)) for i, (x, y) in enumerate(at)]


@pytest.mark.parametrize(("seed", "count"), [(29, 3), (7, 4), (17, 4), (28, 4), (7, 5), (33, 5)])
def test_no_line_crosses_the_label_of_another(axes, seed, count):
    points = crowd(seed, count)
    place_labels(axes, points, 7.0)
    renderer = axes.figure.canvas.get_renderer()
    boxes = {}
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        # Above the letters a fifth of the box is empty.
        boxes[text.get_text()] = Bbox.from_extents(box.x0, box.y0, box.x1, box.y1 - box.height / 5)
    names = {(point.x, point.y): point.text for point in points}
    assert axes.lines
    for line in axes.lines:
        own, path = (
            names[tuple(line.get_xydata()[1])],
            axes.transData.transform_path(line.get_path()),
        )
        crossed = {name for name, box in boxes.items() if path.intersects_bbox(box, filled=False)}
        assert crossed <= {own}, f"the line of {own}"


@pytest.mark.parametrize(("seed", "count"), [(1, 6), (2, 4), (5, 4), (6, 6), (8, 4), (11, 6)])
def test_no_label_touches_a_whisker(axes, seed, count):
    draw = random.Random(seed)
    points = [
        LabelledPoint(
            draw.uniform(0.1, 0.9),
            draw.uniform(0.1, 0.9),
            f"method {i}",
            "k",
            2.6,
            (draw.uniform(0.02, 0.3), draw.uniform(0.03, 0.12)),
        )
        for i in range(count)
    ]
    place_labels(axes, points, 7.0)
    renderer, half_point = axes.figure.canvas.get_renderer(), 0.5 * axes.figure.dpi / 72
    for text in axes.texts:
        box = text.get_window_extent(renderer)
        baseline = axes.transData.transform(text.get_position())[1]
        # Above the letters a quarter of what is above the baseline is empty.
        top = baseline + 0.75 * (box.y1 - baseline)
        letters = Bbox.from_extents(box.x0, baseline, box.x1, top)
        for point in points:
            for x, y in ((point.spread[0], 0), (0, point.spread[1])):
                ends = [(point.x - x, point.y - y), (point.x + x, point.y + y)]
                (x0, y0), (x1, y1) = axes.transData.transform(ends)
                whisker = Bbox.from_extents(x0, y0, x1, y1).padded(half_point)
                assert not letters.overlaps(whisker), f"{text.get_text()} on {point.text}"
