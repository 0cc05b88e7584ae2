"""The container's definition, as far as a machine without Apptainer can hold it to the project."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest


@pytest.fixture(scope="module")
def sections(root):
    text = (root / "envs/geosd.def").read_text()
    parts = re.split(r"^%(\w+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_file_that_is_copied_exists_and_the_build_finds_what_pyproject_names(root, sections):
    copied = [line.split()[0] for line in sections["files"].splitlines() if line.strip()]
    assert all((root / name).exists() for name in copied)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    needed = {project["readme"], *project["license-files"], "src", "envs/gpu.txt"}
    assert all({name, name.partition("/")[0]} & {*copied} for name in needed)


def test_its_commands_are_those_of_the_installation(root, sections):
    script = (root / "envs/install.sh").read_text()
    for options in (
        "--no-deps --require-hashes --requirement envs/gpu.txt",
        "--no-deps --no-build-isolation",
    ):
        assert options in script and options in sections["post"]


@pytest.mark.parametrize("section", ["post", "environment", "test"])
def test_its_scripts_are_shell(sections, section):
    subprocess.run(["sh", "-n"], input=sections[section], text=True, check=True)
