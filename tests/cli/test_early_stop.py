"""An early stop taken from a longer run has the bytes of a run trained to that step."""

import json

import pytest
import yaml

from geosd.cli import early_stop
from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.kept_weights import kept_snapshots
from geosd.config.run_folders import RunFolders
from geosd.files import atomic_write
from geosd.provenance.proof import UnprovenFileError

MODEL = "mini-qwen3"


@pytest.fixture(scope="module")
def stopped(small, tmp_path_factory):
    """A study in which runs of 3 steps are the beginning of runs of 4; the folder of its runs."""
    folder = tmp_path_factory.mktemp("stopped")
    values = yaml.safe_load(small.shared["params"].read_text())
    study = values["studies"]["quick"]
    study |= {"methods": ["pi_0"], "outputs": ["figure_stepsize"]}
    study["grid"] = {
        name: [{"learning_rate": [1.0e-5, 3.0e-5]}, {"steps": [3, 4]}] for name in ("geosd", "grpo")
    }
    training = {"training": {"learning_rate": 3.0e-5}}
    study["variants"] = {name: training for name in ("geosd", "grpo")}
    del study["training"]["learning_rate"]  # the variants have theirs
    values["studies"] = {"quick": study}  # others would inherit its grid
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    return folder


@pytest.fixture(scope="module")
def study(stopped):
    return resolve_study(load(stopped / "params.yaml"), "quick")


