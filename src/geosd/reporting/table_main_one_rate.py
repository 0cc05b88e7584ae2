"""The main table once more, with one learning rate for all methods as in the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from geosd.reporting import table_main
from geosd.reporting.method_tables import short_rate
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Table

SPEC = OutputSpec(
    title="accuracy at one learning rate for all methods",
    caption=(
        "Accuracy in and out of distribution with one learning rate for all methods and models, as "
        "in the paper: the rate of the grid with the best mean validation over all of them. Mean "
        "over seeds and its standard deviation{, beside the paper's}."
    ),
    reads=("scores",),
    settings=("models", "points", "one_rate"),
    swept=("learning_rate",),
)


def build(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
    one_rate: float | None,
) -> Table:
    """Build `table_main_one_rate`: `table_main` of the runs of a sweep at one learning rate.

    Raises:
        ValueError: No selection chose such a rate, or no variant was trained at it.
    """
    if one_rate is None:
        raise ValueError(
            "the study has no learning rate for all methods: its file of selected rates has no"
            " `one_rate`, or it names no such file.\nHint: `make select-rates` writes the file from"
            " a finished selection."
        )
    variant_of = {
        point["run"]: point["variant"]
        for model in models
        for point in points[model]
        if math.isclose(point["learning_rate"], one_rate)
    }
    if not variant_of:
        raise ValueError(
            f"no variant of the study was trained at {short_rate(one_rate)}, the rate that was"
            " selected for all methods.\nHint: give the study the grid of the selection."
        )
    at_rate = scores[scores["variant"].isin(["pi_0", *variant_of])]
    at_rate = at_rate.assign(variant=at_rate["variant"].replace(variant_of))
    table = table_main.build(at_rate, models, ["pi_0", *variant_of.values()])
    note = (
        f"All methods and models at the learning rate {short_rate(one_rate)}: of the grid, the rate"
        " with the best mean accuracy on the validation problems over all methods, models and"
        f" seeds. {table.note}"
    )
    title = "Accuracy with one learning rate for all methods"
    return replace(table, name="table_main_one_rate", title=title, note=note)
