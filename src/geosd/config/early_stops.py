"""Runs that are the beginning of longer ones, which need not be trained a second time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geosd.config.studies import Study

OWN = ("steps", "snapshots")
"""What may differ between a run and a longer one whose beginning it is."""


def early_stops(study: Study) -> dict[str, str]:
    """Each variant whose runs are the beginning of longer ones of the study -> the longest.

    A step depends on the settings, on the seed and on the steps before it, and not on how many are
    to come: the rate is constant after its warm-up, and every draw is seeded by its step. So the
    first k steps of a run are, bit for bit, a run of k steps. A variant that keeps snapshots of its
    own is trained like any other.
    """
    lengths: dict[str, dict[str, list[int]]] = {}
    for variant in study.trained:
        trainings = [study.training(model, variant) for model in study.models]
        recipes = [{key: of[key] for key in of if key not in OWN} for of in trainings]
        alike = lengths.setdefault(json.dumps(recipes, sort_keys=True), {})
        alike[variant] = [of["steps"] for of in trainings]
    return {
        variant: longest
        for alike in lengths.values()
        for longest in [max(alike, key=lambda name: alike[name])]
        for variant, steps in alike.items()
        if all(a < b for a, b in zip(steps, alike[longest], strict=True))
        and not any(study.training(model, variant)["snapshots"] for model in study.models)
    }