RUNS = ["geosd float32", pytest.param("grpo bfloat16", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=RUNS)
def taken(request, small, stopped):
    """A longer run, the shorter run taken from it, and the same shorter run trained."""
    name, storage = request.param.split()
    values = yaml.safe_load((stopped / "params.yaml").read_text())
    values["studies"]["quick"]["training"]["storage"] = storage
    params = stopped / f"{storage}.yaml"
    params.write_text(yaml.safe_dump(values))
    longest = f"{name}-learning_rate_3e-05"
    longer = small.trained(stopped / "longer" / name, longest, snapshots=[3], params=params)
    out = stopped / "run" / name
    early_stop.main("quick", MODEL, f"{name}-steps_3", 0, longer, out, params)
    out = out.rename(out.with_name(name + "-taken"))
    trained_run = small.trained(stopped / "run" / name, f"{name}-steps_3", params=params)
    return longer, out, trained_run


def test_a_shorter_run_of_the_same_is_an_early_stop_of_the_longest(study):
    assert study.early_stops == {
        f"{name}-steps_3": f"{name}-learning_rate_3e-05" for name in ("geosd", "grpo")
    }
    folders, snapshots = RunFolders(study), kept_snapshots(study)
    for name in ("geosd", "grpo"):
        longer = folders.recipe(MODEL, f"{name}-learning_rate_3e-05")
        assert snapshots[MODEL, longer, 0] == (3,)
        assert (MODEL, folders.recipe(MODEL, f"{name}-learning_rate_1e-05"), 0) not in snapshots
        own = settings("early_stop", study, MODEL, f"{name}-steps_3")
        assert own == settings("train", study, MODEL, f"{name}-steps_3") and own["steps"] == 3
    with pytest.raises(ConfigError, match="no trained variant"):
        settings("early_stop", study, MODEL, "geosd-steps_4")


@pytest.mark.parametrize(
    ("changes", "stops"),
    [
        ({}, {"geosd_short": "geosd"}),
        ({"steps": 4}, {}),
        ({"snapshots": [1]}, {}),  # they would lie in its own folder
        ({"learning_rate": 2.0e-5}, {}),
        ({"loss_mean": "token"}, {}),
        ({"objective": {"drift_penalty": 0.0}}, {}),
    ],
)
def test_what_differs_in_more_than_its_length_is_trained(stopped, tmp_path, changes, stops):
    values = yaml.safe_load((stopped / "params.yaml").read_text())
    values["variants"]["geosd"]["training"] |= {"learning_rate": 3.0e-5}
    short = {**values["variants"]["geosd"], "training": {**values["variants"]["geosd"]["training"]}}
    short["training"] |= {"steps": 3, **changes}
    if "objective" in changes:
        objective = values["variants"]["geosd"]["training"]["objective"]
        short["training"]["objective"] = {**objective, **changes["objective"]}
    values["variants"]["geosd_short"] = short
    study = values["studies"]["quick"]
    study |= {"methods": ["pi_0", "geosd", "geosd_short"], "grid": {}, "outputs": ["table_main"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    assert resolve_study(load(tmp_path / "params.yaml"), "quick").early_stops == stops


@pytest.mark.slow
def test_it_is_what_training_makes_byte_for_byte(taken):
    longer, out, trained_run = taken
    names = {path.name for path in trained_run.iterdir() if path.is_file()}
    assert {path.name for path in out.iterdir()} == names
    for name in names - {"manifest.json", "README.md"}:
        assert (out / name).read_bytes() == (trained_run / name).read_bytes(), name
    assert (out / "model.safetensors").read_bytes() != (longer / "model.safetensors").read_bytes()


def test_its_card_and_its_manifest_are_those_of_the_trained_one(taken):
    longer, out, trained_run = taken
    card, other = ((folder / "README.md").read_text() for folder in (out, trained_run))
    assert card == other
    stopped, trained = (json.loads((f / "manifest.json").read_text()) for f in (out, trained_run))
    assert stopped.keys() == trained.keys()
    assert all(name.startswith(str(longer)) for name in stopped["inputs"])
    for key in ("settings", "sampler", "model", "seed", "ranks", "precision", "card"):
        assert stopped[key] == trained[key]


def test_its_weights_take_no_room_and_outlive_the_longer_run_s(taken):
    longer, out, _ = taken
    kept = longer / "snapshots/step_3.safetensors"
    assert (out / "model.safetensors").samefile(kept)
    before = (out / "model.safetensors").read_bytes()
    with atomic_write(kept) as temporary:  # as a run that is made again does
        temporary.write_bytes(b"another run's")
    assert (out / "model.safetensors").read_bytes() == before
    with atomic_write(kept) as temporary:
        temporary.write_bytes(before)


def test_where_files_cannot_be_shared_they_are_copied(taken, stopped, tmp_path, monkeypatch):
    def refuse(*names):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    longer, *_ = taken
    again = tmp_path / "again"
    early_stop.main(
        "quick", MODEL, f"{longer.name}-steps_3", 0, longer, again, stopped / "params.yaml"
    )
    kept = longer / "snapshots/step_3.safetensors"
    assert (again / "model.safetensors").read_bytes() == kept.read_bytes()
    assert not (again / "model.safetensors").samefile(kept)


def test_weights_that_were_not_kept_are_named(taken, stopped, tmp_path):
    longer, _, trained_run = taken
    name = longer.name
    with pytest.raises(FileNotFoundError, match="step_3.safetensors.*not kept(.|\n)*Hint: "):
        early_stop.main(
            "quick", MODEL, f"{name}-steps_3", 0, trained_run, tmp_path, stopped / "params.yaml"
        )


def test_a_log_that_is_not_the_run_s_is_refused_and_nothing_is_written(taken, stopped, tmp_path):
    longer, *_ = taken
    log = longer / "steps.csv"
    before = log.read_text()
    log.write_text(before.replace("1", "2"))
    with pytest.raises(
        UnprovenFileError, match=f"^{log}: not the file(.|\n)*Hint: `rm -r {longer}`"
    ):
        early_stop.main(
            "quick", MODEL, f"{longer.name}-steps_3", 0, longer, tmp_path, stopped / "params.yaml"
        )
    log.write_text(before)
    assert not any(tmp_path.iterdir())


def test_a_measurement_that_was_not_kept_is_named(taken, stopped, tmp_path):
    longer, *_ = taken
    kept = tmp_path / "longer/snapshots/step_3.safetensors"
    kept.parent.mkdir(parents=True)
    kept.write_bytes((longer / "snapshots/step_3.safetensors").read_bytes())
    with pytest.raises(FileNotFoundError, match="step_3.json.*not kept(.|\n)*Hint: "):
        early_stop.main(
            "quick",
            MODEL,
            f"{longer.name}-steps_3",
            0,
            tmp_path / "longer",
            tmp_path / "out",
            stopped / "params.yaml",
        )
