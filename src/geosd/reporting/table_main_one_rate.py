"""The main table once more, with one learning rate for all methods as in the paper."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from geosd.reporting import table_main
from geosd.reporting.method_tables import short_rate
from geosd.reporting.specs import OutputSpec, SweepPoints
from geosd.reporting.tables import Table

SPEC = OutputSpec(
    title="accuracy at one learning rate for all methods",
    caption="""Accuracy in and out of distribution with one learning rate for all methods and
    models, as in the paper: the rate of the grid with the best mean validation over all of them.
    Mean over seeds and its standard deviation{, beside the paper's}.""",
    reads=("scores",),
    settings=("models", "points", "one_rate"),
    swept=("learning_rate",),
    needs=("benchmarks", "one_rate"),
)


def build(
    scores: pd.DataFrame, models: Sequence[str], points: SweepPoints, one_rate: float
) -> Table:
    """Build `table_main_one_rate`: `table_main` of the runs of a sweep at one learning rate."""
    variant_of = {
        point["run"]: point["variant"]
        for model in models
        for point in points[model]
        if math.isclose(point["learning_rate"], one_rate)
    }
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
