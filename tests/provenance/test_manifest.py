"""A manifest names the inputs, settings and code of a step; without git it names no commit."""

from __future__ import annotations

import hashlib
import json
import subprocess

import pytest
from cases import python

from geosd.files import sha256
from geosd.provenance import code as code_module
from geosd.provenance import manifest as manifest_module


def test_manifest_is_plain_json_with_the_hashes_of_its_inputs(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"geosd")
    manifest = manifest_module.manifest("analyse", [file], {"samples": 16}, 1.23456)
    assert json.loads(json.dumps(manifest)) == manifest
    assert manifest["inputs"][str(file)] == hashlib.sha256(b"geosd").hexdigest()
    assert manifest["settings"] == {"samples": 16}
    assert manifest["wall_s"] == 1.235
    assert manifest["packages"]["python"].startswith("3.")
    assert manifest["peak_memory_bytes"]["host"] > 1_000_000


def test_folder_hash_changes_with_content_and_with_names(tmp_path):
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "w.bin"
    file.write_bytes(b"1")
    first = sha256(tmp_path)
    assert sha256(tmp_path) == first
    file.write_bytes(b"2")
    second = sha256(tmp_path)
    file.rename(tmp_path / "sub" / "v.bin")
    assert len({first, second, sha256(tmp_path)}) == 3


def test_a_missing_input_is_named_with_a_hint(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)absent.*Hint:"):
        manifest_module.manifest("analyse", [tmp_path / "absent"], {}, 0)


def test_absent_git_is_tolerated(monkeypatch):
    def no_git(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", no_git)
    assert code_module.code_version("analyse", {})["commit"] is None
    assert code_module.code_version("analyse", {})["dirty"] is None


def test_manifest_does_not_import_torch():
    code = "import sys; from geosd.provenance.manifest import manifest;"
    code += "manifest('analyse', [], {}, 0); sys.exit('torch' in sys.modules)"
    assert python("-c", code).returncode == 0
