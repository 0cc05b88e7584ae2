"""Keys that params.yaml got when results existed already, and what those results were made with.

A results folder is named by a digest of the settings that its job reads. A new key would rename
every folder, and so train everything again. Where the key has the value that the older results
were made with, it is left out of the settings, and the folders keep their names.
"""

from collections.abc import Mapping
from typing import Any

ADDED_LATER: dict[str, tuple[Any, ...]] = {
    "data.conflict": (None, 1.0),
    "data.date": (None,),
    "data.fresh": ([],),
    "data.wording": (None,),
    "evaluation.allocation": (None,),
    "pool.solutions": ("rollouts",),
    "rollout.packed": (False,),
    "rollout.precision": ("float32",),
    "training.lora": (None,),
    "training.optimiser.kfac.least_share": (1.0,),
    "training.storage": ("float32",),
    "study.stages": (None,),
    "study.verdicts": (True,),
}
"""Section and key -> the values, which mean the same, that results had before there was the key."""


def without_added_later(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a section without keys that have a value of `ADDED_LATER`.

    Example:
        >>> without_added_later("pool", {"keep": 10, "solutions": "rollouts"})
        {'keep': 10}
        >>> without_added_later("pool", {"keep": 10, "solutions": "given"})
        {'keep': 10, 'solutions': 'given'}
    """
    kept: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{section}.{key}"
        if isinstance(value, Mapping):
            kept[key] = without_added_later(name, value)
        elif name not in ADDED_LATER or value not in ADDED_LATER[name]:
            kept[key] = value
    return kept
