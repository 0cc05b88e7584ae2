"""Runs of Snakemake on this machine: of a study, of its outputs alone, and dry ones."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from geosd.reporting.specs import output_specs


def rules_of_outputs() -> list[str]:
    """Options of a run of Snakemake that allow no rule but those of tables, figures and pages."""
    return ["--allowed-rules", "all", "page", "front_page", "environment", *output_specs()]


def snakemake(study: str, *words: str, profile: Sequence[str] = ("--profile", "local")) -> None:
    """Run Snakemake on this machine to its end; one with an error ends this process, too.

    Ctrl-C reaches Snakemake itself, which then ends its jobs, so this process waits.
    """
    interrupted = signal.signal(signal.SIGINT, lambda number, frame: None)
    status = _run([*profile, "--config", f"study={study}", *words]).returncode
    signal.signal(signal.SIGINT, interrupted)
    if status:
        sys.exit(status if status > 0 else 128 - status)


class PlannedJob(NamedTuple):
    """A job that Snakemake would run, as workflow/slurm/driver.smk writes it in a dry run.

    `needs` are the jobs that it waits for, by their place in the list; a `local` one is not
    submitted; `model` is empty where a rule has none.
    """

    rule: str
    model: str
    priority: int
    local: bool
    needs: Sequence[int]


def dry_run(study: str, listed: bool = False) -> list[list[Any]]:
    """The jobs that Snakemake would run; it prints each of them where all are to be `listed`."""
    words = ["--profile", "local", "--dry-run", "--logger", "brief", "--config", f"study={study}"]
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder, "jobs.json"), None if listed else subprocess.PIPE
        done = _run(
            words, {"GEOSD_PLANNED_JOBS": str(file)}, stdout=output, stderr=subprocess.STDOUT
        )
        if done.returncode:
            sys.exit(done.stdout or done.returncode)
        return json.loads(file.read_text())


def _run(
    words: Sequence[str], variables: Mapping[str, str] | None = None, **output: int | None
) -> subprocess.CompletedProcess[str]:
    paths = filter(None, ["workflow/logger", os.environ.get("PYTHONPATH")])
    environment = {**os.environ, **(variables or {}), "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-m", "snakemake", *words]
    return subprocess.run(command, env=environment, text=True, **output)
