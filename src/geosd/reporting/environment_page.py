"""The page environment.md: code, machines and packages that made the numbers."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, NamedTuple

from geosd.provenance.history import lost_history_in_words
from geosd.provenance.machine_names import platform_without_kernel
from geosd.reporting.run_summary import RunSummary
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.tables import MISSING, markdown_table

INSTALLED = "## Every package installed"
MACHINES = "## Machines"
COMMIT = re.compile(r"\b[0-9a-f]{10}\b")
"""A commit as the page names it."""
NO_ACCELERATOR = "none"


class EnvironmentStep(NamedTuple):
    """A run of step "base", "train" or "evaluate", and its manifest, for the environment page."""

    step: str
    manifest: Mapping[str, Any]


def environment_markdown(
    runs: Sequence[EnvironmentStep], installed: Mapping[str, str], study: str
) -> str:
    """The environment page as Markdown: runs, machines, and every package installed."""
    parts = [f"# Environment of study {study}"]
    if runs:
        parts += [
            _filled(SENTENCES["runs"]),
            _steps(runs),
            *_on_lost_commits(_steps(runs)),
            MACHINES,
            _machines(runs),
            "## Packages that can change a number",
            _filled(SENTENCES["packages"]),
            _packages(runs),
        ]
    else:
        parts.append("No run enters what this study shows.")
    lines = [["package", "version"]]
    for name in sorted(installed, key=str.lower):
        lines.append([name, installed[name]])
    parts += [INSTALLED, _filled(SENTENCES["installed"]), markdown_table(lines, left=2)]
    return "\n\n".join(parts) + "\n"


def _on_lost_commits(steps: str) -> list[str]:
    """A paragraph on the commits of the table of steps that the history lacks, if it lacks any."""
    words = lost_history_in_words(dict.fromkeys(COMMIT.findall(steps)))
    return [_filled(words)] if words else []


def environment_commits(page: str) -> list[str]:
    """The commits of the sources behind the runs, as an environment page names them, each once."""
    before, _, _ = page.partition(f"\n{MACHINES}\n")
    steps = "\n".join(line for line in before.splitlines() if line.startswith("|"))
    return list(dict.fromkeys(COMMIT.findall(steps)))


def _filled(text: str) -> str:
    return fill(text, 96)


def environment_packages(page: str) -> dict[str, str]:
    """Every package installed, with its version, as an environment page lists them."""
    _, _, listed = page.partition(f"\n{INSTALLED}\n")
    rows = [line.split("|")[1:-1] for line in listed.splitlines() if line.startswith("| ")]
    return {name.strip(): version.strip() for name, version in rows[1:]}


def environment_summary(runs: Sequence[EnvironmentStep]) -> RunSummary | None:
    """When, by which code and on which machine a study was run; None where no run enters."""
    if not runs:
        return None
    steps = _step_totals(runs)
    ((machine, _), *_) = _machine_counts(runs)
    named = machine.platform
    if machine.accelerators != NO_ACCELERATOR:
        named += f", {machine.accelerators}"
    return RunSummary(
        date=max(step.last for step in steps),
        commit=steps[-1].commits,
        steps=", ".join(f"{step.name} {step.runs} runs {step.time}" for step in steps),
        machine=named,
        cpus=machine.cpus,
    )


@dataclass(frozen=True)
class _StepTotals:
    """The runs of a step together."""

    name: str
    commits: str
    last: str
    """Day of the last run; empty where no manifest has one."""
    runs: int
    time: str
    host_memory: str
    device_memory: str


def _step_totals(runs: Sequence[EnvironmentStep]) -> list[_StepTotals]:
    """Of each step, in the order of the runs."""
    totals = []
    for step in dict.fromkeys(run.step for run in runs):
        manifests = [run.manifest for run in runs if run.step == step]
        commits = dict.fromkeys(_commit(manifest) for manifest in manifests)
        peaks = [manifest["peak_memory_bytes"] for manifest in manifests]
        on_host = [peak["host"] for peak in peaks]
        on_device = [peak["device"] for peak in peaks if "device" in peak]
        of_step = _StepTotals(
            name=step,
            commits=", ".join(commits),
            last=max(manifest.get("date", "") for manifest in manifests),
            runs=len(manifests),
            time=_duration_in_words(math.fsum(manifest["wall_s"] for manifest in manifests)),
            host_memory=_gib(max(on_host)),
            device_memory=_gib(max(on_device)) if on_device else MISSING,
        )
        totals.append(of_step)
    return totals


def _steps(runs: Sequence[EnvironmentStep]) -> str:
    lines = [["step", "commit", "last", "runs", "time", "host memory", "device memory"]]
    for step in _step_totals(runs):
        lines.append(
            [
                step.name,
                step.commits,
                step.last,
                str(step.runs),
                step.time,
                step.host_memory,
                step.device_memory,
            ]
        )
    return markdown_table(lines, left=3)


def _commit(manifest: Mapping[str, Any]) -> str:
    code = manifest["code"]
    if code["commit"] is None:  # an installed wheel, or a machine without git
        words = f"version {code['version']}"
    else:
        words = code["commit"][:10]
        if code["dirty"]:
            words += "+"
    return f"{words} (accepted)" if "accepted" in manifest else words


class _Machine(NamedTuple):
    """A machine as the page describes it."""

    platform: str
    accelerators: str
    cpus: str
    threads: str


def _machine(device: Mapping[str, Any]) -> _Machine:
    accelerators = []
    for name, count in Counter(device["accelerators"]).items():
        accelerators.append(f"{count} × {name}" if count > 1 else name)
    return _Machine(
        platform=platform_without_kernel(device),
        accelerators=", ".join(accelerators) or NO_ACCELERATOR,
        cpus=str(device["cpus"]),
        threads=str(device.get("threads", MISSING)),
    )


def _machine_counts(runs: Sequence[EnvironmentStep]) -> list[tuple[_Machine, int]]:
    """The machines with their runs, that of most runs first."""
    return Counter(_machine(run.manifest["device"]) for run in runs).most_common()


def _machines(runs: Sequence[EnvironmentStep]) -> str:
    lines = [["platform", "accelerators", "CPUs", "threads", "runs"]]
    for machine, count in _machine_counts(runs):
        lines.append([*machine, str(count)])
    return markdown_table(lines, left=2)


def _packages(runs: Sequence[EnvironmentStep]) -> str:
    versions: dict[str, Counter[str]] = {}
    for run in runs:
        for name, version in run.manifest["packages"].items():
            versions.setdefault(name, Counter())[version] += 1
    lines = [["package", "version", "runs"]]
    for name in sorted(versions):
        for version, count in versions[name].most_common():
            lines.append([name, version, str(count)])
    return markdown_table(lines, left=2)


def _duration_in_words(seconds: float) -> str:
    """A duration on the environment page, in the unit that people would use.

    >>> _duration_in_words(74.7), _duration_in_words(372), _duration_in_words(9000)
    ('75 s', '6.2 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
