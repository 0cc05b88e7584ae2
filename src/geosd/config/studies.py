"""A study resolved: the paper's protocol with the study, the model and the variant laid over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from geosd.config.asked import asked
from geosd.config.checking import close_to, validate
from geosd.config.clashes import clashes
from geosd.config.early_stops import early_stops
from geosd.config.grid import candidates
from geosd.config.mechanism import MECHANISM
from geosd.config.output_settings import OUTPUTS
from geosd.config.overlays import Params, merge, said
from geosd.config.reading import ConfigError, Mistake, Source, read, report
from geosd.config.resources import DEFAULT

SECTIONS = ("data", "base", "pool", "training", "evaluation", "rollout")
PER_VARIANT = ("train", "early_stop", "alignment")
PER_MODEL = ("base", "pool", "evaluate", "evaluate_pi_0", "states", *PER_VARIANT)


@dataclass(frozen=True)
class Study:
    """What is run under one name.

    Attributes:
        name: The study's name, the first folder of all its results.
        models: Models, in the order of the tables.
        methods: Variants, in the order of the tables; candidates of a grid follow.
        seeds: Seeds; one run each.
        outputs: Rules of the tables, figures and ledgers that it ends in.
        params: All of params.yaml, from which each section is resolved.
    """

    name: str
    models: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    outputs: tuple[str, ...]
    params: Params

    @cached_property
    def candidates(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The points of the study's grids: name -> variant, and what is laid over it."""
        return candidates(self.params.studies[self.name].grid)

    @property
    def trained(self) -> tuple[str, ...]:
        """The methods that train, i.e. all but pi_0."""
        grid, variants = self.candidates, self.params.variants
        return tuple(
            name for name in self.methods if name in grid or variants[name].training is not None
        )

    @cached_property
    def early_stops(self) -> dict[str, str]:
        """The variants that are taken from longer ones instead of trained -> these."""
        return early_stops(self)

    def section(self, name: str, model: str | None = None) -> dict[str, Any]:
        """One section: the protocol, the study over it, and the model over both."""
        below = said(getattr(self.params.protocol, name))
        over = merge(below, said(getattr(self.params.studies[self.name], name)))
        values = merge(over, said(getattr(self.params.models[model], name))) if model else over
        if name == "evaluation" and values["coverage"] is None:
            return {**values, "coverage": values["samples"]}
        return values

    def training(self, model: str, variant: str) -> dict[str, Any]:
        """The training section of one variant; the study's own word on the variant comes last.

        A candidate lays its point of the grid over that of the variant it is made of.
        """
        if variant in self.candidates:
            variant, point = self.candidates[variant]
            return merge(self.training(model, variant), point)
        over = merge(self.section("training", model), said(self.params.variants[variant].training))
        own = self.params.studies[self.name].variants.get(variant)
        return merge(over, said(own.training) if own else {})


def load(path: Path | str = "params.yaml") -> Params:
    """Read and check params.yaml, every study of it.

    Raises:
        ConfigError: Lists every mistake with its key, its line, and what is allowed.
    """
    source = read(path)
    params, mistakes = validate(source)
    mistakes = source.mistakes + mistakes
    if params is not None:
        mistakes += [mistake for name in params.studies for mistake in _check(params, name, source)]
        mistakes += _named("study", (params.study,), list(params.studies), (), source)
        rest = [*params.models, DEFAULT]
        mistakes += _named("model", params.resources, rest, ("resources",), source)
    if mistakes:
        # A repeated key makes the same mistake twice, once as read and once as checked.
        raise report(source.file, list(dict.fromkeys(mistakes)))
    assert params is not None
    return params


def resolve(params: Params, study: str | None = None) -> Study:
    """The study of a name; the file's own choice where none is given.

    Raises:
        ConfigError: There is no such study.
    """
    name = params.study if study is None else str(study)
    _known("study", name, params.studies)
    chosen = params.studies[name]
    methods = (*chosen.methods, *candidates(chosen.grid))
    models, seeds, outputs = tuple(chosen.models), tuple(chosen.seeds), tuple(chosen.outputs)
    return Study(name, models, methods, seeds, outputs, params)


def settings(
    rule: str, study: Study, model: str | None = None, variant: str | None = None
) -> dict[str, Any]:
    """Exactly what a rule may read, as plain values.

    Snakemake reruns a job when these values change, so a value belongs to the rules that read it
    and to no other: a variant's learning rate changes the settings of that variant's training only.

    Args:
        rule: A rule of the workflow.
        study: The resolved study.
        model: The job's model, for the rules of `PER_MODEL`.
        variant: The job's variant, for the rules of `PER_VARIANT`.

    Raises:
        ConfigError: No such rule, model or variant, or the rule needs one that is not given.
    """
    _known("rule", rule, RULES)
    if rule in PER_MODEL:
        _known("model", model, study.models)
    if rule in PER_VARIANT:
        stops = study.early_stops if rule == "early_stop" else study.trained
        _known("trained variant", variant, stops)
    return RULES[rule](study, model, variant)


