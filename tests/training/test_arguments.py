"""The typed recipe of a training has all that the configuration gives a training, and no more."""

from __future__ import annotations

from dataclasses import fields

import pytest

from geosd.config import load, resolve_study
from geosd.config import settings as settings_of
from geosd.config.protocol_schema import LoraProtocol, OptimiserProtocol, TrainingProtocol
from geosd.training.arguments import (
    LoraArguments,
    OptimiserArguments,
    TrainingArguments,
    training_arguments,
)

OF_DATA = {"source", "thinking", "wording", "date"}


def names(arguments: type) -> set[str]:
    return {each.name for each in fields(arguments)}


def test_each_setting_has_its_field():
    """Snapshots are kept weights, which change nothing of a run."""
    assert names(TrainingArguments) == {*TrainingProtocol.model_fields} - {
        "snapshots"
    } | OF_DATA | {"rollout"}
    assert names(OptimiserArguments) == {*OptimiserProtocol.model_fields}
    assert names(LoraArguments) == {*LoraProtocol.model_fields}


@pytest.mark.parametrize("study", ["quick", "paper", "smollm2_rates"])
def test_the_settings_of_a_studys_trainings_are_read_as_they_are(root, study):
    resolved = resolve_study(load(root / "params.yaml"), study)
    model, variant = resolved.models[0], resolved.trained[-1]
    given = settings_of("train", resolved, model, variant)
    read = training_arguments(given)
    for name, value in given.items():
        found = getattr(read, name)
        if name == "optimiser":
            assert (found.rule, found.inner, found.kfac) == tuple(value.values())
        else:
            assert found == (tuple(value) if name == "betas" else value)


def test_adapters_are_typed_too(settings):
    lora = {"rank": 2, "alpha": 4.0, "targets": ["q_proj"]}
    assert training_arguments(settings).lora is None
    assert training_arguments(settings | {"lora": lora}).lora == LoraArguments(**lora)


def test_a_missing_and_an_unknown_setting_are_named(settings):
    with pytest.raises(TypeError, match="'warm_up'"):
        training_arguments(settings | {"warm_up": 3})
    del settings["warmup"]
    with pytest.raises(TypeError, match="'warmup'"):
        training_arguments(settings)
