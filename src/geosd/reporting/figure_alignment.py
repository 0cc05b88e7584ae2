"""The student's mass on the teacher's ranks over checkpoints (the paper's Figure alignment)."""

import math
from collections.abc import Sequence
from string import ascii_uppercase

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.figures import PAGE_IN, panel_title, themed
from geosd.reporting.method_style import method, text_colour
from geosd.reporting.specs import OutputSpec
from geosd.scores.tidy import select_rows

SPEC = OutputSpec(
    title="mass on the teacher's ranks over checkpoints",
    caption="""The student's mean probability of the tokens that the teacher ranks 1 to 8, at the
    tenth of each rollout's positions where π₀ is least certain. One ridge is one checkpoint, a mean
    over seeds; the number beside it is the mass on rank 1; dots repeat π₀ on each. Positions and
    ranks are fixed once, by π₀'s rollouts and by π₀ with the solution, so a rank is the same token
    for every checkpoint of both methods. The same masses by the ranks of the live teacher stand
    beside these in alignment.csv.""",
    reads=("alignment",),
    settings=("models", "methods"),
    trained=("fwdkl", "geosd"),
    paper="Figure alignment",
)

RANKING = "pi_0"
"""Who ranked the tokens that are shown; the table has the live teacher's ranks, too."""
SPACING = 1.1
"""Height between two ridges' ground lines, as a share of the largest mass drawn."""
RIDGE_IN = 0.35
"""The same height in inches."""
SMALL = {"ha": "right", "va": "center", "fontsize": 6.5}
PALEST = 0.35
"""Share of the method's colour in the first ridge; the last has all of it."""


def ridges(alignment: pd.DataFrame, model: str, variant: str) -> pd.DataFrame:
    """Mass on each of the teacher's ranks (columns) by checkpoint (index `step`), means over seeds.

    Raises:
        ValueError: The runs of the variant have no such rows, or not the same checkpoints.
    """
    rows = select_rows(alignment, model=model, variant=variant, ranking=RANKING)
    runs = rows.groupby(["step", "rank"])["mass"].agg(["mean", "size"])
    if runs.empty or runs["size"].nunique() != 1:
        seen = sorted(rows["seed"].unique())
        raise ValueError(
            f"alignment of {variant} on {model}, tokens ranked by {RANKING}: seeds {seen} have"
            f" {'no rows' if runs.empty else 'unlike checkpoints'}.\nHint: let the workflow run"
            " `alignment` again for all seeds of the study."
        )
    return runs["mean"].unstack("rank")


@themed
def plot(alignment: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_alignment`: a row per model, a panel per method, a ridge per checkpoint."""
    tables = {(m, v): ridges(alignment, m, v) for m in models for v in methods}
    deepest = max(len(table) for table in tables.values())
    spacing = SPACING * max(table.max(axis=None) for table in tables.values())
    top = max(  # of the highest ridge, over the ground line of the first
        mass.max() - spacing * number
        for table in tables.values()
        for number, (_, mass) in enumerate(table.iterrows())
    )
    height = 0.9 + RIDGE_IN * (deepest + top / spacing)
    figure = Figure(figsize=(PAGE_IN, height * len(models)), layout="constrained")
    grid = figure.subplots(len(models), len(methods), squeeze=False, sharey=True, sharex=True)
    for line, model in enumerate(models):
        for column, variant in enumerate(methods):
            axes = grid[line, column]
            _panel(axes, tables[model, variant], method(variant).colour, deepest, spacing, top)
            title = f"{method(variant).drawn}, {model}"
            number = line * len(methods) + column
            letter = ascii_uppercase[number % 26] * (1 + number // 26)  # ..., Z, AA, BB
            panel_title(axes, letter, title)
            if line == len(models) - 1:
                axes.set_xlabel("rank of the token by the teacher")
            if column == 0:
                axes.set_ylabel("updates")
                axes.tick_params(labelleft=True)
    return figure


def bar_mass(largest: float) -> float:
    """Mass of the bar of scale: 1, 2 or 5 times a power of ten, at most half of the largest mass.

    Example:
        >>> bar_mass(0.66), bar_mass(0.08)
        (0.2, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(largest / 2))
    return round(power * max(n for n in (1, 2, 5) if n * power <= largest / 2), 12)


def _panel(
    axes: Axes, table: pd.DataFrame, colour: str, deepest: int, spacing: float, top: float
) -> None:
    ranks = table.columns.to_numpy()
    ticks, shades = [], sns.blend_palette(["white", colour], as_cmap=True)
    for number, (step, mass) in enumerate(table.iterrows()):
        ground = -spacing * number
        ticks.append((ground, f"{step}" if step else method("pi_0").drawn))
        strength = PALEST + (1 - PALEST) * number / max(len(table) - 1, 1)
        shade = shades(strength)
        # White below the fill hides what stands behind: the ridges are a range of mountains.
        layer = 2 + 2 * number
        axes.fill_between(ranks, ground, ground + mass, color="white", lw=0, zorder=layer)
        axes.fill_between(ranks, ground, ground + mass, color=shade, alpha=0.45, lw=0, zorder=layer)
        if number:
            start = ground + table.iloc[0]
            axes.plot(ranks, start, color="0.35", lw=0.7, ls=(0, (1, 1.2)), zorder=layer + 1)
        axes.plot(ranks, ground + mass, color=shade, lw=1.1, marker="o", ms=2, zorder=layer + 1)
        axes.plot(ranks[[0, -1]], [ground, ground], color="0.8", lw=0.4, zorder=1)
        # On the ground, which every ridge has at its own height; peaks may meet.
        rank_1 = {"color": text_colour(colour), "zorder": 100} | SMALL
        axes.text(ranks[0] - 0.12, ground, f"{mass.iloc[0]:.2f}", **rank_1)
    axes.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    axes.set_xticks(ranks)
    axes.set_xlim(ranks[0] - 0.75, ranks[-1] + 0.95)
    axes.set_ylim(-spacing * (deepest - 0.875), top + 0.15 * spacing)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    # A bar on the first ridge's ground says how much height is how much mass.
    bar, right = bar_mass(spacing / SPACING), ranks[-1] + 0.3
    axes.plot([right, right], [0, bar], color="0.3", lw=1.0, solid_capstyle="butt")
    axes.text(right + 0.1, bar / 2, f"mass\n{bar:g}", **SMALL | {"ha": "left"})
