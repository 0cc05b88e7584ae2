"""A study is checked once, and again where anything that its check reads is another."""

from __future__ import annotations

import copy
import shutil
from types import SimpleNamespace

import checked_studies
import pytest

VALUES = {
    "protocol": {"training": {"steps": 3}},
    "models": {"tiny": {}},
    "variants": {"geosd": {"training": {"top_k": 4}}},
    "resources": {},
    "studies": {
        "parent": {"seeds": [0]},
        "child": {"extends": "parent", "seeds": [1]},
        "other": {"seeds": [2]},
    },
}


class Checks:
    """A check that finds what it is told to, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.mistakes: list[str] = []

    def __call__(self, params, name, source) -> list[str]:
        self.calls += 1
        return self.mistakes


@pytest.fixture
def base_models(root, tmp_path, monkeypatch):
    """A base model in the working directory."""
    shutil.copytree(root / "base_models/mini-qwen3/0", tmp_path / "base_models/mini-qwen3/0")
    shutil.copy(root / "base_models/SHA256SUMS", tmp_path / "base_models")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "base_models"


def read(**changes):
    """A file that has been read anew, with other values below the sections that are named."""
    values = copy.deepcopy(VALUES)
    for section, below in changes.items():
        values[section] |= below
    return SimpleNamespace(values=values)


def test_the_same_values_are_checked_once(base_models):
    checks = Checks()
    once = checked_studies.once(checks)
    assert once(None, "child", read()) == once(None, "child", read()) == []
    assert checks.calls == 1
    once(None, "parent", read())
    assert checks.calls == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": {"training": {"steps": 4}}},
        {"models": {"tiny": {"base": {}}}},
        {"variants": {"geosd": {"training": {"top_k": 5}}}},
        {"resources": {"tiny": {}}},
        {"studies": {"child": {"extends": "parent", "seeds": [3]}}},
        {"studies": {"parent": {"seeds": [3]}}},
    ],
)
def test_what_a_check_reads_is_checked_again(base_models, changes):
    checks = Checks()
    once = checked_studies.once(checks)
    once(None, "child", read())
    checks.mistakes = ["wrong"]
    assert once(None, "child", read(**changes)) == ["wrong"]


def test_another_study_changes_nothing(base_models):
    checks = Checks()
    once = checked_studies.once(checks)
    once(None, "child", read())
    once(None, "child", read(studies={"other": {"seeds": [3]}}))
    assert checks.calls == 1


@pytest.mark.parametrize("edited", ["SHA256SUMS", "config.json"])
def test_other_base_models_are_checked_again(base_models, edited):
    checks = Checks()
    once = checked_studies.once(checks)
    once(None, "child", read())
    (file,) = base_models.rglob(edited)
    file.write_text(file.read_text() + "\n")
    checks.mistakes = ["wrong"]
    assert once(None, "child", read()) == ["wrong"]


def test_a_study_of_files_of_its_own_is_checked_again(base_models):
    checks = Checks()
    once = checked_studies.once(checks)
    studies = {"child": {"extends": "parent", "data": {"source": "jsonl", "raw": "own.jsonl"}}}
    once(None, "child", read(studies=studies))
    checks.mistakes = ["wrong"]
    assert once(None, "child", read(studies=studies)) == ["wrong"]


def test_what_is_wrong_is_checked_again(base_models):
    checks = Checks()
    checks.mistakes = ["wrong"]
    once = checked_studies.once(checks)
    assert once(None, "child", read()) == once(None, "child", read()) == ["wrong"]
    assert checks.calls == 2
