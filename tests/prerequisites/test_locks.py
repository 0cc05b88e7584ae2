"""The locks of envs/ agree with pyproject.toml, one another, and what their packages need."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from geosd.prerequisites.checks import installed_versions_to_check, locked_versions_to_check

EXTRAS = ("reproduce", "math", "vllm")


@pytest.fixture(scope="module")
def gpu(root):
    return locked_versions_to_check(root / "envs/gpu.txt")


@pytest.fixture(scope="module")
def overrides(root):
    lines = (root / "envs/gpu-overrides.txt").read_text().splitlines()
    return {Requirement(line).name: Requirement(line) for line in lines if line[:1] not in "#"}


def declared(root, extras):
    """The requirements of pyproject.toml's extras, those within extras too."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    left, found = [*extras], [Requirement(text) for text in project["dependencies"]]
    while left:
        for text in project["optional-dependencies"][left.pop()]:
            requirement = Requirement(text)
            left += requirement.extras if requirement.name == "geosd" else ()
            found += [] if requirement.name == "geosd" else [requirement]
    return found


def test_every_requirement_of_a_gpu_node_is_pinned_and_every_pin_satisfies_it(root, gpu):
    for requirement in declared(root, EXTRAS):
        assert requirement.specifier.contains(gpu[canonicalize_name(requirement.name)]), requirement


LOCKS = ("crate", "gguf", "gpu", "laptop", "lora", "smollm2", "trl", "verl", "vllm")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_each_package_once_and_each_file_by_its_hash(root, name):
    lock = root / f"envs/{name}.txt"
    lines = lock.read_text().splitlines()
    pins = [number for number, line in enumerate(lines) if "==" in line and line[0] != "#"]
    assert len(pins) == len(locked_versions_to_check(lock))
    for number in pins:
        assert lines[number].endswith("\\") and "--hash=sha256:" in lines[number + 1], lines[number]


def test_every_lock_is_tested(root):
    names = {path.stem for path in (root / "envs").glob("*.txt")}
    assert names == {*LOCKS, "gpu-overrides"}


def test_each_package_that_pyproject_names_is_pinned_for_a_laptop_and_so_is_what_builds(root):
    laptop = locked_versions_to_check(root / "envs/laptop.txt")
    for requirement in declared(root, ("test",)):
        assert requirement.specifier.contains(laptop[canonicalize_name(requirement.name)]), (
            requirement
        )
    assert {"setuptools", "pip"} <= laptop.keys()
    for extra in ("gguf", "smollm2", "lora"):
        pins = laptop | locked_versions_to_check(root / f"envs/{extra}.txt")
        for requirement in declared(root, (extra,)):
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)])


def test_pip_installs_no_lock_without_hashes(root):
    """torch alone: its build is whatever the index offers."""
    text = "".join((root / name).read_text() for name in ("dev.mk", "envs/install.sh"))
    named = re.findall(r'^.*(?: -r|--requirement) "?(?:envs|\.venv-newest)/\S+\.txt"?$', text, re.M)
    assert len(named) == 9
    assert all("--require-hashes" in line for line in named), named


def test_no_lock_names_where_packages_come_from(root):
    for lock in (root / "envs").glob("*.txt"):
        assert "://" not in lock.read_text() and "index-url" not in lock.read_text(), lock


def test_both_locks_have_one_version_of_each_package_but_for_the_overrides(root, gpu, overrides):
    laptop = locked_versions_to_check(root / "envs/laptop.txt")
    differing = {name for name in laptop.keys() & gpu.keys() if laptop[name] != gpu[name]}
    assert differing == {*overrides, "setuptools"}  # of setuptools vLLM takes none so new


def test_the_lock_holds_what_its_packages_need_of_one_another(gpu, overrides):
    """As far as they are installed here, at the same version: their metadata say what they need."""
    installed = installed_versions_to_check()
    same = [name for name in gpu if name in installed and installed[name] == gpu[name]]
    assert len(same) > 100
    for name in same:
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            needed = canonicalize_name(requirement.name)
            allowed = overrides.get(needed, requirement).specifier
            assert allowed.contains(Version(gpu[needed]), prereleases=True), (name, text)


def test_verl_is_tested_under_a_transformers_that_it_allows(root):
    """Not under that of the laptop, which its own metadata refuse."""
    verl = locked_versions_to_check(root / "envs/verl.txt")
    laptop = locked_versions_to_check(root / "envs/laptop.txt")
    assert Version(verl["transformers"]) < Version(laptop["transformers"])
    assert {"tokenizers", "huggingface-hub"} <= verl.keys()


def test_each_column_of_ci_is_one_that_its_program_knows(root):
    text = (root / ".github/workflows/ci.yml").read_text()
    (columns,) = re.findall(r"versions: \[(.+)\]", text)
    assert columns.split(", ") == ["locked", "newest", "verl"]
    assert ".ci/run ${{ matrix.versions }}" in text
    makefile = (root / "dev.mk").read_text()
    for column in ("newest", "verl"):
        assert f"\ntest-{column}: .venv-{column}/installed" in makefile


def test_the_newest_versions_are_laid_over_the_lock_without_its_torch(root):
    """pip would download half a GB, and replace it with the newest torch."""
    makefile = (root / "dev.mk").read_text()
    (cut,) = re.findall(r"^\t(sed .+) > \.venv-newest/locked\.txt$", makefile, re.M)
    command = cut.replace("$$", "$")  # make's way to write one
    left = subprocess.check_output(command, shell=True, cwd=root, text=True)
    entries = re.split(r"^(?=[a-z])", (root / "envs/laptop.txt").read_text(), flags=re.M)
    others = [entry for entry in entries if not entry.startswith("torch==")]
    assert len(others) == len(entries) - 1
    assert left == "".join(others)


def test_another_column_is_refused_before_anything_is_installed(root):
    refused = subprocess.run([root / ".ci/run", "oldest"], capture_output=True, text=True)
    assert refused.returncode == 2 and not refused.stdout
    assert "oldest is no column of CI; allowed are locked, newest and verl." in refused.stderr
