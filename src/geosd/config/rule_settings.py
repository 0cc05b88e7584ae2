"""Exactly what each rule of the workflow may read of params.yaml; RULES has them all.

Snakemake reruns a job when these values change, so a value belongs to the rules that read it and to
no other: a variant's learning rate changes the settings of that variant's training only. Tables and
figures say themselves what they read (`geosd.reporting.specs`).
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from geosd.config.added_later import without_added_later
from geosd.config.errors import raise_error_if_unknown
from geosd.config.schema_base import given_schema_values
from geosd.config.study import Study
from geosd.config.sweeps import sweep_points, swept_values
from geosd.dotted_keys import dotted_items
from geosd.models.shipped_base_models import shipped_base_model_files
from geosd.provenance.checkpoint_files import hashes_of_checkpoint
from geosd.reporting.specs import OutputSpec, output_specs

PER_VARIANT = ("train", "early_stop", "alignment")
PER_MODEL = ("base", "pool", "evaluate", "evaluate_pi_0", "states")
PER_MODEL += ("token_probabilities", *PER_VARIANT)

Settings = dict[str, Any]


def settings(
    rule: str, study: Study, model: str | None = None, variant: str | None = None, draw: int = 0
) -> Settings:
    """The settings that one rule may read, and no others, as plain values.

    The rules of `PER_MODEL` need the job's model, those of `PER_VARIANT` its variant, too. The draw
    of the base model matters to the rule `base` alone.

    Raises:
        ConfigError: No such rule, model or variant, or the rule needs one that is not given.
        ShippedCheckpointError: The repository ships the base model, and does not pin that draw.
    """
    raise_error_if_unknown("rule", rule, RULES)
    if rule in PER_MODEL:
        raise_error_if_unknown("model", model, study.models)
    if rule in PER_VARIANT:
        stops = study.early_stops if rule == "early_stop" else study.trained
        raise_error_if_unknown("trained variant", variant, stops)
    return RULES[rule](study, model, variant, draw)


def _only(section: Settings, *keys: str) -> Settings:
    return {key: section[key] for key in keys}


def _without(section: Settings, *keys: str) -> Settings:
    return {key: value for key, value in section.items() if key not in keys}


def _section(study: Study, name: str, model: str | None = None) -> Settings:
    """A section as results are named by it: without keys that older results did not have."""
    return without_added_later(name, study.section(name, model))


def _thinking(data: Settings, *roles: str) -> Settings | bool:
    """The thinking of some roles, or of all.

    Where the roles agree it is one value, as in results made before each role had its own.
    """
    modes = _only(data["thinking"], *(roles or data["thinking"]))
    values = set(modes.values())
    return modes if len(values) > 1 else values.pop()


def sampling_rule_settings(study: Study, model: str, *roles: str) -> Settings:
    """What a rule with prompts of some roles reads: source, their thinking, and what samples."""
    data = _section(study, "data", model)
    prompts = {key: data[key] for key in ("wording", "date") if key in data}
    rollout = study.section("rollout", model)
    # The other engine's options are not read, so they must not cause a rerun.
    if rollout["engine"] == "vllm":
        rollout = _without(rollout, "compile", "packed")
    else:
        read = ("engine", "sequences", "compile", "packed", "precision")
        rollout = {key: value for key, value in rollout.items() if key in read}
        rollout = without_added_later("rollout", rollout)
    thinking = _thinking(data, *roles)
    return {"source": data["source"], "thinking": thinking, **prompts, "rollout": rollout}


def _data(study: Study, *_: Any) -> Settings:
    return _without(_section(study, "data"), "thinking", "wording", "date", "purpose")


def _fetch(study: Study, *_: Any) -> Settings:
    data = _section(study, "data")
    return {key: data[key] for key in ("source", "raw", "fresh") if key in data}


def _base(study: Study, model: str, _: Any, draw: int) -> Settings:
    section = study.section("base", model)
    folder = study.shipped_base(model, draw)
    if folder:
        return _base_of_files(folder, shipped_base_model_files(folder))
    if section["source"] == "released":
        checkpoint = section["checkpoint"]
        if checkpoint.get("file"):  # its hash says what it is; the folder says where it is
            return {**section, "checkpoint": _without(checkpoint, "folder")}
        folder = checkpoint.get("folder")
        if folder:
            return _base_of_files(folder, hashes_of_checkpoint(Path(folder)))
    return section


def _base_of_files(folder: str, files: Settings) -> Settings:
    """A base model from a folder: its files say what it is. How it was made is not read."""
    return {"source": "released", "checkpoint": {"folder": folder, "files": files}}


def _pool(study: Study, model: str, *_: Any) -> Settings:
    pool = _section(study, "pool", model)
    pool = _without(pool, "least_share")  # says what runs, not what it is
    return {**pool, **sampling_rule_settings(study, model, "student")}


def _train(study: Study, model: str, variant: str, *_: Any) -> Settings:
    """The training; not the snapshots, because to look at a run changes nothing of it."""
    training = _without(study.training(model, variant), "snapshots")
    training = without_added_later("training", training)
    rule = training["optimiser"]["rule"]
    if rule != "kfac":  # K-FAC's numbers are not read, so they must not cause a rerun
        training["optimiser"] = {"rule": rule, "inner": None, "kfac": None}
    sampling = sampling_rule_settings(study, model, "student", "teacher")
    if sampling["rollout"]["engine"] != "vllm":  # transformers samples the live student
        sampling["rollout"] = _without(sampling["rollout"], "precision")
    return {**training, **sampling}


def _evaluate(study: Study, model: str, *_: Any) -> Settings:
    section = _without(_section(study, "evaluation", model), "pass_k")
    return {**section, **sampling_rule_settings(study, model, "evaluation")}


def _states(study: Study, model: str, *_: Any) -> Settings:
    """The recipe that all variants share: the states are pi_0's, and no variant's."""
    seed = _only(_section(study, "pool", model), "seed")
    sampling = sampling_rule_settings(study, model, "student", "teacher")
    recipe = _section(study, "training", model)
    keys = ("problems", "temperature", "response_tokens", "privilege", "top_k", "chunk")
    return {**seed, **sampling, **_only(recipe, *keys)}


def _token_probabilities(study: Study, model: str, *_: Any) -> Settings:
    """The study's own recipe for all methods, which one seed stands for; no candidate of a grid."""
    named = [name for name in study.overlay.methods if name in study.methods]
    return {**_states(study, model), "methods": named, "run_seed": study.seeds[0]}


