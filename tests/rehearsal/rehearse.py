"""Rehearse the paper's studies: every rule, from `data` to the report, on a SLURM started here.

    make rehearse

Needs the cluster of tests/slurm/cluster.sh. Ends with an error where a rule of the true studies has
not run, a report does not show what it should, a training skipped a step, a job left a process
behind, or results differ after a node was killed or DVC made a training again.
OUT/rehearsal.json and OUT/rehearsal.md say what was run; README.md here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
from dvc_stage import reproduce
from faults import Driver, processes_in, wait_for
from jobs import jobs_by_rule, planned_rules, slurm_jobs
from killed_node import run_again
from open_report import chromium, open_report
from paper_models import PUBLISHED
from schedule import compare, planned_jobs
from small_studies import BOUNDS, LEFT_OUT, STUDIES, configured, shrink
from study import ROOT, copy_files

from geosd.files import write_json, write_text

SHARED = Path(os.environ.get("GEOSD_SHARED_DATA", ROOT / "../shared/data"))
HERE = Path(__file__).resolve().parent
PATIENCE_S = 3600
ENDING_S = 60  # for processes of a job that has ended


def run(project: Path, *command: str | Path) -> str:
    """What a program of the project prints."""
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=project,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
    )
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def snakemake(project: Path, study: str, *arguments: str) -> str:
    """What a Snakemake of this machine prints that submits nothing."""
    local = ("-m", "snakemake", "--profile", "local", "--config", f"study={study}")
    return run(project, *local, *arguments)


def rules_of_the_paper() -> set[str]:
    """The rules that the true studies have."""
    return set().union(*(planned_rules(snakemake(ROOT, each, "--dry-run")) for each in STUDIES))


def prepare(project: Path, engine: str) -> None:
    """Make the project with its small studies and the stand-ins for the released checkpoints."""
    shared, released = SHARED.resolve(), project / "released"
    copy_files(project)
    shrink(project, shared, released, engine)
    problems = released / "problems"
    run(project, "-m", "geosd", "data", "--study", "paper", "--out", problems)
    options = ("--shared", shared, "--problems", problems, "--out", released)
    models = [name for name in PUBLISHED if name != LEFT_OUT]
    print(run(project, HERE / "checkpoints.py", *options, *models), end="", flush=True)


def rehearse(project: Path, study: str) -> float:
    """Run a study on SLURM to its end, and make Snakemake's report; returns the seconds."""
    began = time.monotonic()
    driver = Driver(project, configured(study), patience_s=PATIENCE_S)
    driver.start()
    try:
        driver.end()
    finally:
        driver.stop()
    try:
        wait_for("the end of all processes", lambda: not processes_in(project), ENDING_S)
    except TimeoutError as error:
        left = "\n".join(processes_in(project))
        raise RuntimeError(
            f"{study}: its jobs have ended, these processes have not:\n{left}"
        ) from error
    style = ("--report-stylesheet", "workflow/report/style.css")
    provenance = f"results/{study}/provenance.html"
    snakemake(project, study, "--quiet", "all", "--report", provenance, *style)
    return time.monotonic() - began


def skipped_steps(project: Path) -> dict[str, int]:
    """Model, recipe and seed of each training that skipped steps -> how many of STEPS."""
    manifests = sorted((project / "results/train").glob("*/*/*/manifest.json"))
    counts = {
        str(path.parent.relative_to(project / "results/train")): json.loads(path.read_text())[
            "irregular_steps"
        ]["skipped"]
        for path in manifests
    }
    return {run: count for run, count in counts.items() if count}


def markdown(outcome: dict[str, Any], rules: pd.DataFrame) -> str:
    """The outcome as tables."""
    studies = pd.DataFrame(outcome["studies"]).to_markdown(index=False)
    parts = [f"Engine {outcome['engine']}, {outcome['cores']} cores: {outcome['seconds']} s."]
    parts += [studies, rules.to_markdown()]
    parts += ["The plan's simulated schedule, with the seconds that jobs took, and SLURM's:"]
    parts += [pd.DataFrame(outcome["schedule"]).to_markdown(index=False)]
    for title, key in (
        ("A node was killed, and the bytes are the same:", "killed"),
        ("DVC made a training again, and the bytes are the same:", "dvc"),
    ):
        parts += [title, pd.Series(outcome[key], name="").to_frame().to_markdown()]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run all and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=["transformers", "vllm"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if not SHARED.is_dir():
        print(
            f"skipped: no shared data at {SHARED}.\nHint: set GEOSD_SHARED_DATA to the folder that"
            " holds the published data sets, configurations, tokenizers and templates."
        )
        return
    # Every engine would bind itself to the same cores: three nodes are one machine.
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    project = Path(tempfile.mkdtemp(prefix="geosd-rehearsal-")).resolve()
    print(f"rehearsal with {given.engine} in {project}", flush=True)
    began = time.monotonic()
    with ThreadPoolExecutor() as side_by_side:
        planned = side_by_side.submit(rules_of_the_paper)
        prepare(project, given.engine)
    rows: list[dict[str, Any]] = [{"study": "preparation", "seconds": time.monotonic() - began}]
    schedule = []
    for study in STUDIES:
        jobs, earlier = planned_jobs(project, study), len(slurm_jobs(project))
        seconds = rehearse(project, study)
        schedule.append({"study": study, **compare(project, jobs, earlier, BOUNDS)})
        row: dict[str, Any] = {"study": study, "seconds": seconds}
        if browser := chromium():
            row |= open_report(browser, project / f"results/{study}/report.html")
        rows.append(row)
        print(row, flush=True)
    rules = jobs_by_rule(project)
    lacking = planned.result() - {*rules.index}
    assert not lacking, f"these rules have not run: {lacking}"
    print(rules.to_markdown(), flush=True)
    skipped = skipped_steps(project)
    assert not skipped, f"these trainings skipped steps: {skipped}"
    again = reproduce(project)
    # Last: it makes anew what study paper shares, whose pages are older then.
    killed = run_again(project)
    outcome = {
        "engine": given.engine,
        "cores": os.cpu_count(),
        "seconds": round(time.monotonic() - began),
        "studies": [{**row, "seconds": round(row["seconds"])} for row in rows],
        "rules": rules.reset_index().to_dict("records"),
        "schedule": schedule,
        "killed": killed,
        "dvc": again,
    }
    write_json(given.out / "rehearsal.json", outcome)
    write_text(given.out / "rehearsal.md", text := markdown(outcome, rules))
    print(text)


if __name__ == "__main__":
    main()
