"""A run, or samples, that another study has made of the same: taken, and what would be made."""

import json
from pathlib import Path

import pytest
import yaml

from geosd.models.model_card import read_model_card
from geosd.steps import evaluate, train


def told(out):
    return json.loads((out / "manifest.json").read_text())


@pytest.fixture(scope="module")
def first(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    small.trained(folder / "run")
    small.sampled(folder / "samples", folder / "run", "geosd")
    return folder


def swept(small, folder, *grids):
    """The parameters of a study that sweeps GeoSD, its own rate among the others."""
    values = yaml.safe_load(small.shared["params"].read_text())
    study = values["studies"]["quick"]
    rate = yaml.safe_load(Path(study["selected_rates"]).read_text())["learning_rate"]["geosd"]
    study |= {"methods": ["pi_0"], "outputs": ["figure_stepsize"]}
    study["grid"] = {"geosd": [{"learning_rate": [rate / 10, rate]}, *grids]}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    return {"params": path, "variant": f"geosd-learning_rate_{rate}"}


@pytest.fixture
def untrained(monkeypatch):
    """Fails the test if anything is trained."""
    monkeypatch.setattr(train, "assemble_run", lambda *_: pytest.fail("it was trained again"))


def test_a_run_under_another_name_is_taken(small, first, untrained, tmp_path):
    theirs, out = first / "run", tmp_path / "run"
    mine = told(small.trained(out, others=[tmp_path / "no", theirs], **swept(small, tmp_path)))
    assert mine["taken_from"] == str(theirs)
    names = {path.name for path in theirs.iterdir() if path.is_file()}
    assert {path.name for path in out.iterdir() if path.is_file()} == names
    for name in names - {"manifest.json", "README.md"}:
        assert (out / name).read_bytes() == (theirs / name).read_bytes(), name
    mine_card, card = ((folder / "README.md").read_text() for folder in (out, theirs))
    assert read_model_card(mine_card) == read_model_card(card)
    assert "learning_rate_" in mine_card and "learning_rate_" not in card
    assert not list(tmp_path.rglob("state.pt"))


def test_what_is_taken_is_what_would_be_trained(small, first, tmp_path):
    mine = told(small.trained(tmp_path / "run", **swept(small, tmp_path)))
    assert mine["taken_from"] is None
    theirs = told(first / "run")
    assert (mine["made_of"], mine["files"]) == (theirs["made_of"], theirs["files"])


def test_what_was_taken_is_not_taken_from(small, first, untrained, tmp_path):
    small.trained(tmp_path / "run", others=[first / "run"])
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        small.trained(tmp_path / "third", others=[tmp_path / "run"])


@pytest.mark.parametrize("change", [{"seed": 1}, {"variant": "grpo"}])
def test_another_run_is_trained(small, first, untrained, tmp_path, change):
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        small.trained(tmp_path / "run", others=[first / "run"], **change)


def test_a_run_that_keeps_snapshots_is_trained_and_may_be_taken_from(small, first, tmp_path):
    watched = swept(small, tmp_path, {"steps": [3, 4]})
    mine = told(small.trained(tmp_path / "watched", others=[first / "run"], **watched))
    assert mine["taken_from"] is None and list((tmp_path / "watched/snapshots").iterdir())
    out = told(small.trained(tmp_path / "run", others=[tmp_path / "watched"]))
    assert out["taken_from"] == str(tmp_path / "watched")
    assert not (tmp_path / "run/snapshots").exists()
    for name in ("model.safetensors", "settings.json", "steps.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (first / "run" / name).read_bytes()


def test_a_run_whose_files_have_changed_is_not_taken(small, first, untrained, tmp_path):
    small.trained(tmp_path / "copy", others=[first / "run"])
    (tmp_path / "copy/manifest.json").write_text((first / "run/manifest.json").read_text())
    (tmp_path / "copy/steps.csv").write_text("step\n")
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        small.trained(tmp_path / "run", others=[tmp_path / "copy"])


def test_samples_of_the_same_are_taken(small, first, monkeypatch, tmp_path):
    monkeypatch.setattr(evaluate, "evaluate", lambda *_, **__: pytest.fail("sampled again"))
    mine = told(small.sampled(tmp_path, first / "run", "geosd", others=[first / "samples"]))
    theirs = told(first / "samples")
    assert mine["taken_from"] == str(first / "samples")
    assert (mine["made_of"], mine["files"]) == (theirs["made_of"], theirs["files"])
    assert mine["sampler"] == theirs["sampler"]
    samples = (first / "samples/samples.jsonl").read_bytes()
    assert (tmp_path / "samples.jsonl").read_bytes() == samples


@pytest.mark.parametrize("seed, of", [(1, "run"), (0, "base")])
def test_other_samples_are_drawn(small, first, monkeypatch, tmp_path, seed, of):
    monkeypatch.setattr(evaluate, "evaluate", lambda *_, **__: pytest.fail("sampled again"))
    checkpoint = small.base if of == "base" else first / "run"
    with pytest.raises(pytest.fail.Exception, match="sampled again"):
        small.sampled(tmp_path, checkpoint, "geosd", seed, [first / "samples"])
