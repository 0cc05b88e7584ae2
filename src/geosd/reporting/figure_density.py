"""The teacher's top mass against the student's on the same token (the paper's Figure overlap)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from geosd.mismatch_region import SURE, UNLIKELY
from geosd.reporting.figures import figure_of, themed
from geosd.scores.state_table import state_mismatch_share, state_table_of_model

BINS = 40
"""Cells along each axis; 40 puts the borders of the mismatch region on edges of cells."""
MARK = "#B22222"
SHADES = ListedColormap(sns.color_palette("YlGnBu", as_cmap=True)(np.linspace(0.2, 1, 256)))
"""Without the palest: a cell that holds a single state must show on white."""


@themed
def plot(states: pd.DataFrame, models: Sequence[str]) -> Figure:
    """Plot `figure_density`: the teacher's mass q against the student's p, a panel a model."""
    columns = min(len(models), 3)
    lines = math.ceil(len(models) / columns)
    figure = figure_of(models, (2.2 if len(models) == 1 else 1.95) * lines)
    grid = figure.subplots(lines, columns, squeeze=False)
    of_model = {model: state_table_of_model(states, model) for model in models}
    # From a single state of the largest table to the fullest cell: the whole scale is in use.
    shares = np.concatenate([_cell_shares(rows) for rows in of_model.values()])
    norm = LogNorm(shares.min(), shares.max())
    for axes in grid.flat[len(models) :]:
        axes.remove()
    for number, (axes, (model, rows)) in enumerate(zip(grid.flat, of_model.items(), strict=False)):
        mesh = _panel(axes, rows, norm)
        first = number % columns == 0
        share = f"{100 * state_mismatch_share(rows):.2g} % in the frame (n = {len(rows):,})"
        axes.set_title(model, pad=13)
        title = axes.annotate(share, (0, 1.03), xycoords="axes fraction", color=MARK, size=6.5)
        title.set_in_layout(False)
        axes.set(
            xlabel="teacher’s mass on its choice, q",
            ylabel="student’s mass on it, p" if first else "",
        )
    beside = grid.flat[min(columns, len(models)) - 1].inset_axes((1.06, 0, 0.06, 1))
    bar = figure.colorbar(mesh, cax=beside, format=lambda share, _: f"{100 * share:g} %")
    bar.set_label("share of positions in a cell")
    bar.outline.set_linewidth(0.6)
    return figure


def _cell_shares(states: pd.DataFrame) -> np.ndarray:
    """Shares of a model's states in the cells that hold any."""
    masses = (states["q_star"].clip(0, 1), states["p_star"].clip(0, 1))
    counts, _, _ = np.histogram2d(*masses, bins=BINS, range=[[0, 1], [0, 1]])
    return counts[counts > 0] / len(states)


def _panel(axes: Axes, states: pd.DataFrame, norm: LogNorm) -> QuadMesh:
    sns.histplot(
        states.assign(q_star=states["q_star"].clip(0, 1), p_star=states["p_star"].clip(0, 1)),
        x="q_star",
        y="p_star",
        bins=BINS,
        binrange=(0, 1),
        stat="probability",
        cmap=SHADES,
        norm=norm,
        vmin=None,  # the norm has both ends; seaborn's own are for its linear scale
        vmax=None,
        rasterized=True,
        ax=axes,
    )
    (mesh,) = axes.collections
    axes.plot([0, 1], [0, 1], color="0.35", lw=0.7, ls=(0, (4, 2)))
    axes.add_patch(
        Rectangle((SURE, 0), 1 - SURE, UNLIKELY, fill=False, ec=MARK, lw=1.1, clip_on=False)
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return mesh
