"""Targets of the Makefile that name targets of Snakemake: the two do not mix with --config."""

from __future__ import annotations

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
