"""Targets of the Makefile that name targets of Snakemake: the two do not mix with --config."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest


@pytest.mark.parametrize(
    ("target", "rules"), [("figures", {"tables", "figures"}), ("ship", {"ship"})]
)
def test_a_target_hands_snakemake_its_rules(root, fresh, target, rules):
    printed = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/installed", target],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (line,) = (
        line for line in printed.splitlines() if f"-- {target}" in line or "-- tables" in line
    )
    _, *arguments = shlex.split(line)
    planned = fresh.snakemake("--dry-run", *arguments)
    jobs = {line.split()[0] for line in planned.splitlines() if line.split()[1:] == ["1"]}
    assert rules <= jobs


@pytest.fixture
def clone(root, tmp_path):
    """The Makefile beside a .venv whose programs do what a test says."""
    (tmp_path / "my clone").mkdir()
    folder = tmp_path / "my clone"
    for name in ("Makefile", "dvc.yaml"):
        (folder / name).write_text((root / name).read_text())
    for name in ("envs/laptop.txt", ".venv/installed"):
        (folder / name).parent.mkdir()
        (folder / name).touch()

    def make(*arguments: str, python="", dvc="", snakemake="", **environment: str) -> str:
        programs = {"python": python, "dvc": dvc, "snakemake": snakemake}
        for name, does in programs.items():
            program = folder / ".venv/bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{does}\n")
            program.chmod(0o755)
        done = subprocess.run(
            ["make", "--silent", "--old-file=.venv/installed", *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    make.folder = folder
    return make


@pytest.mark.parametrize("given", ["", "/a b:/c;d", "$(touch pwned)'\""])
def test_a_path_of_python_with_any_character_reaches_snakemake_whole(clone, given):
    printed = clone("plan", snakemake='printf %s "$PYTHONPATH"', PYTHONPATH=given)
    assert printed.strip() == ":".join(filter(None, ["workflow/logger", given]))
    assert not (clone.folder / "pwned").exists()


def test_where_dvc_cannot_note_a_run_its_reason_is_the_last_line(clone):
    reason = "failed to commit dvc.yaml - '/x/results/data' is outside of git repository '/x'"
    printed = clone("dvc.lock", dvc=f'echo noise; echo "ERROR: {reason}" >&2; exit 255')
    last = f"DVC does not know of this run, and dvc.lock is as it was: {reason}"
    assert printed.splitlines() == [last]
    assert not (clone.folder / "dvc.lock").exists()
    assert clone("dvc.lock", dvc="echo noise") == "" and (clone.folder / "dvc.lock").exists()
