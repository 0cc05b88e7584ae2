"""Hashes of a checkpoint's folder: what they are of, and when a file is read again."""

from __future__ import annotations

import json
import os

import pytest

from geosd.files import sha256
from geosd.provenance import checkpoint_files
from geosd.provenance.checkpoint_files import HASHES, SETTLED, hashes_of_checkpoint


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A checkpoint that nobody has written to for a minute."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("model.safetensors", "config.json", "chat_template.jinja", "README.md", "x.bin"):
        (folder / name).write_text(name)
        age(folder / name)
    return folder


def age(path, seconds=60.0) -> None:
    now = checkpoint_files.time.time()
    os.utime(path, (now - seconds, now - seconds))


@pytest.fixture
def read(monkeypatch):
    """Names of the files that were hashed."""
    names = []
    monkeypatch.setattr(
        checkpoint_files, "sha256", lambda path: names.append(path.name) or sha256(path)
    )
    return names


def test_they_are_of_the_files_that_a_program_may_load(folder):
    names = ("chat_template.jinja", "config.json", "model.safetensors")
    assert hashes_of_checkpoint(folder) == {name: sha256(folder / name) for name in names}
    assert hashes_of_checkpoint(folder / "absent") == {}


def test_a_file_is_read_again_where_it_was_changed_and_only_there(folder, read):
    before = hashes_of_checkpoint(folder)
    read.clear()
    assert hashes_of_checkpoint(folder) == before and read == []
    (folder / "model.safetensors").write_text("trained  further")  # as long as before
    age(folder / "model.safetensors", 30)
    after = hashes_of_checkpoint(folder)
    assert read == ["model.safetensors"]
    assert {name for name in after if after[name] != before[name]} == {"model.safetensors"}
    age(folder / "config.json", 10)  # touched
    assert hashes_of_checkpoint(folder) == after
    assert read == ["model.safetensors", "config.json"]


def test_a_copy_in_another_place_has_the_same_hashes(folder):
    before = hashes_of_checkpoint(folder)
    assert hashes_of_checkpoint(folder.rename(folder.with_name("moved"))) == before


def test_the_hash_of_a_file_that_has_just_changed_is_not_kept(folder, read):
    age(folder / "config.json", SETTLED / 10)
    for _ in range(2):
        hashes_of_checkpoint(folder)
    assert read.count("config.json") == 2 and read.count("model.safetensors") == 1


@pytest.mark.parametrize("content", ["", "[1]", '{"x": 1}', "\0"])
def test_kept_hashes_that_are_damaged_are_taken_anew(folder, content):
    before = hashes_of_checkpoint(folder)
    HASHES.write_text(content)
    assert hashes_of_checkpoint(folder) == before
    assert len(json.loads(HASHES.read_text())) >= len(before)
