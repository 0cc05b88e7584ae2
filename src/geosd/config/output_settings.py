"""What tables, figures and claims may read of params.yaml; the first two say it themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from geosd.config.grid import flat
from geosd.config.overlays import said
from geosd.reporting.specs import OutputSpec, output_specs

if TYPE_CHECKING:
    from geosd.config.studies import Study

Word = Callable[["Study", OutputSpec], Any]


def of_output(spec: OutputSpec, study: Study, *_: Any) -> dict[str, Any]:
    """The settings of one table or figure: the last part of each word, and its value."""
    return {word.rpartition(".")[2]: _value(word, study, spec) for word in spec.settings}


def trained_among(study: Study, variants: tuple[str, ...]) -> list[str]:
    """Those of some variants that the study trains, in the order given."""
    return [variant for variant in variants if variant in study.trained]


def _value(word: str, study: Study, spec: OutputSpec) -> Any:
    if word in WORDS:
        return WORDS[word](study, spec)
    value: Any = {"protocol": said(study.params.protocol)}
    for key in word.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ValueError(
                f"{spec.title!r} asks for the setting {word!r}, which there is not.\nHint: allowed"
                f" are {', '.join(WORDS)}, and keys of the protocol, as protocol.training.top_k."
            )
        value = value[key]
    return value


def _models(study: Study, _: OutputSpec) -> list[str]:
    return list(study.models)


def _methods(study: Study, spec: OutputSpec) -> list[str]:
    """Methods as the study lists them, without the candidates of its grids."""
    if spec.trained:
        return trained_among(study, spec.trained)
    return [name for name in study.methods if name not in study.candidates]


def _candidates(study: Study, _: OutputSpec) -> dict[str, str]:
    """Each candidate, and the variant it is a point of."""
    return {name: variant for name, (variant, _) in study.candidates.items()}


def _changes(study: Study, _: OutputSpec) -> dict[str, dict[str, Any]]:
    """What each candidate changes in its variant's training: the last word of each key -> value."""
    return {
        name: {key.rpartition(".")[2]: value for key, value in flat(changed).items()}
        for name, (_, changed) in study.candidates.items()
    }


def swept(study: Study, *keys: str) -> dict[str, list[dict[str, Any]]]:
    """For each model the runs of a sweep: run, variant and the value of each key.

    A variant is swept if its grid varies some of the keys and nothing else. Its points are those
    candidates, and the variant itself where it is among the study's methods: it is one more point,
    at the study's own values. Points that agree in variant and values are one run; the candidate
    stands for it.

    Args:
        study: The study.
        keys: Top keys of the training section, e.g. "privilege".
    """
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
    return points


def _hyperparameters(study: Study, _: OutputSpec) -> dict[str, Any]:
    """All settings but those of the base models, which the paper takes as they are."""
    own = [name for name in study.trained if name not in study.candidates]
    models = {
        model: {
            "pool": study.section("pool", model),
            "evaluation": study.section("evaluation", model),
            "training": {variant: _read(study.training(model, variant)) for variant in own},
        }
        for model in study.models
    }
    return {"runs": len(study.seeds), "data": study.section("data"), "models": models}


def _read(training: dict[str, Any]) -> dict[str, Any]:
    """A variant's training without the numbers of an update rule that it does not use."""
    optimiser = training["optimiser"]
    return training if optimiser["rule"] == "kfac" else {**training, "optimiser": {"rule": "adamw"}}


WORDS: dict[str, Word] = {
    "models": _models,
    "methods": _methods,
    "candidates": _candidates,
    "changes": _changes,
    "points": lambda study, spec: swept(study, *spec.swept),
    "hyperparameters": _hyperparameters,
}
"""What a table or figure may ask for, beside keys of the protocol."""


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
        "privilege": swept(study, "privilege"),
        "plane": swept(study, "learning_rate", "steps"),
        "ladder": models if "figure_scale" in study.outputs else [],
        "costs": costs if "table_flops" in study.outputs else None,
    }


OUTPUTS: dict[str, Callable[..., dict[str, Any]]] = {
    "claims": claims,
    **{name: partial(of_output, spec) for name, spec in output_specs().items()},
}
