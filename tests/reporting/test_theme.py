"""Figures have one family of letters, and colours that every eye and grey print tell apart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from geosd.reporting import figure_density, figure_overview
from geosd.reporting.figures import DARK, FONT, HALF_IN, PAGE_IN, SMALLEST_PT, save
from geosd.reporting.method_style import EMPHASIZED, METHODS, method_style
from geosd.reporting.specs import output_specs

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


def test_lightness_is_that_of_known_greys():
    assert lightness([[0, 0, 0], [1, 1, 1]]) == pytest.approx([0, 100], abs=0.01)
    assert lightness(np.full(3, 0x77 / 255)) == pytest.approx(50.03, abs=0.02)


def lab(rgb) -> np.ndarray:
    """CIE L*a*b* of a colour in sRGB, under daylight."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = linear(rgb) @ to_xyz.T / [0.95047, 1.0, 1.08883]
    fx, fy, fz = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


TOLD_APART = [
    # Methods that stand in one panel as lines without markers, and methods of one marker.
    *itertools.combinations(figure_overview.WEIGHTS, 2),
    *itertools.combinations(output_specs()["figure_mechanism"].trained, 2),
    *itertools.combinations(EMPHASIZED, 2),
    ("grpo", "skewkl"),
    ("revkl", "tropd"),
    *(
        (a, b)
        for a, b in itertools.combinations(METHODS, 2)
        if method_style(a).marker == method_style(b).marker
    ),
]


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_every_eye_and_grey_print_tell_methods_of_one_panel_apart(blindness):
    for pair in TOLD_APART:
        a, b = (method_style(name).colour for name in pair)
        assert np.linalg.norm(lab(seen(a, blindness)) - lab(seen(b, blindness))) >= 15, pair
        assert abs(lightness(to_rgb(a)) - lightness(to_rgb(b))) >= APART, pair


def test_colours_are_unique_and_dark_enough_for_white_paper():
    colours = [m.colour for m in METHODS.values()]
    assert len(set(colours)) == len(colours)
    assert all(lightness(to_rgb(colour)) < 78 for colour in colours)


def test_a_scale_of_colour_goes_one_way_in_grey_print():
    greys = lightness(
        matplotlib.colormaps.get_cmap(figure_density.SHADES)(np.linspace(0, 1, 32))[:, :3]
    )
    steps = np.diff(greys)
    assert (steps > 0).all() or (steps < 0).all()
    assert abs(greys[-1] - greys[0]) > 50


@pytest.fixture(scope="module")
def overview():
    return figure_overview.plot()


def test_letters_are_of_one_family(overview, tmp_path):
    (pdf,) = [path for path in save(overview, tmp_path, "figure") if path.suffix == ".pdf"]
    embedded = set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([\w-]+)", pdf.read_bytes()))
    family = FONT.replace(" ", "")
    assert {name.decode() for name in embedded} == {f"{family}-Regular", f"{family}-Bold"}


SHIPPED = sorted((Path(__file__).parents[2] / "figures").glob("*/*.svg"))


def letters(svg: str):
    """Font, size in points and colour of each letter: outlines have 100 units to a point."""
    for style, size, inside in re.findall(
        r"<g ([^>]*)transform=\"[^\"]*scale\(([\d.]+) -[\d.]+\)\">(.*?)</g>", svg, re.S
    ):
        colour = re.search(r"fill: (#\w+)", style)
        for use in re.findall(r"<use [^>]*>", inside):
            inner = re.search(r"scale\(([\d.]+)\)", use)
            font = re.search(r"href=\"#(.+?)-[0-9a-f]+\"", use)[1]
            scale = 100 * float(size) * float(inner[1] if inner else 1)
            yield font, scale, colour[1] if colour else "#000000"


ROTATED = [[-0.574, 1.430, 0.144], [0.426, 0.430, 0.144], [0.426, 1.430, -0.856]]
"""hue-rotate(180deg) of the Filter Effects Module, on sRGB."""


def at_night(colour: str) -> np.ndarray:
    """sRGB of a colour of a figure on a dark page."""
    part = float(re.search(r"invert\((.+?)\) hue-rotate\(180deg\)", DARK.decode())[1])
    return np.clip(ROTATED @ (part + (1 - 2 * part) * np.array(to_rgb(colour))), 0, 1)


def contrast(ink, ground) -> float:
    """The contrast of two colours in sRGB as WCAG 2.2 defines it, 1 to 21."""
    light = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (ink, ground))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_shipped_figure_has_the_papers_width_and_letters_that_print_and_night_carry(path):
    svg = path.read_text(encoding="utf-8")
    width = float(re.search(r"<svg [^>]*?width=\"([\d.]+)pt\"", svg)[1])
    assert round(width / 72, 6) in (PAGE_IN, HALF_IN)
    fonts, sizes, colours = zip(*letters(svg), strict=True)
    assert len(sizes) > 20 and min(sizes) >= SMALLEST_PT - 1e-6
    assert {font.partition("-")[0] for font in fonts} == {FONT.replace(" ", "")}
    assert DARK in path.read_bytes()
    for colour in {*colours} - {"#ffffff"}:  # white letters stand on cells
        assert contrast(to_rgb(colour), to_rgb("#ffffff")) > 4.5, colour
        assert contrast(at_night(colour), at_night("#ffffff")) > 4.5, colour


@pytest.mark.slow
def test_the_look_does_not_depend_on_the_users_settings(tmp_path):
    with matplotlib.rc_context({"font.family": "serif", "font.size": 20, "axes.grid": True}):
        elsewhere = [p.read_bytes() for p in save(figure_overview.plot(), tmp_path, "figure")]
    here = [p.read_bytes() for p in save(figure_overview.plot(), tmp_path, "figure")]
    assert elsewhere == here
