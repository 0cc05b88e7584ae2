"""What tables, figures and claims of sweeps and ladders may read: runs, and what they vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geosd.config.studies import Study


def listed(study: Study, *_: Any) -> dict[str, Any]:
    """Models and methods as the study lists them, without the candidates of its grids."""
    methods = [name for name in study.methods if name not in study.candidates]
    return {"models": list(study.models), "methods": methods}


def swept(*keys: str) -> Callable[..., dict[str, Any]]:
    """Settings that name the runs of a sweep over keys of the training section.

    A variant is swept if its grid varies some of the keys and nothing else. Its points are those
    candidates, and the variant itself where it is among the study's methods: it is one more point,
    at the study's own values.

    Args:
        keys: Top keys of the training section, e.g. "privilege".

    Returns:
        A function of the study. Its value has, for each model, `points`: a list of run, variant
        and the value of each key. Points that agree in variant and values are one run; the
        candidate stands for it.
    """

    def settings(study: Study, *_: Any) -> dict[str, Any]:
        of = {
            name: variant
            for name, (variant, changed) in study.candidates.items()
            if set(changed) <= set(keys)
        }
        runs = {**of, **{name: name for name in study.methods if name in of.values()}}
        points: dict[str, list[dict[str, Any]]] = {}
        for model in study.models:
            found: dict[tuple[Any, ...], dict[str, Any]] = {}
            for run, variant in runs.items():
                training = study.training(model, run)
                values = {key: training[key] for key in keys}
                point = {"run": run, "variant": variant, **values}
                found.setdefault((variant, *values.values()), point)
            points[model] = list(found.values())
        return {"models": list(study.models), "points": points}

    return settings


def claims(study: Study, *_: Any) -> dict[str, Any]:
    """What claims are judged by: sweeps, and a ladder and the paper's costs where they are shown.

    A study that shows `figure_scale` says with it that its models are one ladder, from small to
    large; one that shows `table_flops` judges the claims on costs, by the protocol's settings.
    """
    models, training = list(study.models), study.params.protocol.training
    kfac = training.optimiser.kfac
    costs = {
        "problems": training.problems,
        "response_tokens": training.response_tokens,
        "top_k": training.top_k,
        "blocks": kfac.blocks,
        "subsample": kfac.subsample,
    }
    return {
        "models": models,
        "privilege": swept("privilege")(study)["points"],
        "plane": swept("learning_rate", "steps")(study)["points"],
        "ladder": models if "figure_scale" in study.shows else [],
        "costs": costs if "table_flops" in study.shows else None,
    }


SHOWN: dict[str, Callable[..., dict[str, Any]]] = {
    "claims": claims,
    "figure_overview": lambda *_: {},
    "figure_consensus": listed,
    "figure_privilege": swept("privilege"),
    "figure_scale": listed,
    "figure_stepsize": swept("learning_rate", "steps"),
    "table_ablations": listed,
}
