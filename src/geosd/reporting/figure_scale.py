"""ID and OOD accuracy over a ladder of models, before and after training (Figure scale)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from geosd.models.architectures import TINY_MODELS, architecture, tiny_architecture
from geosd.problems.search.corpora import VOCABULARY
from geosd.reporting import figures
from geosd.reporting.figures import figure_handles
from geosd.reporting.method_style import method_style, method_style_line, method_text_colour
from geosd.reporting.sentences import accuracy_in_sentence
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_statistics

COMPARED = ("pi_0", "geosd")
UNITS = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def figure_scale_size(model: str) -> int:
    """A model's place on the ladder of sizes: all its parameters; ValueError if unknown."""
    if model in TINY_MODELS:
        return tiny_architecture(model, len(VOCABULARY)).parameters
    return architecture(model).parameters


def figure_scale_count(number: float) -> str:
    """A size on the ladder's axis, a number of parameters, as papers print it.

    Example:
        >>> [figure_scale_count(n) for n in (31_904, 620_000, 8_190_735_360)]
        ['32k', '620k', '8.2B']
    """
    unit, letter = next(pair for pair in UNITS if number >= pair[0] or pair == UNITS[-1])
    return f"{number / unit:.{0 if number >= 10 * unit else 1}f}{letter}"


def _ladder_accuracies(scores: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Accuracy in percent, by run and benchmark; `size` is the model's number of parameters."""
    rows = scores[
        (scores["metric"] == "avg@k")
        & scores["model"].isin(models)
        & scores["variant"].isin(COMPARED)
        & scores["benchmark"].isin((ID, OOD_AVERAGE))
    ]
    sizes = {model: figure_scale_size(model) for model in models}
    return rows.rename(columns={"value": "accuracy"}).assign(size=rows["model"].map(sizes))


@figures.themed
def plot(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_scale`: ID and OOD accuracy of pi_0 and geosd over models of growing size."""
    runs = _ladder_accuracies(scores, models)
    figure = Figure(figsize=(figures.HALF_IN, 3.0), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    titles = {ID: "ID", OOD_AVERAGE: "OOD average"}
    for axes, letter, (benchmark, title) in zip(panels, "AB", titles.items(), strict=True):
        values = independent_statistics(runs[runs["benchmark"] == benchmark], "accuracy")
        for name, of_method in values.groupby("variant"):
            figures.figure_mean_line(
                axes, of_method, "size", "accuracy", (0, 100), **method_style_line(name)
            )
        _gains(axes, values)
        figures.figure_panel_title(axes, letter, title)
        axes.set(ylabel=f"{accuracy_in_sentence(scores)} (%)", xscale="log")
        axes.margins(x=0.08)
    sizes = sorted(runs["size"].unique())
    axes.set_xticks(sizes, [figure_scale_count(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("parameters")
    figures.figure_legend_below(figure, figure_handles(COMPARED), handlelength=2.2)
    return figure


def _gains(axes: Axes, values: pd.DataFrame) -> None:
    """The change from pi_0 to geosd of each model, as a row above the lines."""
    means = values.groupby(["variant", "size"])["accuracy"].mean()
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.14 * (high - low))
    for size, gain in (means["geosd"] - means["pi_0"]).items():
        axes.annotate(
            figures.signed_in_figure(gain),
            (size, 0.99),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="top",
            fontsize=6.5,
            color=method_text_colour(method_style("geosd").colour),
        )
