"""How the objective works, as geometry (the paper's Figure overview); no run enters it.

p = student, q = teacher. Panels A and B look at one state in which the teacher is sure of one
token: q = (q*, 1 - q*) and p = (p*, 1 - p*), all other mass on one alternative. As the student's
mass p* on the teacher's token goes from 0 to q*, the overlap rho = sum_i sqrt(p_i q_i) goes from
sqrt(1 - q*) to 1.
"""

from collections.abc import Callable, Mapping
from itertools import product
from types import MappingProxyType

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from geosd.reporting.figures import PAGE_IN, legend_below, panel_title, themed
from geosd.reporting.method_style import DIVERGENCES, hue_by_method, method, text_colour
from geosd.reporting.specs import OutputSpec

SPEC = OutputSpec(
    title="the geometry of the objective",
    caption="""The geometry of the objective; no run enters it. A: one state in which the teacher is
    sure of one token and all other mass lies on one alternative, from a student that excludes the
    token (left) to agreement (right). A1 is the weight w of that token as in the paper's equations
    (w-fkl), (w-rkl) and (w-h), A2 the norm of the state's gradient with respect to the logits. B:
    square roots of probabilities lie on a sphere; half the squared chord between student and
    teacher is the Hellinger divergence, twice the angle between student and checkpoint the
    Fisher-Rao distance.""",
    paper="Figure overview",
)

Array = NDArray[np.float64]
Weight = Callable[[Array, Array], Array]

CERTAINTIES = (0.99, 0.7)
"""Teacher masses q* drawn: solid and dashed."""
DASHES = ("", (3, 1.5))
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


LINE_WIDTHS = {name: 1.7 if name == "geosd" else 1.1 for name in WEIGHTS}


def state_overlap(p: Array, q: Array) -> Array:
    """Overlap of two distributions [..., V]: sum_i sqrt(p_i q_i)."""
    return np.sqrt(p * q).sum(-1)


def state_pull(weight: Weight, p: Array, q: Array) -> Array:
    """Norm ||w - p sum_j w_j|| of the gradient at the logits; it ignores multiples of p in w."""
    w = weight(p, q)
    return np.linalg.norm(w - p * w.sum(-1, keepdims=True), axis=-1)


def two_token_states(certainty: float, points: int = 400) -> tuple[Array, Array]:
    """N students p [N, 2], by even angles from no mass on the teacher's token up to q [2]."""
    angle = np.linspace(1e-4, np.arcsin(np.sqrt(certainty)), points)
    mass = np.sin(angle) ** 2
    return np.stack([mass, 1 - mass], -1), np.array([certainty, 1 - certainty])


def overview_curves() -> pd.DataFrame:
    """A row a state: `variant`, `certainty`, `overlap`, `pull`, `weight` of the teacher's token."""
    tables = []
    for (name, weight), certainty in product(WEIGHTS.items(), CERTAINTIES):
        p, q = two_token_states(certainty)
        columns = {"overlap": state_overlap(p, q), "weight": weight(p, q)[..., 0]}
        columns["pull"] = state_pull(weight, p, q)
        tables.append(pd.DataFrame(columns).assign(variant=name, certainty=certainty))
    return pd.concat(tables, ignore_index=True)


@themed
def plot() -> Figure:
    """Plot `figure_overview`: weight and pull of each divergence, and the circle of roots."""
    figure = Figure(figsize=(PAGE_IN, 2.55), layout="constrained")
    weight, norm, circle = figure.subplots(1, 3, width_ratios=(1, 1, 1.06))
    table = overview_curves()
    _against_overlap(weight, table, "weight")
    panel_title(weight, "A1")
    weight.set_ylabel("weight $w_j$ of the teacher’s token")
    _against_overlap(norm, table, "pull")
    panel_title(norm, "A2")
    norm.set_ylabel("gradient norm at the logits")
    _circle(circle)
    panel_title(circle, "B")
    _legend(figure)
    return figure


def _against_overlap(axes: Axes, table: pd.DataFrame, quantity: str) -> None:
    sns.lineplot(
        table,
        x="overlap",
        y=quantity,
        estimator=None,
        sort=False,
        style="certainty",
        style_order=CERTAINTIES,
        dashes=dict(zip(CERTAINTIES, DASHES, strict=True)),
        size="variant",
        sizes=LINE_WIDTHS,
        legend=False,
        ax=axes,
        **hue_by_method(WEIGHTS),
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(r"overlap $\Sigma_i\,(p_i q_i)^{1/2}$")


def _legend(figure: Figure) -> None:
    handles = {
        DIVERGENCES["hellinger" if v == "geosd" else v]: Line2D(
            [], [], color=method(v).colour, lw=LINE_WIDTHS[v]
        )
        for v in WEIGHTS
    }
    for certainty, dashes in zip(CERTAINTIES, DASHES, strict=True):
        line = handles[f"teacher’s mass {certainty:g}"] = Line2D([], [], color="0.3", lw=1.1)
        line.set_dashes(dashes)
    legend_below(figure, handles, columnspacing=1.1)


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
    axes.text(1.13, 0.0, r"$\pi_1^{1/2}$", va="center", fontsize=7)
    axes.text(0.03, 1.1, r"$\pi_2^{1/2}$", va="center", fontsize=7)

    at = {name: np.radians(angle) for name, angle in ANGLES.items()}
    ends = {name: np.array([np.cos(angle), np.sin(angle)]) for name, angle in at.items()}
    colour = method("geosd").colour
    for name in ends:
        axes.plot(*zip((0, 0), ends[name], strict=True), color="0.8", lw=0.6, zorder=0.5)
    chord = np.stack([ends["p"], ends["q"]], 1)
    axes.plot(*chord, color=colour, lw=1.5, ls=(0, (4, 1.5)), zorder=2)
    arc = np.linspace(at["ckpt"], at["p"], 50)
    axes.plot(np.cos(arc), np.sin(arc), color=ARC, lw=3, solid_capstyle="butt", zorder=2)
    angle = np.linspace(at["ckpt"], at["p"], 30)
    axes.plot(0.3 * np.cos(angle), 0.3 * np.sin(angle), color=ARC, lw=0.8)
    middle = (at["ckpt"] + at["p"]) / 2
    axes.text(
        0.37 * np.cos(middle),
        0.37 * np.sin(middle),
        r"$\theta$",
        ha="center",
        va="center",
        color=ARC,
    )
    for name, text, offset in (
        ("p", "student $p$", (2, 5)),
        ("q", "teacher $q$", (5, 2)),
        ("ckpt", "checkpoint", (6, -1)),
    ):
        x, y = ends[name]
        axes.plot(x, y, marker="o", ms=4.5, color="black", mec="white", mew=0.5, zorder=4)
        axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", fontsize=7, zorder=5)
    cx, cy = chord.mean(1)
    formula = {"textcoords": "offset points", "fontsize": 7.5}
    axes.annotate(
        r"$D_{\mathrm{H}}=\frac{1}{2}\,$chord$^2$",
        (cx, cy),
        xytext=(-3, -3),
        ha="right",
        va="top",
        color=text_colour(colour),
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        **formula,
    )
    on_arc = (np.cos(middle), np.sin(middle))
    axes.annotate(r"$d_{\mathrm{FR}}=2\,\theta$", on_arc, xytext=(7, 3), color=ARC, **formula)