def _shown_data(study: Study) -> Settings:
    """The section `data` for people: with every key."""
    data = study.section("data")
    return {**data, "thinking": _thinking(data)}


def _runs(study: Study, methods: Iterable[str]) -> Settings:
    return {"models": list(study.models), "methods": list(methods), "seeds": list(study.seeds)}


def _claims(study: Study, *_: Any) -> Settings:
    """Settings that claims are judged by: sweeps, the ladder of models, and the paper's costs."""
    models, training = list(study.models), given_schema_values(study.params.protocol.training)
    costs = {
        **_only(training, "problems", "response_tokens", "top_k"),
        **_only(training["optimiser"]["kfac"], "blocks", "subsample"),
    }
    stages = given_schema_values(study.overlay.stages) or None
    design = {"verdicts": study.overlay.verdicts, "stages": stages}
    return {
        **without_added_later("study", design),
        "kind": study.overlay.kind,
        "models": models,
        "privilege": sweep_points(study, "privilege"),
        "plane": sweep_points(study, "learning_rate", "steps"),
        "rates": {
            model: _only(rates, *_trained_among(study, ("fwdkl", "geosd")))
            for model, rates in _learning_rates(study).items()
        },
        "ladder": models if study.overlay.kind == "ladder" else [],
        "costs": costs if study.overlay.claims_on_costs else None,
    }


def configuration_rule_settings(study: Study, *_: Any) -> Settings:
    """The settings of rule `configuration`: the whole study as it is run, for people."""
    per_model = {
        model: {
            **{name: study.section(name, model) for name in ("base", "pool", "evaluation")},
            "training": {variant: _train(study, model, variant) for variant in study.trained},
        }
        for model in study.models
    }
    head = {"study": study.name, **_runs(study, study.methods), "draws": study.draws}
    return {**head, "data": _shown_data(study), "runs": per_model}


def _front_page(study: Study, *_: Any) -> Settings:
    """The front page's words on the study; candidates of a grid go without names there."""
    head = {"about": study.overlay.about, "outputs": list(study.outputs)}
    return {**head, **_runs(study, study.overlay.methods)}


def settings_of_output(spec: OutputSpec, study: Study, *_: Any) -> Settings:
    """The settings of one table or figure: the last part of each name, and its value.

    Of an output of a family they are those of one of its studies.
    """
    return {name.rpartition(".")[2]: _output_value(name, study, spec) for name in spec.settings}


def _output_value(name: str, study: Study, spec: OutputSpec) -> Any:
    if name in OUTPUT_SETTINGS:
        return OUTPUT_SETTINGS[name](study, spec)
    value: Any = {"protocol": given_schema_values(study.params.protocol)}
    for key in name.split("."):
        if not isinstance(value, dict) or key not in value:
            raise ValueError(
                f"{spec.title!r} asks for an unknown setting {name!r}.\nHint: allowed are"
                f" {', '.join(OUTPUT_SETTINGS)}, and keys of the protocol, as"
                " protocol.training.top_k."
            )
        value = value[key]
    return value


def _trained_among(study: Study, variants: Iterable[str]) -> list[str]:
    """Those of some variants that the study trains, in the order given."""
    return [variant for variant in variants if variant in study.trained]


