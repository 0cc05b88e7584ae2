"""Runs of Snakemake on this machine: of a study, of its outputs alone, and dry ones."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from geosd.disk_room import NoRoomError, refused_by_disk
from geosd.reporting.specs import output_specs

WRITTEN = ("results", "scratch", "figures", "logs", ".snakemake")
"""The folders that a run of a study writes to; each may be a link to another disk."""


def snakemake_output_rules() -> list[str]:
    """Options of a run of Snakemake that allow no rule but those of tables, figures and pages."""
    return ["--allowed-rules", "all", "page", "front_page", "environment", *output_specs()]


def snakemake(study: str, *words: str, profile: Sequence[str] = ("--profile", "local")) -> None:
    """Run Snakemake on this machine to its end; one with an error ends this process, too.

    Ctrl-C reaches Snakemake itself, which then ends its jobs, so this process waits. Where the
    folders that a run writes to have no room left, the last line says so, whatever failed.
    """
    interrupted = signal.signal(signal.SIGINT, lambda number, frame: None)
    status = _run([*profile, "--config", f"study={study}", *words]).returncode
    signal.signal(signal.SIGINT, interrupted)
    if status:
        full = _full_folder()
        if full is not None:
            print(full, file=sys.stderr)
        sys.exit(status if status > 0 else 128 - status)


def _full_folder() -> NoRoomError | None:
    """The first folder that a run writes to and that takes no more bytes; None: all have room."""
    for folder in (*map(Path, WRITTEN), Path(tempfile.gettempdir())):
        number = refused_by_disk(folder)
        if number:
            return NoRoomError(number, folder)
    return None


class SnakemakeJob(NamedTuple):
    """A job that Snakemake would run, as workflow/slurm/driver.smk writes it in a dry run.

    `needs` are the jobs that it waits for, by their place in the list; a `local` one is not
    submitted; `model` is empty where a rule has none.
    """

    rule: str
    model: str
    priority: int
    local: bool
    needs: Sequence[int]


def snakemake_dry_run(study: str, listed: bool = False) -> list[list[Any]]:
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


def write_snakemake_report(study: str) -> None:
    """Write Snakemake's report of a finished study, where it is older than what it shows.

    Raises:
        SystemExit: Snakemake could not write it; says why. Nothing half written stays.
    """
    page = Path("results", study, "provenance.html")
    patterns = (f"figures/{study}/*", f"results/{study}/pages/*", "workflow/report/*")
    made = page.stat().st_mtime if page.exists() else 0.0
    shown = (path for pattern in patterns for path in Path().glob(pattern))
    if made and all(path.stat().st_mtime <= made for path in shown):
        return
    print("Writing how it was made: Snakemake's report, some ten seconds", flush=True)
    partial = page.with_name(".provenance.html")  # renamed when it is whole
    words = ["--cores", "1", "--config", f"study={study}", "--report", str(partial)]
    words += ["--report-stylesheet", "workflow/report/style.css"]
    try:
        done = _run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit(
                f"Snakemake's report of how study {study} was made could not be written:"
                f" {_full_folder() or _last_error(done.stdout)}\nHint: the study itself is"
                f" complete; `make report STUDY={study}` tries this again."
            )
        partial.replace(page)
    finally:
        partial.unlink(missing_ok=True)


def _last_error(printed: str) -> str:
    """The line of what Snakemake printed that names the error: the last of an error, or of all."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    return (named or lines or ["it says nothing"])[-1]


def snakemake_job_graph(study: str) -> tuple[list[Any], dict[str, Any]]:
    """The jobs of a study in Snakemake's graph, rule by rule, and what the Snakefile defines."""
    from snakemake.api import SnakemakeApi  # takes two seconds, which no stage's check needs
    from snakemake.settings import types

    with SnakemakeApi(types.OutputSettings(quiet={types.Quietness.ALL})) as api:
        cores, config = types.ResourceSettings(cores=1), types.ConfigSettings({"study": study})
        of_study = api.workflow(cores, config, snakefile=Path("Snakefile"))
        of_study.dag(types.DAGSettings(forceall=True))
        workflow = of_study._workflow
        workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
        workflow._build_dag()
        place = {rule.name: number for number, rule in enumerate(workflow.rules)}
        jobs = list(workflow.dag.jobs)
        jobs.sort(key=lambda job: (place[job.rule.name], [*map(str, job.output)]))
        return jobs, workflow.globals
