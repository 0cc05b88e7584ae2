"""A checkpoint whose configuration has dropout: its passes are as those of one that has none."""

import json
import shutil

import pytest
import torch

from geosd.models.load_and_save import load_model, save_model
from geosd.training.arguments import training_arguments
from geosd.training.loop import train_step
from geosd.training.run import RunInputs, assemble_run

ADAMW = {"rule": "adamw", "inner": None, "kfac": None}


@pytest.fixture
def dropping(tiny, tmp_path):
    """The tiny base model with a rate of dropout in config.json."""
    folder = tmp_path / "dropping"
    shutil.copytree(tiny / "base", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.25}))
    return folder


def two_steps(base, tiny, settings):
    """What two steps measure, and the run after them."""
    run = assemble_run(RunInputs(settings, base, tiny / "train.jsonl", tiny / "pool.jsonl", 0))
    return [train_step(run, training_arguments(settings), step) for step in (0, 1)], run


@pytest.mark.parametrize("teacher", ["live", "fixed", "delayed", "average"])
def test_a_run_has_the_bits_of_one_without_dropout(dropping, tiny, settings, teacher):
    settings |= {"optimiser": ADAMW, "recompute": True, "teacher": teacher, "response_tokens": 6}
    torch.manual_seed(1)
    measured, run = two_steps(dropping, tiny, settings)
    torch.manual_seed(2)
    plain, other = two_steps(tiny / "base", tiny, settings)
    assert measured[0]["loss/prox"] == 0  # the student is the anchor still
    assert [step["loss/prox"] for step in measured] == [step["loss/prox"] for step in plain]
    weights = run.student.state_dict()
    assert all(torch.equal(value, weights[n]) for n, value in other.student.state_dict().items())


def test_what_is_saved_keeps_the_configurations_rate(dropping, tiny, settings, tmp_path):
    settings |= {"optimiser": ADAMW, "recompute": True}
    run = assemble_run(RunInputs(settings, dropping, tiny / "train.jsonl", tiny / "pool.jsonl", 0))
    _, tokenizer = load_model(dropping)
    save_model(run.student, tokenizer, tmp_path / "saved")
    saved = json.loads((tmp_path / "saved/config.json").read_text())
    assert saved["attention_dropout"] == 0.25
