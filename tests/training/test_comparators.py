"""Each variant of docs/comparators.md trains, alone and continued from a state, and differs."""

import io
from pathlib import Path

import pytest
import torch

from geosd.config import load, resolve_study
from geosd.training.arguments import training_arguments
from geosd.training.loop import train_step
from geosd.training.run import RunInputs, assemble_run

ROOT = Path(__file__).resolve().parents[2]
STUDY = "miniature_comparators_100"
COMPARED = {
    "geosd_muon": "geosd_adamw",
    "geosd_fixed": "geosd",
    "geosd_purified": "geosd_fixed",
    "fwdkl_fixed": "fwdkl",
    "fwdkl_average": "fwdkl",
    "fwdkl_solution_only": "fwdkl_fixed",
    "fwdkl_purified": "fwdkl_fixed",
    "jsd_purified": "jsd",
    "fwdkl_whole_vocabulary": "fwdkl",
    "geosd_whole_vocabulary": "geosd",
    "tropd_overlap": "tropd",
    "tropd_clamp": "tropd",
    "tropd_mask": "tropd",
    "tropd_forward": "tropd",
}
"""Variant -> another one, from which it must come to other weights in a few steps."""
STEPS = 4


@pytest.fixture(scope="module")
def study():
    return resolve_study(load(ROOT / "params.yaml"), STUDY)


def settings_of(study, variant, settings):
    """The tests' small steps, with what a variant of the study says of its own."""
    candidate = f"{variant}-learning_rate_3e-05"
    of_variant = study.training("mini-qwen3", candidate)
    objective = dict(of_variant["objective"])
    if objective["name"] == "tropd":  # student and teacher of the tests hardly disagree
        objective["agreement_threshold"] = 0.9999
        if objective["outlier"] in ("scaled", "clamp"):
            objective["outlier_cap"] = 1e-6
    optimiser = {**settings["optimiser"], "rule": of_variant["optimiser"]["rule"]}
    return settings | {
        "response_tokens": 6,
        "objective": objective,
        "optimiser": optimiser,
        "teacher": of_variant["teacher"],
        # As in the study a true subset, which is nearly all of the vocabulary there.
        "top_k": None if of_variant["top_k"] is None else 3,
    }


def assembled(tiny, settings):
    return assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )


def steps(run, settings, first, last):
    """Some steps of a run; the losses, and the weights after them."""
    args = training_arguments(settings)
    losses = [train_step(run, args, step)["loss/total"] for step in range(first, last)]
    return losses, [weight.detach().clone() for weight in run.student.parameters()]


@pytest.fixture(scope="module")
def trained(study, tiny, settings_of_steps):
    """A function from a variant to its losses and weights after a few steps, made once."""
    made = {}

    def of(variant):
        if variant not in made:
            settings = settings_of(study, variant, settings_of_steps)
            made[variant] = steps(assembled(tiny, settings), settings, 0, STEPS)
        return made[variant]

    return of


def test_each_variant_of_the_study_is_compared(study):
    named = {study.variant_of(name) for name in study.trained}
    assert named == {*COMPARED, *COMPARED.values()}


@pytest.mark.slow
@pytest.mark.parametrize("variant", COMPARED)
def test_each_variant_trains_and_is_not_the_one_it_is_compared_with(variant, trained):
    losses, weights = trained(variant)
    assert all(torch.tensor(losses).isfinite())
    assert all(bool(weight.isfinite().all()) for weight in weights)
    _, others = trained(COMPARED[variant])
    assert not all(map(torch.equal, weights, others))


@pytest.mark.parametrize("variant", ["geosd_muon", "jsd_purified", "geosd_whole_vocabulary"])
def test_a_run_continued_from_its_state_is_the_run_bit_for_bit(
    variant, study, tiny, settings_of_steps, trained
):
    settings = settings_of(study, variant, settings_of_steps)
    first = assembled(tiny, settings)
    steps(first, settings, 0, STEPS // 2)
    kept = io.BytesIO()
    torch.save(first.state_dict(), kept)
    kept.seek(0)
    again = assembled(tiny, settings)
    again.load_state_dict(torch.load(kept, weights_only=True))
    _, weights = steps(again, settings, STEPS // 2, STEPS)
    assert all(map(torch.equal, weights, trained(variant)[1]))
