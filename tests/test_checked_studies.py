"""The own params.yaml is checked once, and again where anything that a check reads is another."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import checked_studies
import pytest


class Checks:
    """A check that finds what it is told to, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.mistakes: list[str] = []

    def __call__(self, params, source) -> list[str]:
        self.calls += 1
        return self.mistakes


@pytest.fixture
def source(root, tmp_path, monkeypatch):
    """A copy of the own file with a base model, in the working directory."""
    shutil.copy(root / "params.yaml", tmp_path)
    shutil.copytree(root / "base_models/mini-qwen3/0", tmp_path / "base_models/mini-qwen3/0")
    shutil.copy(root / "base_models/SHA256SUMS", tmp_path / "base_models")
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(file=tmp_path / "params.yaml")


def test_the_same_content_is_checked_once(source):
    checks = Checks()
    once = checked_studies.once(checks)
    assert once(None, source) == once(None, source) == []
    assert checks.calls == 1


@pytest.mark.parametrize("edited", ["params.yaml", "base_models/SHA256SUMS", "config.json"])
def test_another_content_is_checked_again(source, edited):
    checks = Checks()
    once = checked_studies.once(checks)
    once(None, source)
    (file,) = source.file.parent.rglob(edited)
    file.write_text(file.read_text() + "\n")
    checks.mistakes = ["wrong"]
    assert once(None, source) == ["wrong"]
    assert checks.calls == 2


def test_what_is_wrong_is_checked_again(source):
    checks = Checks()
    checks.mistakes = ["wrong"]
    once = checked_studies.once(checks)
    assert once(None, source) == once(None, source) == ["wrong"]
    assert checks.calls == 2
