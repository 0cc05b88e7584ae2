"""A file is proven by the manifest of the step that made it, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from geosd.files import sha256
from geosd.provenance.manifest import DamagedManifestError, manifest, read_manifest, write_manifest
from geosd.provenance.proof import UnprovenFileError, prove, prove_checkpoint, prove_run

NAMES = ("config.json", "model.safetensors", "tokenizer.json", "snapshots/step_2.safetensors")


@pytest.fixture
def run(tmp_path) -> Path:
    """A run of four files with its manifest."""
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}")
    listed = {name: sha256(tmp_path / name) for name in NAMES}
    content = manifest("train", [], {"objective": "geosd", "source": "search"}, 1.0, listed)
    write_manifest(tmp_path / "manifest.json", content)
    return tmp_path


def test_what_a_step_wrote_is_proven_and_its_hash_returned(run):
    files = [run / name for name in NAMES]
    assert prove(files) == {file: sha256(file) for file in files}
    weights = run / "model.safetensors"
    assert prove_checkpoint(run) == {weights: sha256(weights)}


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_file_is_named_with_its_manifest(run, name):
    (run / name).write_text(f"Content of {name}")
    with pytest.raises(UnprovenFileError, match=f"^{run / name}: .*manifest.json expects.*\nHint:"):
        prove([run / name])
    if "/" not in name:
        with pytest.raises(UnprovenFileError, match=f"^{run / name}: "):
            prove_checkpoint(run)


def test_a_checkpoint_has_all_files_that_were_written_and_no_others_that_are_loaded(run):
    (run / "notes.txt").write_text("nobody loads it")
    assert prove_checkpoint(run)
    (run / "added_tokens.json").write_text("{}")
    with pytest.raises(UnprovenFileError, match="added_tokens.json: .*does not list it"):
        prove_checkpoint(run)
    (run / "added_tokens.json").unlink()
    (run / "config.json").unlink()
    with pytest.raises(UnprovenFileError, match="config.json: .*it is missing"):
        prove_checkpoint(run)


def test_a_file_that_no_step_made_is_taken_as_it_is(tmp_path):
    own = tmp_path / "own.jsonl"
    own.write_text("{}")
    assert prove([own]) == {own: sha256(own)}


def test_a_manifest_of_its_own_goes_before_that_of_the_folder(run):
    file = run / "claims.csv"
    file.write_text("claim")
    content = manifest("claims", [], {}, 1.0, {"claims.csv": sha256(file)})
    write_manifest(run / "claims.manifest.json", content)
    assert prove([file])
    file.write_text("other")
    with pytest.raises(UnprovenFileError, match="claims.manifest.json expects"):
        prove([file])


@pytest.mark.parametrize("change", ['"wall_s": 1.0', '"source": "search"', '"outputs": {'])
def test_an_edited_manifest_is_refused(run, change):
    path = run / "manifest.json"
    text = path.read_text()
    assert text.count(change) == 1
    edited = {'"wall_s": 1.0': '"wall_s": 2.0', '"source": "search"': '"source": "jsonl"'}
    path.write_text(text.replace(change, edited.get(change, '"outputs": {"a": "0",')))
    with pytest.raises(DamagedManifestError, match=f"^{path} is no whole manifest: .*changed"):
        read_manifest(run)


def test_samples_of_another_run_are_refused(run):
    samples = run / "samples"
    samples.mkdir()
    weights, key = run / "model.safetensors", {"model": "m", "seed": 1, "draw": 0}

    def write_samples_manifest(inputs, **of_run):
        write_manifest(
            samples / "manifest.json", {**manifest("evaluate", inputs, SETTINGS, 1.0), **of_run}
        )

    write_samples_manifest([weights], **key)
    prove_run(samples, weights, **key)
    write_samples_manifest([weights], **(key | {"seed": 2}))
    with pytest.raises(UnprovenFileError, match="was made for seed 2; expected .*seed 1"):
        prove_run(samples, weights, **key)
    write_samples_manifest({weights: "0" * 64}, **key)
    with pytest.raises(UnprovenFileError, match="was made from other weights"):
        prove_run(samples, weights, **key)
    write_samples_manifest([run / "config.json"], **key)
    with pytest.raises(UnprovenFileError, match="was not made from .*model.safetensors"):
        prove_run(samples, weights, **key)
    assert json.loads((samples / "manifest.json").read_text())["seed"] == 1


SETTINGS = {"source": "search"}
