"""Figures have one family of letters, and colours that every eye and grey print tell apart."""

from __future__ import annotations

import itertools
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from geosd.reporting import figure_density, figure_overview, figure_stepsize
from geosd.reporting.figures import FONT, SMALLEST_PT, save
from geosd.reporting.method_style import BACKGROUND, EMPHASIZED, METHODS

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
APART = 12.0
"""Least difference in lightness L*, from 0 to 100, of what grey print must tell apart."""


def linear(colour) -> np.ndarray:
    """Linear RGB of a colour, or of a list of them, in sRGB."""
    rgb = np.asarray(colour, dtype=float)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lightness(colour) -> np.ndarray:
    """CIE L* of a colour in sRGB: what is left of it in grey print."""
    y = linear(colour) @ [0.2126, 0.7152, 0.0722]
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


def seen(colour: str, blindness: str) -> np.ndarray:
    """sRGB of a colour as an eye with a blindness sees it."""
    light = np.clip(np.asarray(BLINDNESS[blindness]) @ linear(to_rgb(colour)), 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def pairs_of_one_marker():
    for a, b in itertools.combinations(METHODS.values(), 2):
        if a.marker == b.marker:
            yield a, b


def test_lightness_is_that_of_known_greys():
    assert lightness([[0, 0, 0], [1, 1, 1]]) == pytest.approx([0, 100], abs=0.01)
    assert lightness(np.full(3, 0x77 / 255)) == pytest.approx(50.03, abs=0.02)


def test_grey_print_distinguishes_methods_of_one_marker():
    for a, b in pairs_of_one_marker():
        apart = abs(lightness(to_rgb(a.colour)) - lightness(to_rgb(b.colour)))
        assert apart >= APART, (a.label, b.label)


def test_grey_print_distinguishes_the_methods_that_keep_their_colour():
    greys = sorted(float(lightness(to_rgb(METHODS[name].colour))) for name in EMPHASIZED)
    assert min(np.diff(greys)) >= APART
    assert all(to_rgb(METHODS[name].colour) != to_rgb(BACKGROUND) for name in EMPHASIZED)


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_every_eye_tells_methods_of_one_marker_and_those_in_colour_apart(blindness):
    coloured = itertools.combinations([METHODS[name] for name in EMPHASIZED], 2)
    for a, b in [*pairs_of_one_marker(), *coloured]:
        difference = np.abs(seen(a.colour, blindness) - seen(b.colour, blindness)).max()
        assert difference > 0.15, (a.label, b.label)


def test_colours_are_unique_and_dark_enough_for_white_paper():
    colours = [m.colour for m in METHODS.values()]
    assert len(set(colours)) == len(colours)
    assert all(lightness(to_rgb(colour)) < 78 for colour in colours)


@pytest.mark.parametrize("shades", [figure_density.SHADES, figure_stepsize.SHADES])
def test_scales_of_colour_go_one_way_in_grey_print(shades):
    greys = lightness(matplotlib.colormaps.get_cmap(shades)(np.linspace(0, 1, 32))[:, :3])
    steps = np.diff(greys)
    assert (steps > 0).all() or (steps < 0).all()
    assert abs(greys[-1] - greys[0]) > 50


@pytest.fixture(scope="module")
def overview():
    return figure_overview.plot()


@pytest.mark.slow
def test_letters_and_mathematics_are_of_one_family(overview, tmp_path):
    (pdf,) = [path for path in save(overview, tmp_path, "figure") if path.suffix == ".pdf"]
    embedded = set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([\w-]+)", pdf.read_bytes()))
    families = {name.decode().partition("-")[0] for name in embedded}
    family = FONT.replace(" ", "")
    assert len(embedded) >= 3, "upright, oblique and bold"
    assert families <= {family, f"{family}Display"}  # Display: the large signs of the same family


def test_no_letter_is_too_small_to_read_in_print(overview):
    texts = [text for text in overview.findobj(Text) if text.get_text() and text.get_visible()]
    assert len(texts) > 10
    assert min(text.get_fontsize() for text in texts) >= SMALLEST_PT


@pytest.mark.slow
def test_the_look_does_not_depend_on_the_users_settings(tmp_path):
    with matplotlib.rc_context({"font.family": "serif", "font.size": 20, "axes.grid": True}):
        elsewhere = [p.read_bytes() for p in save(figure_overview.plot(), tmp_path, "figure")]
    here = [p.read_bytes() for p in save(figure_overview.plot(), tmp_path, "figure")]
    assert elsewhere == here
