"""The page on the code, packages and machines behind the numbers."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace

import pytest

from geosd.cli import pages
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFoldersRow, write_run_folders
from geosd.provenance.manifest import DamagedManifestError, manifest, write_manifest
from geosd.reporting.environment_page import (
    EnvironmentStep,
    environment_markdown,
    environment_summary,
)


def ran(step="train", **changed):
    fields = {
        "code": {"version": "0.1.0", "commit": "a" * 40, "dirty": False},
        "packages": {"torch": "2.13.0"},
        "device": {"platform": "Linux", "cpus": 8, "accelerators": ["H100", "H100"], "threads": 1},
        "date": "2026-11-25",
        "wall_s": 100.0,
        "peak_memory_bytes": {"host": 2**30, "device": 2**34},
    }
    return EnvironmentStep(step, {**fields, **changed})


def row(text: str, *cells: str) -> bool:
    """Whether a line of a table has exactly these cells."""
    return any(
        [c.strip() for c in line.strip("|").split("|")] == [*cells] for line in text.split("\n")
    )


def test_runs_of_a_step_add_their_time_and_show_the_largest_memory():
    edited = {"version": "0.1.0", "commit": "b" * 40, "dirty": True}
    bigger = {"host": 3 * 2**30, "device": 2**33}
    later = ran(code=edited, peak_memory_bytes=bigger, date="2026-11-26")
    text = environment_markdown([ran(), later], {}, "quick")
    both, day = "aaaaaaaaaa, bbbbbbbbbb+", "2026-11-26"
    assert row(text, "train", both, day, "2", "3.3 min", "3.00 GiB", "16.00 GiB")


def test_one_line_says_day_commit_runs_time_and_machine_and_older_runs_lack_the_day():
    words = (
        "commit aaaaaaaaaa · train 1 runs 100 s, evaluate 1 runs 100 s · Linux, 2 × H100 · 8 CPUs"
    )
    made = environment_summary([ran(), ran("evaluate")])
    assert made.in_one_line() == f"2026-11-25 · {words}"
    without_day = [
        EnvironmentStep(run, ran().manifest | {"date": ""}) for run in ("train", "evaluate")
    ]
    assert environment_summary(without_day).in_one_line() == words
    assert environment_summary([]) is None


def test_one_line_has_the_last_day_the_last_steps_commit_and_the_machine_of_most_runs():
    cpu = {"platform": "Linux", "cpus": 2, "accelerators": []}
    edited = {"version": "0.1.0", "commit": "b" * 40, "dirty": True}
    early = ran(date="2026-11-26")
    late = [ran("evaluate", device=cpu, code=edited) for _ in range(2)]
    made = environment_summary([early, *late])
    assert (made.date, made.commit) == ("2026-11-26", "bbbbbbbbbb+")
    assert (made.machine, made.cpus) == ("Linux", "2")
    assert made.steps == "train 1 runs 100 s, evaluate 2 runs 3.3 min"


def test_runs_that_were_accepted_are_marked():
    accepted = ran(accepted=[{"before": "code-0", "after": "code-1"}])
    text = environment_markdown([ran(), accepted], {}, "quick")
    assert "| aaaaaaaaaa, aaaaaaaaaa (accepted) |" in text


def test_versions_and_machines_that_differ_stand_in_rows_of_their_own():
    cpu = {"platform": "Linux", "cpus": 2, "accelerators": []}
    other = ran(packages={"torch": "2.14.0"}, device=cpu, peak_memory_bytes={"host": 2**30})
    text = environment_markdown([ran(), ran(), other], {}, "quick")
    assert row(text, "torch", "2.13.0", "2") and row(text, "torch", "2.14.0", "1")
    assert row(text, "Linux", "2 × H100", "8", "1", "2") and row(
        text, "Linux", "none", "2", "–", "1"
    )


def test_code_outside_a_repository_is_named_by_its_version():
    wheel = {"version": "0.1.0", "commit": None, "dirty": None}
    assert "| version 0.1.0 |" in environment_markdown([ran(code=wheel)], {}, "quick")


def test_the_step_reads_the_manifest_of_every_run_of_the_study_and_of_no_other(
    root, tmp_path, monkeypatch
):
    study = resolve_study(load(root / "params.yaml"), "quick")
    rows = [
        RunFoldersRow(
            model, variant, seed, 0, f"base/{model}", trained, f"evaluate/{variant}/{seed}"
        )
        for model in study.models
        for variant in study.methods
        for seed in study.seeds
        for trained in [f"train/{variant}/{seed}" if variant in study.trained else ""]
    ]
    last, name = rows[-1].variant, "the same settings under another name"
    again = [replace(row, variant=name) for row in rows if row.variant == last]
    write_run_folders(tmp_path / "runs.csv", [*rows, *again])
    run_folders = {
        folder for row in rows for folder in (row.base, row.train, row.evaluate) if folder
    }
    for folder in (*run_folders, "evaluate/gone/0"):
        write_manifest(tmp_path / folder / "manifest.json", manifest("analyse", [], {}, 1.0))

    monkeypatch.chdir(tmp_path)
    pages.environment_page_program("quick", tmp_path, tmp_path / "runs.csv")

    text = (tmp_path / "environment.md").read_text()
    counted = {
        line.split("|")[1].strip(): line.split("|")[4].strip()
        for line in text.split("\n")
        if line.count("|") == 8
    }
    methods, seeds = len(study.methods), len(study.seeds)
    assert counted["evaluate"] == str(methods * seeds)
    assert counted["train"] == str((methods - 1) * seeds)
    assert row(text, "snakemake", importlib.metadata.version("snakemake"))


def test_a_manifest_that_is_missing_is_named(tmp_path):
    write_run_folders(
        tmp_path / "runs.csv", [RunFoldersRow("m", "geosd", 0, 0, str(tmp_path / "base"), "", "")]
    )
    with pytest.raises(DamagedManifestError, match="base/manifest.json"):
        pages.environment_page_program("quick", tmp_path, tmp_path / "runs.csv")


def test_a_study_that_no_run_enters_says_so(tmp_path):
    pages.environment_page_program("quick", tmp_path)
    assert "No run enters what this study shows." in (tmp_path / "environment.md").read_text()