def _hyperparameters(study: Study, _: OutputSpec) -> Settings:
    """All settings but those of the base models, which the paper takes as they are."""
    models: Settings = {}
    for model in study.models:
        trainings: Settings = {}
        for name in study.trained:
            if name in study.candidates:
                continue
            training = study.training(model, name)
            rule = training["optimiser"]["rule"]
            if rule != "kfac":
                training["optimiser"] = {"rule": rule}
            trainings[name] = training
        sections = {name: study.section(name, model) for name in ("pool", "evaluation")}
        models[model] = {**sections, "training": trainings}
    return {"runs": len(study.seeds), "data": _shown_data(study), "models": models}


def _learning_rates(study: Study, *_: Any) -> dict[str, dict[str, float]]:
    """The learning rate of each variant that the study trains, by model.

    A grid may try other rates of a variant. Then this is the configured rate.
    """
    variants = dict.fromkeys(map(study.variant_of, study.trained))
    return {
        model: {name: study.training(model, name)["learning_rate"] for name in variants}
        for model in study.models
    }


def _rates_of_runs(study: Study, _: OutputSpec) -> dict[str, dict[str, Any]]:
    """Run -> its variant and learning rate on the first model, of each run that is trained."""
    rates: dict[str, dict[str, Any]] = {}
    for name in study.trained:
        rate = study.training(study.models[0], name)["learning_rate"]
        rates[name] = {"variant": study.variant_of(name), "learning_rate": rate}
    return rates


def geosd_part_settings(study: Study, *_: Any) -> dict[str, dict[str, Any]]:
    """Divergence, lambda, optimiser and length of the GeoSD candidates that a factorial crosses."""
    parts = {}
    for name in study.candidates:
        training = study.training(study.models[0], name)
        objective = training["objective"]
        if objective["name"] == "geosd":
            parts[name] = {
                **_only(objective, "divergence", "drift_penalty"),
                "rule": training["optimiser"]["rule"],
                "steps": training["steps"],
            }
    return parts


def long_geosd_run_settings(study: Study, *_: Any) -> dict[str, dict[str, Any]]:
    """Divergence, refresh of the anchor and length of the GeoSD candidates of a long training."""
    runs = {}
    for name in study.candidates:
        training = study.training(study.models[0], name)
        if training["objective"]["name"] == "geosd":
            divergence = _only(training["objective"], "divergence")
            runs[name] = {**divergence, **_only(training, "anchor_every", "steps")}
    return runs


OUTPUT_SETTINGS: dict[str, Callable[[Study, OutputSpec], Any]] = {
    "models": lambda study, _: list(study.models),
    # As the study lists them, without the candidates of its grids.
    "methods": lambda study, spec: (
        _trained_among(study, spec.trained) if spec.trained else list(study.overlay.methods)
    ),
    "candidates": lambda study, _: {
        name: variant for name, (variant, _) in study.candidates.items()
    },
    # What each candidate changes in its variant's training: the last word of each key -> value.
    "changes": lambda study, _: {
        name: {key.rpartition(".")[2]: value for key, value in dotted_items(changed)}
        for name, (_, changed) in study.candidates.items()
    },
    "points": lambda study, spec: sweep_points(study, *spec.swept),
    "parts": geosd_part_settings,
    "long_runs": long_geosd_run_settings,
    "rate_candidates": lambda study, _: swept_values(study, "learning_rate"),
    "learning_rates": _learning_rates,
    "hyperparameters": _hyperparameters,
    "rates_of_runs": _rates_of_runs,
    # Of the study's own recipe, which a variant, a selection or a grid may change.
    "common_rate": lambda study, _: study.section("training", study.models[0])["learning_rate"],
    "conflict": lambda study, _: study.section("data")["conflict"],
    "purpose": lambda study, _: study.section("data")["purpose"],
    "kind": lambda study, _: study.overlay.kind,
}
"""Settings that a table or figure may ask for, and keys of the protocol."""

RULES: dict[str, Callable[..., Settings]] = {
    "fetch": _fetch,
    # What a study or a selection takes of the problems, `purpose`, changes none of them.
    "data": _data,
    "base": _base,
    "pool": _pool,
    "train": _train,
    "early_stop": _train,
    "evaluate": _evaluate,
    "evaluate_pi_0": _evaluate,
    "states": _states,
    "token_probabilities": _token_probabilities,
    "alignment": lambda study, model, variant, *_: _only(
        study.training(model, variant), "steps", "snapshots", "problems", "chunk"
    ),
    "runs": lambda study, *_: _runs(study, study.methods),
    "analyse": lambda study, *_: {
        **_runs(study, study.methods),
        **_only(study.section("evaluation"), "samples", "pass_k"),
        **_only(study.section("data"), "source"),
    },
    "claims": _claims,
    "configuration": configuration_rule_settings,
    "front_page": _front_page,
    **{name: partial(settings_of_output, spec) for name, spec in output_specs().items()},
}
