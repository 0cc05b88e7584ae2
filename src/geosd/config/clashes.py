"""Values of a study that are allowed one by one, and not together.

What one section says of itself, its class in `protocol_schema` holds; here are the rules between
sections, and between a study and its models.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Any

from pydantic import BaseModel, ValidationError

from geosd.config.errors import KeyPath, alternatives_in_error
from geosd.config.model_sizes import ModelSize, model_size
from geosd.config.output_needs import unmet_needs
from geosd.config.protocol_schema import (
    ROLLOUTS,
    Data,
    EvaluationProtocol,
    PoolProtocol,
    PretrainingProtocol,
    RolloutProtocol,
    TrainingProtocol,
)
from geosd.config.resources_schema import TrainingResources
from geosd.config.run_folders import SHARED
from geosd.config.schema_base import SectionSchema, given_schema_values
from geosd.config.study import Study
from geosd.dotted_keys import dotted_items
from geosd.models.architectures import TINY_MODELS
from geosd.models.shipped_base_models import SHIPPED, shipped_base_model_draws
from geosd.problems.fresh_benchmarks import BY_FILE
from geosd.problems.sources import get_data_source, names
from geosd.reporting.specs import output_specs

SECTIONS: dict[str, type[SectionSchema]] = {
    "data": Data,
    "pool": PoolProtocol,
    "evaluation": EvaluationProtocol,
    "rollout": RolloutProtocol,
}
"""Sections that are held to their classes once more when all is laid over the protocol."""
PINS = {
    "folder": ("folder",),
    "repo": ("repo", "revision"),
    "package": ("package", "file", "sha256"),
}
"""Where a released checkpoint may lie, in the order of preference -> the keys that pin it there."""

STEPS_BETWEEN = ("save_every", "max_skipped_steps")
"""Keys of a training that count its steps."""
OF_PROBLEMS = ("problems", "final_rollouts")
"""Keys of a training that count its problems."""
SPLITS = ("train", "select_train", "select_validation", "test_id")
"""Keys of the data that draw from the same problems."""
SAMPLING_RULES = ("pool", "evaluate", "states")
"""Rules of which every GPU samples."""
MISSING = "Field required"
"""pydantic's reason for a key that is not there."""
Clash = tuple[KeyPath, str]


def clashes(study: Study) -> Iterator[Clash]:
    """Each clash of a study: a key of the file, and what is wrong and allowed."""
    found = [*_values(study)]
    if not found:  # the needs of outputs are checked only where all values are right
        found = [*_unmet_outputs(study)]
    for key, message in found:
        of_model = key[:1] == ("models",) and len(key) > 1
        yield (key if of_model else ("studies", study.name, *key)), message


def _unmet_outputs(study: Study) -> Iterator[Clash]:
    """Outputs that have nothing to show."""
    for index, name in enumerate(study.outputs):
        if name in output_specs():
            for missing in unmet_needs(study, output_specs()[name]):
                yield ("outputs", index), f"{name} {missing}."


def _values(study: Study) -> Iterator[Clash]:
    """Values of the study and of its models that do not go together."""
    kind, purpose = study.overlay.kind, study.section("data")["purpose"]
    if study.name in SHARED:
        yield (), f"no study has the name of a folder that all share: {', '.join(SHARED)}."
    if kind == "ladder" and len(study.models) < 2:
        yield ("kind",), "a ladder has two models or more, from small to large."
    if (kind == "selection") != (purpose != "study"):
        yield ("kind",), f"the kind is {kind} but data.purpose is {purpose}."
    for name in sorted(study.candidates.keys() & study.params.variants.keys()):
        yield ("grid",), f"a variant has the name of the candidate {name} already."
    yield from _own_entries(study)
    yield from _hidden_keys(study)
    for model in study.models:
        wrong = [*_jobs(study, model)]
        wrong = wrong or [*_sections(study, model), *_base(study, model)]
        yield from wrong or _trainings(study, model)


