"""How the objective works, as geometry (the paper's Figure overview); no run enters it.

p = student, q = teacher. Panels A and B look at one state in which the teacher is sure of one
token: q = (q*, 1 - q*) and p = (p*, 1 - p*), all other mass on one alternative. As the student's
mass p* on the teacher's token goes from 0 to q*, the overlap rho = sum_i sqrt(p_i q_i) goes from
sqrt(1 - q*) to 1.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from geosd.reporting import figures
from geosd.reporting.method_style import DIVERGENCES, method_style, method_text_colour

Array = NDArray[np.float64]
Weight = Callable[[Array, Array], Array]

CERTAINTY = 0.99
"""The teacher mass q* that is drawn."""
ARC = "#0B5E8A"
ANGLES = {"q": 17.0, "ckpt": 48.0, "p": 72.0}
"""Where teacher, checkpoint and student stand on the quarter circle, in degrees from token 1."""


def _reverse(p: Array, q: Array) -> Array:
    ratio = np.log(q / p)
    return p * (ratio - (p * ratio).sum(-1, keepdims=True))


def _skew(p: Array, q: Array, alpha: float = 0.1) -> Array:
    return (1 - alpha) * p * q / (alpha * q + (1 - alpha) * p)


WEIGHTS: Mapping[str, Weight] = MappingProxyType(
    {
        "fwdkl": lambda p, q: q + 0 * p,  # eq. w-fkl
        "revkl": _reverse,  # eq. w-rkl: p (log q/p + KL(p||q))
        "jsd": lambda p, q: 0.5 * p * np.log((p + q) / (2 * p)),  # -p dJSD/dp
        "skewkl": _skew,  # -p dKL(q||M)/dp with M = alpha q + (1-alpha) p
        "geosd": lambda p, q: 0.5 * np.sqrt(p * q),  # eq. w-h
    }
)
"""Weights w [..., V] in grad L = -sum_i w_i grad log p_i, of p and q [..., V]."""


def figure_overview_pull(weight: Weight, p: Array, q: Array) -> Array:
    """Norm ||w - p sum_j w_j|| of the gradient at the logits; it ignores multiples of p in w."""
    w = weight(p, q)
    return np.linalg.norm(w - p * w.sum(-1, keepdims=True), axis=-1)


def figure_overview_states(certainty: float, points: int = 400) -> tuple[Array, Array]:
    """N students p [N, 2], by even angles from no mass on the teacher's token up to q [2]."""
    angle = np.linspace(1e-4, np.arcsin(np.sqrt(certainty)), points)
    mass = np.sin(angle) ** 2
    return np.stack([mass, 1 - mass], -1), np.array([certainty, 1 - certainty])


@figures.themed
def plot() -> Figure:
    """Plot `figure_overview`: weight and pull of each divergence, and the circle of roots."""
    figure = Figure(figsize=(figures.PAGE_IN, 2.0), layout="constrained")
    weights, norms, circle = figure.subplots(1, 3, width_ratios=(1.3, 0.9, 1.1))
    p, q = figure_overview_states(CERTAINTY)
    overlap = np.sqrt(p * q).sum(-1)
    ends = []
    for name, weight in WEIGHTS.items():
        line = {"color": method_style(name).colour, "lw": 1.7 if name == "geosd" else 1.1}
        weights.plot(overlap, weight(p, q)[..., 0], **line)
        norms.plot(overlap, figure_overview_pull(weight, p, q), **line)
        ends.append((name, 1.0, weight(p, q)[-1, 0]))
    for axes, letter, label in (
        (weights, "A1", "weight of the teacher’s token"),
        (norms, "A2", "gradient norm at the logits"),
    ):
        axes.set(xlim=(0, 1), xlabel="overlap Σ √(pq)", ylabel=label)
        axes.set_ylim(bottom=0)
        figures.figure_panel_title(axes, letter)
    _circle(circle)
    figures.figure_panel_title(circle, "B")
    names = {name: DIVERGENCES["hellinger" if name == "geosd" else name] for name in WEIGHTS}
    table = pd.DataFrame(ends, columns=["variant", "overlap", "weight"])
    figures.label_figure_lines(weights, table, "overlap", "weight", names)
    return figure


def _circle(axes: Axes) -> None:
    """Square roots of two-token distributions: student p, teacher q and the checkpoint."""
    axes.set_aspect("equal")
    axes.set_xlim(-0.04, 1.34)
    axes.set_ylim(-0.04, 1.18)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    full = np.linspace(0, np.pi / 2, 200)
    axes.plot(np.cos(full), np.sin(full), color="0.6", lw=0.8, zorder=1)
    for tip in ((1.12, 0), (0, 1.12)):
        axes.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", "lw": 0.6, "color": "0.4"})
    axes.text(1.13, 0.0, "√π₁", va="center")
    axes.text(0.03, 1.1, "√π₂", va="center")

    at = {name: np.radians(angle) for name, angle in ANGLES.items()}
    ends = {name: np.array([np.cos(angle), np.sin(angle)]) for name, angle in at.items()}
    colour = method_style("geosd").colour
    for name in ends:
        axes.plot(*zip((0, 0), ends[name], strict=True), color="0.8", lw=0.6, zorder=0.5)
    chord = np.stack([ends["p"], ends["q"]], 1)
    axes.plot(*chord, color=colour, lw=1.5, ls=(0, (4, 1.5)), zorder=2)
    arc = np.linspace(at["ckpt"], at["p"], 50)
    axes.plot(np.cos(arc), np.sin(arc), color=ARC, lw=3, solid_capstyle="butt", zorder=2)
    angle = np.linspace(at["ckpt"], at["p"], 30)
    axes.plot(0.3 * np.cos(angle), 0.3 * np.sin(angle), color=ARC, lw=0.8)
    middle = (at["ckpt"] + at["p"]) / 2
    on_arc = np.array([np.cos(middle), np.sin(middle)])
    axes.text(*(0.37 * on_arc), "θ", ha="center", va="center", color=ARC)
    for name, text, offset in (
        ("p", "student p", (2, 5)),
        ("q", "teacher q", (5, 2)),
        ("ckpt", "checkpoint", (6, -1)),
    ):
        x, y = ends[name]
        axes.plot(x, y, marker="o", ms=4.5, color="black", mec="white", mew=0.5, zorder=4)
        axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", zorder=5)
    cx, cy = chord.mean(1)
    formula = {"textcoords": "offset points"}
    axes.annotate(
        "Hellinger\n= ½ chord²",
        (cx, cy),
        xytext=(-9, 0),
        ha="right",
        va="center",
        color=method_text_colour(colour),
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        **formula,
    )
    axes.annotate("Fisher-Rao = 2θ", on_arc, xytext=(8, 1), color=ARC, **formula)
