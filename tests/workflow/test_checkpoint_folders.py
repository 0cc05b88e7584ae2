"""A base model from a folder of one's own: trained further, it is another one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from geosd.cli import base, stale
from geosd.config.run_folders import write_run_folders
from geosd.files import sha256
from geosd.models.released_models import DamagedReleaseError
from geosd.provenance.manifest import read_manifest

MODEL = """models:
  own:
    extends: mini-qwen3
    about: A model in a folder.
    base: {checkpoint: {folder: models/own}}

"""
STUDY = """  own:
    extends: quick
    about: A model of one's own.
    kind: main
    models: [own]

  quick_selection:
"""
OWN = ("--config", "study=own")


@pytest.fixture
def own(fresh, tmp_path):
    """The workflow with a study of a model in a folder of one's own."""
    folder = tmp_path / "copy"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    workflow = type(fresh)(folder)
    workflow.edit("params.yaml", "\nmodels:\n", f"\n{MODEL}")
    workflow.edit("params.yaml", "  quick_selection:\n", STUDY)
    workflow.keep_studies("quick", "quick_selection", "own")
    shutil.copytree(folder / "base_models/mini-qwen3/0", folder / "models/own")
    return workflow


def train_further(folder: Path) -> None:
    weights = folder / "models/own/model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)


@pytest.mark.slow
def test_a_plan_makes_all_anew_that_follows_from_a_checkpoint_that_was_trained_further(own):
    for name in own.outputs("own"):
        (own.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (own.folder / name).write_text(name)
    own.snakemake("--profile", "local", "--touch", "--forceall", *OWN)
    assert own.planned_jobs(*OWN) == {}
    for path in (own.folder / "models/own").iterdir():
        os.utime(path)
    assert own.planned_jobs(*OWN) == {}
    train_further(own.folder)
    jobs = own.planned_jobs(*OWN)
    assert (jobs["base"], jobs["pool"], jobs["train"], jobs["evaluate_pi_0"]) == (1, 1, 12, 3)
    assert jobs["data"] == 0


def test_the_base_model_is_stale_and_one_that_changes_meanwhile_is_refused(
    own, monkeypatch, capsys
):
    monkeypatch.chdir(own.folder)
    made = Path(own.folders("own").base("own"))
    arguments = {"study": "own", "model": "own", "scratch": Path("scratch")}
    base.main(out=made, **arguments)
    weights = Path("models/own/model.safetensors")
    assert read_manifest(made)["inputs"][str(weights)] == sha256(weights)

    with pytest.raises(SystemExit) as ended:
        stale.main("own")
    assert not ended.value.code
    rows = own.folders("own").rows()
    write_run_folders(Path("results/own/runs.csv"), rows)
    train_further(own.folder)
    with pytest.raises(SystemExit) as ended:
        stale.main("own")
    printed = capsys.readouterr().out
    assert ended.value.code
    assert f"{made} follows from other settings" in printed
    assert "parameter checkpoint.files.model.safetensors was " in printed

    copy = base.copy_released_model

    def copy_and_train(source, out):
        copy(source, out)
        train_further(own.folder)

    monkeypatch.setattr(base, "copy_released_model", copy_and_train)
    with pytest.raises(DamagedReleaseError, match=r"model\.safetensors was changed while.*\nHint"):
        base.main(out=Path("results/base/again"), **arguments)
    assert not Path("results/base/again/manifest.json").exists()