def _own_entries(study: Study) -> Iterator[Clash]:
    """Entries of the study for variants: models that lack keys, and keys that hide others."""
    parent = study.params.studies.get(study.overlay.extends or "")
    entries_above = parent.own_entries if parent else {}
    for variant, entry in study.overlay.own_entries.items():
        if entry.training_by_model is None:
            continue
        place = ("variants", variant)
        lacking = [model for model in study.models if model not in entry.training_by_model]
        if lacking:
            message = f"has no entry for {', '.join(lacking)}; every model of the study needs one."
            yield (*place, "training_by_model"), message
            continue
        on_models = [entry.training_by_model[model] for model in study.models]
        above = entries_above[variant].training if variant in entries_above else None
        for key in _hidden(entry.training, above, map(given_schema_values, on_models)):
            message = "is never read: training_by_model has it for every model; change it there."
            yield (*place, "training", *key.split(".")), message


def _hidden_keys(study: Study) -> Iterator[Clash]:
    """Keys of the study's own training that no run reads: its entries for variants go before it."""
    parent = study.params.studies.get(study.overlay.extends or "")
    entries = study.overlay.own_entries
    variants = {study.variant_of(name) for name in study.trained}
    if not variants or not variants <= entries.keys():
        return
    runs = product(variants, study.models)
    changes = [entries[variant].on(model) for variant, model in runs]
    for key in _hidden(study.overlay.training, parent and parent.training, changes):
        message = "is never read: the study's `variants` have it for every method; change it"
        message += " there, or set variants to null to take inherited entries away."
        yield ("training", *key.split(".")), message


