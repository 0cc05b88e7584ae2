"""What a study has to judge claims by: its tidy tables, its sweeps, its ladder of models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from geosd.claims.schema import MODEL
from geosd.scores import alignment_table as alignment
from geosd.scores import consensus_table as agreement
from geosd.scores import drift_curves as drift_over_steps
from geosd.scores import drift_table as drift
from geosd.scores import score_table as scores
from geosd.scores import state_table as states

Points = Mapping[str, Sequence[Mapping[str, Any]]]


class Lacking(Exception):
    """The study has no data for a claim; the message says what is needed."""


def _empty(columns: Sequence[str]) -> Any:
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Evidence:
    """Everything that a study offers; what it does not have is empty.

    Attributes:
        scores: Tidy scores (`geosd.scores.score_table`).
        drift: Tidy drift at the end of training (`geosd.scores.drift_table`).
        agreement: What samples agree on (`geosd.scores.consensus_table`).
        path: Drift over steps (`geosd.scores.drift_curves`).
        alignment: Mass on the teacher's ranks over checkpoints (`geosd.scores.alignment_table`).
        states: States that pi_0 visits (`geosd.scores.state_table`).
        privilege: Model -> points of a sweep of the privilege: run, variant, privilege.
        plane: Model -> points of a sweep of learning rate and steps: run, variant, both values.
        ladder: Models of several sizes, from small to large.
        costs: Computed quantities by name (`geosd.claims.computed_costs`).
    """

    scores: pd.DataFrame = _empty(scores.COLUMNS)
    drift: pd.DataFrame = _empty(drift.COLUMNS)
    agreement: pd.DataFrame = _empty(agreement.COLUMNS)
    path: pd.DataFrame = _empty(drift_over_steps.COLUMNS)
    alignment: pd.DataFrame = _empty(alignment.COLUMNS)
    states: pd.DataFrame = _empty(states.COLUMNS)
    privilege: Points = field(default_factory=dict)
    plane: Points = field(default_factory=dict)
    ladder: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """The runs of one variant along one knob.

    Attributes:
        runs: Value -> name of the run in the tables, ascending.
        own: The variant's own value, where the sweep tells it: the learning rate at which other
            runs were stopped early.
    """

    runs: Mapping[Any, str]
    own: Any = None


def axis(evidence: Evidence, model: str, variant: str, key: str) -> Axis:
    """The runs of a variant along a knob, or the models of the ladder; only those with scores.

    Along `learning_rate` lie the runs of full length, along `steps` those at the learning rate at
    which runs were stopped early. The full run of that rate lies on both.
    """
    if key == MODEL:
        return Axis({name: name for name in evidence.ladder})
    table = evidence.scores
    scored = set(table.loc[table["model"] == model, "variant"])
    points = evidence.privilege if key == "privilege" else evidence.plane
    mine = [p for p in points.get(model, ()) if p["variant"] == variant and p["run"] in scored]
    if key == "privilege":
        return Axis(_ascending(mine, key))
    lengths: dict[float, set[int]] = {}
    for point in mine:
        lengths.setdefault(point["learning_rate"], set()).add(point["steps"])
    stopped = max(lengths, key=lambda rate: len(lengths[rate]), default=None)
    if stopped is not None and len(lengths[stopped]) < 2:
        stopped = None
    if key == "steps":
        return Axis(_ascending([p for p in mine if p["learning_rate"] == stopped], key))
    full = max((point["steps"] for point in mine), default=0)
    return Axis(_ascending([p for p in mine if p["steps"] == full], key), stopped)


def _ascending(points: Sequence[Mapping[str, Any]], key: str) -> dict[Any, str]:
    return {p[key]: p["run"] for p in sorted(points, key=lambda point: point[key])}


def same(a: Any, b: Any) -> bool:
    """Whether two values of a knob are one; .3 need not be written to the last bit."""
    numbers = all(isinstance(x, int | float) for x in (a, b))
    return math.isclose(a, b, rel_tol=1e-9) if numbers else a == b