def _data(study: Study, *_: Any) -> dict[str, Any]:
    """What is drawn; what a study or a selection takes of it, `purpose`, changes no problem."""
    data = study.section("data")
    return {key: value for key, value in data.items() if key not in ("thinking", "purpose")}


def _fetch(study: Study, *_: Any) -> dict[str, Any]:
    return {key: study.section("data")[key] for key in ("source", "raw")}


def _pool(study: Study, model: str, _: Any) -> dict[str, Any]:
    return {**study.section("pool", model), **asked(study, model)}


def _train(study: Study, model: str, variant: str) -> dict[str, Any]:
    """The training; not the snapshots, because to look at a run changes nothing of it."""
    training = {**study.training(model, variant), **asked(study, model)}
    del training["snapshots"]
    optimiser = training["optimiser"]
    if optimiser["rule"] != "kfac":  # its numbers are not read, so they must not cause a rerun
        training["optimiser"] = {"rule": optimiser["rule"], "inner": None, "kfac": None}
    return training


def _early_stop(study: Study, model: str, variant: str) -> dict[str, Any]:
    return _train(study, model, variant)


def _evaluate(study: Study, model: str, _: Any) -> dict[str, Any]:
    section = {**study.section("evaluation", model), **asked(study, model)}
    return {key: value for key, value in section.items() if key != "pass_k"}


def _analyse(study: Study, *_: Any) -> dict[str, Any]:
    evaluation = study.section("evaluation")
    return {
        **_rendered(study),
        "seeds": list(study.seeds),
        "samples": evaluation["samples"],
        "pass_k": evaluation["pass_k"],
    }


def _rendered(study: Study, *_: Any) -> dict[str, Any]:
    return {"models": list(study.models), "methods": list(study.methods)}


def everything(study: Study, *_: Any) -> dict[str, Any]:
    """The whole study as it is run, for the report and for people."""
    per_model = {
        model: {
            **{name: study.section(name, model) for name in ("base", "pool", "evaluation")},
            "training": {variant: _train(study, model, variant) for variant in study.trained},
        }
        for model in study.models
    }
    head = {"study": study.name, **_rendered(study), "seeds": list(study.seeds)}
    return {**head, "data": study.section("data"), "runs": per_model}


RULES = {
    "fetch": _fetch,
    "data": _data,
    "base": lambda study, model, _: study.section("base", model),
    "pool": _pool,
    "train": _train,
    "early_stop": _early_stop,
    "evaluate": _evaluate,
    "evaluate_pi_0": _evaluate,
    "analyse": _analyse,
    "configuration": everything,
    **MECHANISM,
    **OUTPUTS,
}


def _known(kind: str, name: object, allowed: Any) -> None:
    if name not in allowed:
        names = list(map(str, allowed))
        raise ConfigError(
            f"{name!r} is no {kind}. {close_to(name, names)}Allowed: {', '.join(names)}.\n"
            "Hint: names are defined in params.yaml and are case-sensitive."
        )


def _named(
    kind: str, names: Any, allowed: list[str], path: tuple[str, ...], source: Source
) -> list[Mistake]:
    """A mistake for each name, of a list or of a mapping's keys, that is not defined."""
    mistakes = []
    for index, name in enumerate(names):
        if name not in allowed:
            place = name if isinstance(names, dict) else index
            here = (*path, place) if path else (kind,)
            message = f"{name} is no {kind} of this file. {close_to(name, allowed)}"
            message += f"Allowed: {', '.join(allowed)}."
            mistakes.append(Mistake(here, source.line(here), message))
    return mistakes


def _check(params: Params, name: str, source: Source) -> list[Mistake]:
    """What is wrong with a study as a whole: undefined or repeated names, values that clash."""
    study, place = params.studies[name], ("studies", name)
    mistakes = _named("model", study.models, list(params.models), (*place, "models"), source)
    mistakes += _named("variant", study.methods, list(params.variants), (*place, "methods"), source)
    for key in ("variants", "grid"):
        named = getattr(study, key)
        mistakes += _named("variant", named, list(params.variants), (*place, key), source)
    mistakes += _named("rule", study.outputs, list(RULES), (*place, "outputs"), source)
    for key in ("models", "methods", "seeds", "outputs"):
        values = getattr(study, key)
        if repeated := sorted({str(v) for v in values if values.count(v) > 1}):
            text = f"{', '.join(repeated)} stands twice; each entry is one run."
            mistakes.append(Mistake((*place, key), source.line((*place, key)), text))
    return mistakes or clashes(resolve(params, name), source)
