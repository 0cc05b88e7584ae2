"""What `geosd run` and its like hand to Snakemake and DVC, and what they do around them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from geosd.cli import run


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A folder in which Python is a program that does what a test says."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))

    def does(text: str) -> None:
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    does('echo "$@" >> words')
    return does


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        (run.figures, {"tables", "figures"}),
        (run.report, {"front_page"}),
    ],
)
def test_a_command_hands_snakemake_its_rules(fresh, stand_in, tmp_path, monkeypatch, call, rules):
    monkeypatch.setattr(run, "write_provenance", lambda study: None)
    call("quick")
    _, _, *arguments = shlex.split((tmp_path / "words").read_text())
    planned = fresh.snakemake("--dry-run", *arguments)
    jobs = {line.split()[0] for line in planned.splitlines() if line.split()[1:] == ["1"]}
    assert rules <= jobs


def test_make_ship_hands_snakemake_its_rule(root):
    command = [
        "make",
        "--no-print-directory",
        "--dry-run",
        "--old-file=.venv/installed",
        "ship",
        "STUDY=small",
    ]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[0].endswith("--config study=small -- ship")


def test_a_shipped_study_without_results_is_redrawn(stand_in, tmp_path, monkeypatch):
    redrawn = []
    monkeypatch.setattr(run, "redraw", redrawn.append)
    (tmp_path / "figures/quick").mkdir(parents=True)
    (tmp_path / "figures/quick/shipped.json").touch()
    run.figures("quick")
    assert redrawn == ["quick"] and not (tmp_path / "words").exists()


@pytest.mark.parametrize("given", ["", "/a b:/c;d", "$(touch pwned)'\""])
def test_a_path_of_python_with_any_character_reaches_snakemake_whole(
    stand_in, tmp_path, monkeypatch, given
):
    stand_in('printf %s "$PYTHONPATH" > path')
    monkeypatch.setenv("PYTHONPATH", given)
    run.snakemake("quick", "--dry-run")
    assert (tmp_path / "path").read_text() == ":".join(filter(None, ["workflow/logger", given]))


def test_an_error_of_snakemake_is_the_status_and_nothing_follows(stand_in, tmp_path):
    stand_in('echo "$@" >> words; exit 3')
    with pytest.raises(SystemExit) as ended:
        run.main("quick")
    assert ended.value.code == 3
    assert len((tmp_path / "words").read_text().splitlines()) == 1


def test_the_report_appears_only_where_snakemake_succeeds(stand_in, tmp_path):
    writes = 'while [ "$1" != --report ]; do shift; done\necho whole > "$2"\nexit'
    page = tmp_path / "results/quick/provenance.html"
    page.parent.mkdir(parents=True)
    stand_in(f"{writes} 3")
    with pytest.raises(SystemExit):
        run.write_provenance("quick")
    assert not page.exists()
    stand_in(f"{writes} 0")
    run.write_provenance("quick")
    assert page.read_text() == "whole\n"
    stand_in("exit 3")  # it is current
    run.write_provenance("quick")
    (tmp_path / "figures/quick").mkdir(parents=True)
    table = tmp_path / "figures/quick/table_main.md"
    table.touch()
    os.utime(table, (page.stat().st_mtime + 1,) * 2)
    with pytest.raises(SystemExit):
        run.write_provenance("quick")


def test_where_dvc_cannot_note_a_run_its_reason_is_the_last_line(stand_in, tmp_path, capsys):
    Path("dvc.yaml").touch()
    reason = "failed to commit dvc.yaml - '/x/results/data' is outside of git repository '/x'"
    stand_in(f'[ "$2" != dvc ] || {{ echo noise; echo "ERROR: {reason}" >&2; exit 255; }}')
    run.note_in_dvc()
    last = f"DVC does not know of this run, and dvc.lock is as it was: {reason}"
    assert capsys.readouterr().out.splitlines() == [last]
    assert not Path("dvc.lock").exists()
    stand_in("echo noise")
    run.note_in_dvc()
    assert capsys.readouterr().out == "" and Path("dvc.lock").exists()
