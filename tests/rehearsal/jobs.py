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
LISTED = "--format=%i|%k|%S|%e|%Z|%D|%b|%m"
"""Number, comment, start, end, folder, nodes, GPUs and memory of a node."""


def planned_rules(printed: str) -> set[str]:
    """The rules of a dry run's table of jobs."""
    return {*re.findall(r"^(\w+) +\d+$", printed, re.MULTILINE)} - TARGETS - {"total"}


def slurm_jobs(project: Path) -> pd.DataFrame:
    """The jobs that SLURM has run for a project, in the order in which they were submitted.

    Columns `rule`, `wildcards`, `start` and `end` (seconds since 1970), `seconds`, `gpus` and
    `megabytes` of all its nodes. Of a job that was requeued the times are those of its last start.
    """
    command = ["squeue", "--me", "--noheader", "--states=all", LISTED]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parse_jobs(listed, project)


def parse_jobs(listed: str, project: Path) -> pd.DataFrame:
    """See `slurm_jobs`: squeue's lines in the form of `LISTED`."""
    rows = []
    for line in listed.splitlines():
        number, comment, *times, folder, nodes, gpus, memory = line.split("|")
        rule = re.match(r"rule_(\w+?)(?:_wildcards_(.*))?$", comment)
        if rule is None or Path(folder) != project:
            continue
        start, end = (datetime.fromisoformat(each).timestamp() for each in times)
        of_node = int(found[1]) if (found := re.search(r"gpu\S*:(\d+)", gpus)) else 0
        megabytes = float(memory.rstrip("MG")) * (1024 if memory.endswith("G") else 1)
        used = (int(nodes) * of_node, round(int(nodes) * megabytes))
        rows.append((int(number), rule[1], rule[2] or "", start, end, end - start, *used))
    columns = ["number", "rule", "wildcards", "start", "end", "seconds", "gpus", "megabytes"]
    return pd.DataFrame(sorted(rows), columns=columns).drop(columns="number")


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
    submitted = submitted[["rule", "seconds"]].assign(where="SLURM")
    jobs = pd.concat([submitted, local.assign(where="driver")])
    by_rule = jobs.groupby(["rule", "where"])["seconds"]
    table = by_rule.agg(jobs="count", seconds="sum", longest="max").round().astype(int)
    return table.reset_index("where").sort_values("seconds", ascending=False)
