"""Jobs that ask for GPUs start only on a machine that has what they need."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

STUDY, MODEL = "paper_ladder", "qwen3-1.7b"


@pytest.fixture
def without_gpus(fresh, tmp_path, monkeypatch):
    """A clone on a machine without GPUs, network or data, and what one GPU job would make."""
    shutil.copytree(fresh.folder, tmp_path / "clone", symlinks=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    clone = replace(fresh, folder=tmp_path / "clone")
    target = f"{clone.folders(STUDY).pool(MODEL)}/pool.jsonl"

    def start(*words):
        options = ("--profile", "local", *words, "--", target)
        return clone.snakemake(*options, check=False)

    return clone, start


@pytest.mark.slow
def test_a_gpu_job_is_refused_before_any_job_starts(without_gpus):
    clone, start = without_gpus
    printed = start("--config", f"study={STUDY}")
    assert f"No job was started: study {STUDY} lacks" in printed
    assert "missing  GPUs: this machine shows 0; the largest job asks for 2" in printed
    assert f"checkpoint of {MODEL}" in printed and "qwen3-32b" not in printed
    assert not (clone.folder / "logs").exists()


@pytest.mark.slow
def test_the_command_line_may_allow_it(without_gpus):
    clone, start = without_gpus
    printed = start("--config", f"study={STUDY}", "allow_missing=true")
    assert "No job was started" not in printed and "missing  GPUs" in printed
    # The first job has run, and says itself that there are no data.
    [log] = (clone.folder / "logs").rglob("fetch.log")
    assert "DownloadError" in log.read_text()


@pytest.mark.slow
def test_a_word_that_is_neither_true_nor_false_is_refused(without_gpus):
    _, start = without_gpus
    printed = start("--dry-run", "--config", f"study={STUDY}", "allow_missing=perhaps")
    assert "allowed are true and false" in printed and "Hint:" in printed


def test_a_dry_run_plans_it_all_the_same(without_gpus, tmp_path, monkeypatch):
    monkeypatch.setenv("GEOSD_PLANNED_JOBS", str(tmp_path / "jobs.json"))  # and no plan is printed
    _, start = without_gpus
    printed = start("--dry-run", "--config", f"study={STUDY}")
    assert "No job was started" not in printed
    assert {"fetch", "data", "base", "pool"} <= {
        line.split(" ")[0] for line in printed.splitlines()
    }
