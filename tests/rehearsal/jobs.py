"""How many jobs of each rule a project has run, and for how many seconds."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import datetime
from pathlib import Path

import pandas as pd

TARGETS = {"all", "tables", "figures", "removed_weights"}
"""Rules that name files and run nothing."""
LISTED = "--format=%i|%k|%S|%e|%Z"  # number, comment, start, end, folder


def planned_rules(printed: str) -> set[str]:
    """The rules of a dry run's table of jobs."""
    return {*re.findall(r"^(\w+) +\d+$", printed, re.MULTILINE)} - TARGETS - {"total"}


def slurm_jobs(project: Path) -> pd.DataFrame:
    """The jobs that SLURM has run for a project: columns `rule` and `seconds`.

    Of a job that was requeued the seconds are those of its last start.
    """
    command = ["squeue", "--me", "--noheader", "--states=all", LISTED]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parse_jobs(listed, project)


def parse_jobs(listed: str, project: Path) -> pd.DataFrame:
    """See `slurm_jobs`: squeue's lines in the form of `LISTED`."""
    rows = []
    for line in listed.splitlines():
        _, comment, start, end, folder = line.split("|")
        rule = re.match(r"rule_(\w+?)(?:_wildcards_|$)", comment)
        if rule is None or Path(folder) != project:
            continue
        seconds = datetime.fromisoformat(end) - datetime.fromisoformat(start)
        rows.append({"rule": rule[1], "seconds": seconds.total_seconds()})
    return pd.DataFrame(rows, columns=["rule", "seconds"])


def local_jobs(project: Path, submitted: set[str]) -> pd.DataFrame:
    """The jobs that Snakemake has run where it runs itself, from its own notes on each output.

    Args:
        project: The project's folder.
        submitted: Rules whose jobs SLURM runs.
    """
    jobs = {}
    for file in (project / ".snakemake/metadata").rglob("*"):
        if file.is_file():
            note = json.loads(file.read_text())
            if note["rule"] not in submitted:
                jobs[note["rule"], *note["log"]] = note["endtime"] - note["starttime"]
    rows = [{"rule": rule, "seconds": seconds} for (rule, *_), seconds in jobs.items()]
    return pd.DataFrame(rows, columns=["rule", "seconds"])


def jobs_by_rule(project: Path) -> pd.DataFrame:
    """Jobs and seconds of each rule that has run: index `rule`, the longest rules first."""
    submitted = slurm_jobs(project)
    local = local_jobs(project, {*submitted["rule"]})
    jobs = pd.concat([submitted.assign(where="SLURM"), local.assign(where="driver")])
    by_rule = jobs.groupby(["rule", "where"])["seconds"]
    table = by_rule.agg(jobs="count", seconds="sum", longest="max").round().astype(int)
    return table.reset_index("where").sort_values("seconds", ascending=False)
