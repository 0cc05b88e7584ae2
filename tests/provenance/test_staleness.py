"""Results of changed inputs, settings or code are stale, and so are results made from those."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from geosd.files import sha256
from geosd.provenance import code as code_module
from geosd.provenance import manifest as manifest_module
from geosd.provenance.code import code_digest, code_of
from geosd.provenance.manifest import DamagedManifestError, read_manifest, write_manifest
from geosd.provenance.staleness import Current, accept_staleness, stale_results

SETTINGS = {"base": {"steps": 7}, "train": {"rate": 0.1, "deep": {"a": 1, "b": [1, 2]}}}
CODE = {"train": {"geosd/loop.py": "as it was"}}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """problems -> base -> train -> evaluate, each with a manifest."""
    monkeypatch.chdir(tmp_path)
    Path("problems.jsonl").write_text("problems")
    inputs = {"base": "problems.jsonl", "train": "results/base/w", "evaluate": "results/train/w"}
    for step, name in inputs.items():
        folder = Path("results") / step
        folder.mkdir(parents=True)
        (folder / "w").write_text(f"weights of {step}")
        written = {"w": sha256(folder / "w")}
        manifest = manifest_module.manifest(
            "analyse", [Path(name)], SETTINGS.get(step, {}), 1.0, written
        )
        manifest["code"]["files"] = CODE.get(step, {})
        write_manifest(folder / "manifest.json", manifest)
    return tmp_path


def stale_reasons(settings=SETTINGS, code=CODE, former=None) -> dict[str, list[str]]:
    now = {
        Path("results") / step: Current(settings.get(step, {}), code.get(step, {}), former)
        for step in ("base", "train", "evaluate", "absent")
    }
    return {folder.name: why for folder, why in stale_results(now).items() if why}


def test_nothing_is_stale_where_nothing_has_changed(study):
    assert stale_reasons() == {}


def test_a_changed_input_is_named_and_what_follows_is_stale_too(study):
    Path("problems.jsonl").write_text("others")
    assert stale_reasons() == {
        "base": ["input problems.jsonl has changed"],
        "train": ["made from results/base, which is out of date"],
        "evaluate": ["made from results/train, which is out of date"],
    }


def test_an_input_that_is_gone_is_named(study):
    Path("results/train/w").unlink()
    assert stale_reasons() == {
        "train": ["output results/train/w is not here"],
        "evaluate": [
            "input results/train/w is not here",
            "made from results/train, which is out of date",
        ],
    }


def test_a_result_that_was_edited_is_named(study):
    Path("results/evaluate/w").write_text("other weights")
    assert stale_reasons() == {"evaluate": ["output results/evaluate/w has changed"]}


def test_a_changed_parameter_is_named_with_both_values(study):
    now = {**SETTINGS, "train": {"rate": 0.2, "deep": {"a": 1, "b": [1, 2]}, "new": True}}
    reasons = stale_reasons(now)
    assert reasons["train"] == [
        "parameter new was (absent), is True",
        "parameter rate was 0.1, is 0.2",
    ]
    assert set(reasons) == {"train", "evaluate"}


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ({"geosd/loop.py": "another"}, "code geosd/loop.py has changed"),
        ({}, "code geosd/loop.py is not part of the step any more"),
        ({**CODE["train"], "geosd/new.py": "0"}, "code geosd/new.py was not part of the step"),
    ],
)
def test_changed_code_makes_stale_what_is_made_by_it(study, now, reason):
    reasons = stale_reasons(code={"train": now})
    assert reasons["train"] == [reason]
    assert "base" not in reasons


def test_a_result_that_has_moved_says_which_settings_it_had(study):
    reasons = stale_reasons({**SETTINGS, "absent": {"steps": 8}}, former=Path("results/base"))
    assert reasons == {
        "absent": [
            "not made yet; results/base follows from other settings",
            "parameter steps was 7, is 8",
        ]
    }
    assert stale_reasons({**SETTINGS, "absent": {"steps": 8}}) == {}  # it was never made


def test_accepted_code_is_current_until_the_next_edit_and_the_manifest_says_both(study):
    folder, edited = Path("results/train"), {"geosd/loop.py": "edited", "geosd/new.py": "0"}
    manifest = read_manifest(folder)
    made_by = dict(manifest["code"])
    assert accept_staleness(manifest, edited, "2026-01-02")
    assert not accept_staleness(manifest, edited, "2026-01-03")
    write_manifest(folder / "manifest.json", manifest)
    assert stale_reasons(code={"train": edited}) == {}
    manifest = read_manifest(folder)
    assert manifest["code"] == made_by
    assert manifest["accepted"] == [
        {
            "date": "2026-01-02",
            "before": code_digest(CODE["train"]),
            "after": code_digest(edited),
            "files": {
                "geosd/loop.py": ["as it was", "edited"],
                "geosd/new.py": ["(absent)", "0"],
            },
        }
    ]
    again = {"geosd/loop.py": "edited"}
    assert stale_reasons(code={"train": again})["train"] == [
        "code geosd/new.py is not part of the step any more"
    ]
    assert accept_staleness(manifest, again, "2026-01-04")
    write_manifest(folder / "manifest.json", manifest)
    assert stale_reasons(code={"train": again}) == {}


def test_a_manifest_of_hashes_of_bytes_is_stale_and_not_to_be_accepted(study):
    manifest = read_manifest(Path("results/train"))
    del manifest["code"]["digest"]
    write_manifest(Path("results/train/manifest.json"), manifest)
    assert stale_reasons()["train"] == [
        "its manifest does not say what the code meant that made it"
    ]
    assert not accept_staleness(manifest, CODE["train"], "2026-01-02")


def test_a_manifest_lists_the_code_of_its_step():
    files = code_module.code_hashes("analyse", {})
    assert files == code_of("analyse")
    assert {"geosd/__init__.py", "geosd/provenance/manifest.py"} <= set(files)
    assert not any("config" in name for name in files)


def test_a_file_that_was_edited_while_the_step_ran_is_not_vouched_for(monkeypatch):
    changed = os.stat(manifest_module.__file__).st_mtime
    monkeypatch.setattr(code_module, "_BEGAN", changed - 1)
    assert code_module.code_hashes("analyse", {})["geosd/provenance/manifest.py"] is None
    monkeypatch.setattr(code_module, "_BEGAN", time.time())
    assert code_module.code_hashes("analyse", {})["geosd/provenance/manifest.py"]


def test_code_dated_in_the_future_keeps_its_hash_unless_it_is_edited(monkeypatch):
    name = "geosd/provenance/manifest.py"
    changed = os.stat(manifest_module.__file__).st_mtime
    monkeypatch.setattr(code_module.time, "time", lambda: changed - 60)
    monkeypatch.setattr(code_module, "_BEGAN", changed - 120)
    begun_with = code_module.code_hashes("analyse", {})
    assert begun_with[name] == code_of("analyse")[name]
    monkeypatch.undo()  # an hour later the date is past
    assert code_module.code_version("analyse", {}, begun_with)["files"] == begun_with
    begun_with[name] = "0" * 64  # what it was before an edit
    assert code_module.code_version("analyse", {}, begun_with)["files"][name] is None


def test_a_manifest_says_which_node_and_gpus_a_job_ran_on(monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    device = manifest_module.manifest_device()
    assert (device["node"], device["job"], device["visible"]) == ("n7", "42", "0,3")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"code": 1}', "\udcff"])
def test_a_damaged_manifest_is_named_and_the_others_are_judged(study, content):
    path = Path("results/base/manifest.json")
    path.write_text(content, errors="surrogateescape")
    Path("results/train/w").unlink()
    reasons = stale_reasons()
    assert reasons["base"][0].startswith(f"{path} is no whole manifest: ")
    assert "input results/train/w is not here" in reasons["evaluate"]
    with pytest.raises(DamagedManifestError, match=r"(?s)results/base/manifest.json.*\nHint: "):
        read_manifest(path.parent)


def test_results_that_share_a_folder_have_a_manifest_each(study):
    """table -> claims, both in one folder, beside a third that has changed."""
    shared = Path("figures")
    shared.mkdir()
    results = {}
    for name, source in {
        "table": "results/base/w",
        "claims": "figures/table",
        "other": "gone",
    }.items():
        (shared / name).write_text(name)
        made = manifest_module.manifest("analyse", [], {}, 1.0, {name: sha256(shared / name)})
        made["inputs"] = {source: sha256(source) if Path(source).exists() else "0"}
        made["code"]["files"] = {}
        write_manifest(shared / f"{name}.manifest.json", made)
        results[shared / f"{name}.manifest.json"] = Current({}, {})
    assert [bool(why) for why in stale_results(results).values()] == [False, False, True]
    (shared / "table").write_text("edited")
    reasons = {result.name: why for result, why in stale_results(results).items()}
    assert reasons["table.manifest.json"] == ["output figures/table has changed"]
    assert reasons["claims.manifest.json"] == [
        "input figures/table has changed",
        "made from figures/table.manifest.json, which is out of date",
    ]
