"""Sweeps of a study: what its candidates change, point by point."""

from typing import Any

from geosd.config.study import Study


def sweep_points(study: Study, *keys: str) -> dict[str, list[dict[str, Any]]]:
    """The points of a sweep over keys of the training section: run, variant, values, by model.

    A variant is swept if its grid varies some of the keys and nothing else. Its points are those
    candidates, and the variant itself, at the study's own values, where it is among the study's
    methods. Points that agree in variant and values are one run; the candidate stands for it.
    """
    runs: dict[str, str] = {}  # variant by the name of the run
    for candidate, (variant, changed) in study.candidates.items():
        if changed.keys() <= set(keys):
            runs[candidate] = variant
    swept = set(runs.values())
    runs |= {name: name for name in study.methods if name in swept}
    points: dict[str, list[dict[str, Any]]] = {}
    for model in study.models:
        distinct: dict[tuple[Any, ...], dict[str, Any]] = {}
        for run, variant in runs.items():
            training = study.training(model, run)
            values = {key: training[key] for key in keys}
            same_run = (variant, *values.values())
            distinct.setdefault(same_run, {"run": run, "variant": variant, **values})
        points[model] = list(distinct.values())
    return points


def swept_values(study: Study, key: str) -> dict[str, dict[str, Any]]:
    """The values of a key that a sweep tries: variant -> candidate -> value, in the grid's order.

    Candidates that differ in another key too are left out, and so are variants whose grid never
    changes the key. They are compared on the first model: a grid is the same on all.
    """
    model = study.models[0]
    values: dict[str, dict[str, Any]] = {}
    for candidate, (variant, changed) in study.candidates.items():
        training = study.training(model, candidate)
        plain = study.training(model, variant)
        others_agree = {**training, key: None} == {**plain, key: None}
        if key in changed and others_agree:
            values.setdefault(variant, {})[candidate] = training[key]
    return values