def _hidden(
    training: BaseModel | None, above: BaseModel | None, changes: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Keys of a training, dotted, that all of the changes laid over it have, too.

    A key with the value of the training `above` is inherited, which is no mistake: the study that
    it is inherited from may read it.
    """
    inherited = dict(dotted_items(given_schema_values(above)))
    given = dotted_items(given_schema_values(training))
    own = [key for key, value in given if key not in inherited or inherited[key] != value]
    hiding = [dict(dotted_items(keys)) for keys in changes]
    return [key for key in own if all(key in keys for keys in hiding)]


def _sections(study: Study, model: str) -> Iterator[Clash]:
    """Clashes within the sections of a model, as they are resolved."""
    for name, section in SECTIONS.items():
        for key, reason in _refusals(section, json.dumps(study.section(name, model))):
            yield (name, *key), f"{reason}, for {model}."
    data = study.section("data", model)
    evaluation = study.section("evaluation", model)
    if evaluation["coverage"] < evaluation["samples"]:
        message = f"must be samples, which is {evaluation['samples']}, or more."
        yield ("evaluation", "coverage"), message
    yield from _devices(study, model)
    try:
        from_files = get_data_source(data["source"]).reads_raw
    except ValueError:
        message = f"{data['source']} is no data source. "
        yield ("data", "source"), message + alternatives_in_error(data["source"], list(names()))
        return
    yield from _counts(data)
    pinned = [text for text in data.get("fresh", ()) if "@" in text]
    if pinned and data["source"] != BY_FILE:
        message = f"{pinned[0]} pins a file, and {data['source']} needs no pin: its problems are"
        yield ("data", "fresh"), f"{message} drawn anew where a file changes; give the name alone."
    if from_files and data["raw"] is None:
        yield (
            ("data", "raw"),
            f"{data['source']} is made from files; name their folder, docs/problems.md.",
        )
    elif not from_files and data["test_per_benchmark"] is None:
        message = f"null is the whole benchmark, and {data['source']} has no end; give a number."
        yield ("data", "test_per_benchmark"), message
    if data["wording"] is not None and data["source"].startswith("search"):
        yield ("data", "wording"), f"{data['source']} has no chat model; allowed is null."
    if data.get("date") is not None and data["source"].startswith("search"):
        yield ("data", "date"), f"{data['source']} has no chat template; take the line away."
    if data["conflict"] is not None and not data["source"].startswith("search"):
        yield ("data", "conflict"), f"{data['source']} has none; take the line away."


def _counts(data: Mapping[str, Any]) -> Iterator[Clash]:
    """More problems than a source has, where that is known without its files."""
    source, name = get_data_source(data["source"]), data["source"]
    wanted = sum(data[key] for key in SPLITS)
    if source.most_problems is not None and wanted > source.most_problems:
        largest = max(SPLITS, key=lambda key: data[key])
        message = f"{data[largest]} is too many: {', '.join(SPLITS)} are {wanted} problems, and"
        yield ("data", largest), f"{message} {name} has {source.most_problems}."
    most = source.most_per_benchmark
    if most is not None and (data["test_per_benchmark"] or 0) > most:
        message = f"{data['test_per_benchmark']} is more than the {most} problems of the smallest"
        yield ("data", "test_per_benchmark"), f"{message} benchmark of {name}; null takes all."


def _jobs(study: Study, model: str) -> Iterator[Clash]:
    """What the study's own requests of jobs make of those of a model."""
    try:
        study.resources_of(model)
    except ValidationError as error:
        for one in error.errors():
            reason = one["msg"].removeprefix("Value error, ").replace("Input", "input", 1)
            place = ("resources", model, *(str(key) for key in one["loc"]))
            yield place, f"{reason}, over what {model} asks for in `resources`."


def _devices(study: Study, model: str) -> Iterator[Clash]:
    """More devices for each matrix than a job that samples has GPUs."""
    rollout, resources = study.section("rollout", model), study.resources_of(model)
    if rollout["engine"] != "vllm":
        return
    gpus = {rule: getattr(resources, rule).gpus for rule in SAMPLING_RULES}
    gpus["train"] = resources.train.inference_gpus or resources.train.gpus
    for rule, number in gpus.items():
        if 0 < number < rollout["tensor_parallel"]:
            message = f"{rollout['tensor_parallel']} is more than the {number} GPUs that sample in"
            yield ("rollout", "tensor_parallel"), f"{message} rule {rule} (resources), for {model}."
            return


def _base(study: Study, model: str) -> Iterator[Clash]:
    """Clashes of a model's base model and its draws."""
    base = study.section("base", model)
    place = ("base",) if study.overlay.base else ("models", model, "base")
    released = base["source"] == "released"
    needed = "checkpoint" if released else "pretraining"
    if base[needed] is None:
        message = f"base.source is {base['source']} but base.{needed} is null for {model}."
        yield (*place, needed), message
    elif released:
        missing = _unpinned(base["checkpoint"])
        if missing:
            yield (*place, "checkpoint"), f"{missing} for {model}."
    if base["pretraining"]:
        for key, message in _pretraining(base["pretraining"], model):
            yield (*place, "pretraining", *key), message
    if study.draws > 1 and study.shipped_base(model, 0) is None:
        message = f"{model} has one base model; only those in {SHIPPED}/ have several draws."
        yield ("draws",), message
    elif study.draws > 1:
        # Without any draw `make base-models` is still to come, which reads the same file.
        draws = shipped_base_model_draws(base["checkpoint"]["folder"])
        if 0 < draws < study.draws:
            yield ("draws",), f"{model} has {draws} draws in {SHIPPED}/; allowed are 1 to {draws}."


def _pretraining(recipe: Mapping[str, Any], model: str) -> Iterator[Clash]:
    """Clashes of a pretraining's recipe, by its keys."""
    wrong = _refusals(PretrainingProtocol, json.dumps(recipe))
    lacking = [".".join(key) for key, reason in wrong if reason == MISSING]
    if lacking:
        yield (), f"base.pretraining lacks {', '.join(lacking)} for {model}."
    for key, reason in wrong:
        if reason != MISSING:
            yield key, f"{reason}, for {model}."
    name = recipe.get("architecture")
    if not wrong and name not in TINY_MODELS:
        message = f"{name} is no architecture. {alternatives_in_error(name, list(TINY_MODELS))}"
        yield ("architecture",), message


def _trainings(study: Study, model: str) -> Iterator[Clash]:
    """Clashes of what a model is trained with, variant by variant."""
    size = model_size(model, study.section("base", model))
    resources = study.resources_of(model).train
    data = study.section("data", model)
    problems = data["select_train"] if data["purpose"] == "selection" else data["train"]
    usual = given_schema_values(study.params.protocol.training)
    for variant in study.trained:
        training = study.training(model, variant)
        place = ("grid", study.variant_of(variant)) if variant in study.candidates else ()
        wrong = [
            (k, f"{reason}, for") for k, reason in _refusals(TrainingProtocol, json.dumps(training))
        ]
        if not wrong:
            # The beginning of a longer run saves and measures as that one does.
            steps = math.inf if variant in study.early_stops else training["steps"]
            wrong = [
                *_beyond(training, size, resources),
                *clash_over_count(training, steps, problems, usual),
            ]
        for key, message in wrong:
            name = ".".join(["training", *key])
            yield place or ("training", *key), f"{name}: {message} {variant} of {model}."


def _beyond(
    training: Mapping[str, Any], size: ModelSize, resources: TrainingResources
) -> Iterator[Clash]:
    """Demands of a training beyond its model's size, or on the processes that its job starts."""
    kfac = training["optimiser"]["kfac"]
    if training["optimiser"]["rule"] == "kfac" and kfac["blocks"] > (size.hidden or kfac["blocks"]):
        message = f"{kfac['blocks']} is more than the {size.hidden} hidden dimensions, for"
        yield ("optimiser", "kfac", "blocks"), message
    if size.vocabulary and training["top_k"] and training["top_k"] > size.vocabulary:
        message = f"{training['top_k']} is more than the {size.vocabulary} tokens there are, for"
        yield ("top_k",), message
    shared = ["problems", "final_rollouts"]
    if ROLLOUTS[training["objective"]["name"]] == "group":
        shared.append("group")
        if training["group"] < 2:
            yield ("group",), "a group of 1 has no advantage; allowed are integers from 2, for"
    for key in shared:
        if training[key] % resources.trainers:
            message = f"{training[key]} cannot be shared evenly by the {resources.trainers} GPUs"
            yield (key,), f"{message} that train (resources), for"
    if resources.inference_gpus and training["teacher"] != "live":
        message = f"{training['teacher']} is no teacher that inference_gpus score; live is, for"
        yield ("teacher",), message


def clash_over_count(
    training: Mapping[str, Any],
    steps: float,
    problems: int,
    usual: Mapping[str, Any] | None = None,
) -> Iterator[Clash]:
    """Numbers of a training that are more than there is of what they count.

    A short run may keep a number of the `usual` recipe, the protocol's: it means the whole run.
    """
    in_steps = {(key,): f"the {steps} steps" for key in STEPS_BETWEEN}
    if training["optimiser"]["rule"] == "kfac":
        in_steps["optimiser", "kfac", "inverse_every"] = f"the {steps} steps"
    in_problems = {(key,): f"the {problems} training problems" for key in OF_PROBLEMS}
    responses = max(training["problems"], training["group"])
    in_responses = {("microbatch",): f"the {responses} responses of a step"}
    bounds = ((steps, in_steps), (problems, in_problems), (responses, in_responses))
    for most, keys in bounds:
        for key, words in keys.items():
            value, of_protocol = _value_at(training, key), usual and _value_at(usual, key)
            if value is not None and value > most and value != of_protocol:
                yield key, f"{value} is more than {words}, for"


def _value_at(values: Any, key: KeyPath) -> Any:
    """The value of a key that leads into sections."""
    for name in key:
        values = values[name]
    return values


@lru_cache(maxsize=4096)
def _refusals(section: type[SectionSchema], text: str) -> tuple[Clash, ...]:
    """Errors of a section's class on a resolved section, as JSON; studies share most sections."""
    try:
        section.model_validate_json(text)
    except ValidationError as error:
        return tuple(
            (
                tuple(str(key) for key in one["loc"]),
                one["msg"].removeprefix("Value error, ").replace("Input", "input", 1),
            )
            for one in error.errors()
        )
    return ()


def _unpinned(checkpoint: Mapping[str, Any]) -> str | None:
    """Missing parts of a released checkpoint, or None; it may name the hub, or a folder here."""
    named = [place for place in PINS if checkpoint.get(place)]
    if not named:
        return "base.checkpoint names neither repo, folder nor package"
    needed = list(PINS[named[0]])
    if checkpoint.get("file") or checkpoint.get("sha256"):
        needed += [key for key in ("file", "sha256") if key not in needed]
    missing = [key for key in needed if not checkpoint.get(key)]
    if missing:
        return f"base.checkpoint names {named[0]} but not {', '.join(missing)}"
    return None
