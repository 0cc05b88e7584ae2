"""Stale is what today's inputs, parameters and code would make otherwise, and all that follows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geosd.provenance import manifest as made
from geosd.provenance.staleness import stale

SETTINGS = {"base": {"steps": 7}, "train": {"rate": 0.1, "deep": {"a": 1, "b": [1, 2]}}}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """problems -> base -> train -> evaluate, each with a manifest; the package is one file."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "src/geosd/loop.py"
    source.parent.mkdir(parents=True)
    source.write_text("loop")
    Path("problems.jsonl").write_text("problems")
    inputs = {"base": "problems.jsonl", "train": "results/base/w", "evaluate": "results/train/w"}
    for step, name in inputs.items():
        folder = Path("results") / step
        folder.mkdir(parents=True)
        (folder / "w").write_text(f"weights of {step}")
        told = made.manifest([Path(name)], SETTINGS.get(step, {}), 1.0)
        told["code"]["files"] = {"geosd/loop.py": made.sha256(source)} if step == "train" else {}
        (folder / "manifest.json").write_text(json.dumps(told))
    return tmp_path


def judged(settings: dict | None = None, results: str = "results") -> dict[str, list[str]]:
    now = SETTINGS if settings is None else settings
    found = stale(Path(results), Path("src"), lambda folder: now.get(str(folder), {}))
    return {folder.name: why for folder, why in found.items() if why}


def test_nothing_is_stale_where_nothing_has_changed(study):
    assert judged() == {}


def test_a_changed_input_is_named_and_what_follows_is_stale_too(study):
    Path("problems.jsonl").write_text("others")
    assert judged() == {
        "base": ["input problems.jsonl has changed"],
        "train": ["made from results/base, which is out of date"],
        "evaluate": ["made from results/train, which is out of date"],
    }


def test_an_input_that_is_gone_is_named(study):
    Path("results/train/w").unlink()
    assert judged() == {"evaluate": ["input results/train/w is not here"]}


def test_a_changed_parameter_is_named_with_both_values(study):
    now = {**SETTINGS, "train": {"rate": 0.2, "deep": {"a": 1, "b": [1, 2]}, "new": True}}
    found = judged(now)
    assert found["train"] == [
        "parameter new was (absent), is True",
        "parameter rate was 0.1, is 0.2",
    ]
    assert set(found) == {"train", "evaluate"}


def test_changed_code_makes_stale_what_loaded_it(study):
    Path("src/geosd/loop.py").write_text("another loop")
    assert judged()["train"] == ["code geosd/loop.py has changed"]
    assert "base" not in judged()


def test_what_the_study_does_not_make_any_more_is_said(study):
    found = stale(Path("results"), Path("src"), lambda folder: None)
    assert all("the study does not make it any more" in why for why in found.values())


def test_a_manifest_lists_the_loaded_files_of_the_package_and_nothing_else():
    code = "import json, geosd.config; from geosd.provenance.manifest import code_files;"
    code += "print(json.dumps(code_files()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    files = json.loads(done.stdout)
    assert {"geosd/__init__.py", "geosd/provenance/manifest.py"} <= set(files)
    assert not any("config" in name for name in files)
    assert files["geosd/provenance/manifest.py"] == made.sha256(made.__file__)


def test_a_file_that_was_edited_while_the_step_ran_is_not_vouched_for(monkeypatch):
    changed = os.stat(made.__file__).st_mtime
    monkeypatch.setattr(made, "_BEGAN", changed - 1)
    assert made.code_files()["geosd/provenance/manifest.py"] is None
    monkeypatch.setattr(made, "_BEGAN", time.time())
    assert made.code_files()["geosd/provenance/manifest.py"]


def test_a_manifest_says_which_node_and_gpus_a_job_ran_on(monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    told = made.device()
    assert (told["node"], told["job"], told["visible"]) == ("n7", "42", "0,3")
