"""ID and OOD accuracy over a ladder of models, before and after training (Figure scale)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.panels import head, ink
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import COLUMN_IN, method
from geosd.reporting.table_main import said_k
from geosd.scores.score_table import ID, OOD_AVERAGE, values
from geosd.scores.statistics import Group

SPEC = OutputSpec(
    title="accuracy over the sizes of a model",
    caption=(
        "Accuracy in distribution (A) and on average out of distribution (B) of the base model "
        "and of GeoSD over models of growing size, mean over seeds; the bands are one standard "
        "deviation over seeds wide on either side. The numbers are the OOD gain over the base "
        "model in percentage points."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)

COMPARED = ("pi_0", "geosd")


def steps(names: Sequence[str]) -> tuple[str, list[str]]:
    """What models of a ladder share in their names, and what tells them apart.

    Args:
        names: Names of the models.

    Returns:
        The shared beginning up to a hyphen, and the rest of each name. A model of the shared name
        alone is called `m`: it is the one that the family is named after.

    Example:
        >>> steps(["mini-qwen3-s", "mini-qwen3", "mini-qwen3-l"])
        ('mini-qwen3', ['s', 'm', 'l'])
        >>> steps(["qwen3-8b", "olmo"])
        ('', ['qwen3-8b', 'olmo'])
    """
    # With a hyphen behind each name, `mini-qwen3` itself begins with `mini-qwen3-`.
    shared = os.path.commonprefix([f"{name}-" for name in names]).rpartition("-")[0]
    if not shared:
        return "", list(names)
    return shared, [name[len(shared) + 1 :] or "m" for name in names]


def ladder(
    scores: pd.DataFrame, models: Sequence[str], variant: str, benchmark: str
) -> list[Group | None]:
    """Accuracy of a variant on each model in percent; None where it has no runs.

    Args:
        scores: Tidy scores.
        models: Models, from small to large.
        variant: "pi_0" or "geosd".
        benchmark: "id" or "ood_avg".
    """
    runs = [values(scores, model, variant, benchmark, "avg@k") for model in models]
    return [None if found.empty else Group.of(found) for found in runs]


def draw(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Draw ID and OOD accuracy over the models: means over seeds, bands of one deviation.

    Args:
        scores: Tidy scores.
        models: Models, from small to large.
        methods: Variants of the study; pi_0 and geosd are drawn.

    Raises:
        ValueError: There is one model only, or pi_0 or geosd is missing on one.
    """
    if len(models) < 2:
        raise ValueError(
            f"a ladder needs two models or more, the study has {', '.join(models) or 'none'}.\n"
            "Hint: list models of several sizes, from small to large, under the study's `models`."
        )
    for variant in COMPARED:
        found = ladder(scores, models, variant, OOD_AVERAGE) if variant in methods else [None]
        if None in found:
            at = models[found.index(None)] if variant in methods else "any model"
            raise ValueError(
                f"{variant} has no OOD score on {at}, so there is no gain over it to show.\n"
                "Hint: pi_0 and geosd must be among the study's `methods`."
            )
    family, sizes = steps(models)
    figure = Figure(figsize=(COLUMN_IN, 2.3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, benchmark, letter, title in zip(
        panels, (ID, OOD_AVERAGE), "AB", ("in distribution", "OOD average"), strict=True
    ):
        for variant in COMPARED:
            _line(axes, variant, ladder(scores, models, variant, benchmark))
        head(axes, letter, title)
        axes.set_xticks(range(len(models)), sizes)
        axes.set_xlim(-0.5, len(models) - 0.5)
        if not family:
            axes.tick_params(axis="x", rotation=30)
    panels[0].set_ylabel(f"{said_k(scores)} (%)")
    figure.supxlabel(f"size of {family}" if family else "model", fontsize=7.5)
    _gains(panels[1], scores, models)
    panels[0].legend(loc="best", borderpad=0, handlelength=1.6)
    return figure


def _line(axes: Axes, variant: str, groups: Sequence[Group | None]) -> None:
    look = method(variant)
    at = [i for i, group in enumerate(groups) if group]
    shown = [group for group in groups if group]
    deviation = [0.0 if math.isnan(group.sd) else group.sd for group in shown]
    axes.fill_between(
        at,
        [group.mean - sd for group, sd in zip(shown, deviation, strict=True)],
        [group.mean + sd for group, sd in zip(shown, deviation, strict=True)],
        color=look.colour,
        alpha=0.18,
        lw=0,
    )
    axes.plot(
        at,
        [group.mean for group in shown],
        color=look.colour,
        marker=look.marker,
        ms=4,
        mec="white",
        mew=0.4,
        ls="--" if variant == "pi_0" else "-",
        label=look.label,
    )


def _gains(axes: Axes, scores: pd.DataFrame, models: Sequence[str]) -> None:
    """The change from pi_0 to geosd of each model, as a row above the lines."""
    base, ours = (ladder(scores, models, variant, OOD_AVERAGE) for variant in COMPARED)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.12 * (high - low))
    for at, (a, b) in enumerate(zip(base, ours, strict=True)):
        if a and b:
            axes.text(
                at,
                0.99,
                f"{b.mean - a.mean:+.1f}",
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="top",
                fontsize=6.5,
                color=ink(method("geosd").colour),
            )
