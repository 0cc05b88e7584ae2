"""The page environment.md: code, machines and packages that made the numbers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any, NamedTuple

from geosd.provenance.machine_names import platform_without_kernel
from geosd.reporting.sentences import SENTENCES
from geosd.reporting.tables import MISSING, markdown_table

_filled = partial(fill, width=96)
INSTALLED = "## Every package installed"


class StepManifest(NamedTuple):
    """A run of step "base", "train" or "evaluate", and its manifest, for the environment page."""

    step: str
    manifest: Mapping[str, Any]


def environment_markdown(
    runs: Sequence[StepManifest], installed: Mapping[str, str], study: str
) -> str:
    """The environment page as Markdown: runs, machines, and every package installed."""
    parts = [f"# Environment of study {study}"]
    if runs:
        parts += [_filled(SENTENCES["runs"]), _steps(runs), "## Machines", _machines(runs)]
        parts += [
            "## Packages that can change a number",
            _filled(SENTENCES["packages"]),
            _packages(runs),
        ]
    else:
        parts.append("No run enters what this study shows.")
    parts += [INSTALLED, _filled(SENTENCES["installed"])]
    lines = [["package", "version"], *([n, installed[n]] for n in sorted(installed, key=str.lower))]
    parts.append(markdown_table(lines, left=2))
    return "\n\n".join(parts) + "\n"


def installed_packages(page: str) -> dict[str, str]:
    """Every package installed, with its version, as an environment page lists them."""
    _, _, listed = page.partition(f"\n{INSTALLED}\n")
    rows = [line.split("|")[1:-1] for line in listed.splitlines() if line.startswith("| ")]
    return {name.strip(): version.strip() for name, version in rows[1:]}


def made_in_one_line(page: str) -> str:
    """Date, commit, runs, time and machine in one line, from the tables of an environment page.

    Empty where no run enters; without the date where the page has none.
    """
    tables = [part.splitlines() for part in page.split("\n\n") if part.startswith("| ")]
    rows = [[[c.strip() for c in line.split("|")[1:-1]] for line in table] for table in tables[:2]]
    if len(rows) < 2 or rows[0][0][0] != "step":
        return ""
    steps, (machine, *_) = ([dict(zip(of[0], row, strict=True)) for row in of[2:]] for of in rows)
    dates, commits = ({row.get(key): 1 for row in steps} for key in ("last", "commit"))
    times = ", ".join(f"{row['step']} {row['runs']} runs {row['time']}" for row in steps)
    device = "" if machine["accelerators"] == "none" else f", {machine['accelerators']}"
    words = [*dates][-1:] + [f"commit {[*commits][-1]}", times, f"{machine['platform']}{device}"]
    return " · ".join(filter(None, [*words, f"{machine['CPUs']} CPUs"]))


def _steps(runs: Sequence[StepManifest]) -> str:
    lines = [["step", "commit", "last", "runs", "time", "host memory", "device memory"]]
    for step in dict.fromkeys(run.step for run in runs):
        manifests = [run.manifest for run in runs if run.step == step]
        peaks = [manifest["peak_memory_bytes"] for manifest in manifests]
        on_device = [peak["device"] for peak in peaks if "device" in peak]
        lines.append(
            [
                step,
                ", ".join(dict.fromkeys(map(_commit, manifests))),
                max(manifest.get("date", "") for manifest in manifests),
                str(len(manifests)),
                duration_in_words(math.fsum(manifest["wall_s"] for manifest in manifests)),
                _gib(max(peak["host"] for peak in peaks)),
                _gib(max(on_device)) if on_device else MISSING,
            ]
        )
    return markdown_table(lines, left=3)


def _commit(manifest: Mapping[str, Any]) -> str:
    code, accepted = manifest["code"], " (accepted)" if "accepted" in manifest else ""
    if code["commit"] is None:  # an installed wheel, or a machine without git
        return f"version {code['version']}{accepted}"
    return code["commit"][:10] + ("+" if code["dirty"] else "") + accepted


def _machines(runs: Sequence[StepManifest]) -> str:
    def machine(device: Mapping[str, Any]) -> tuple[str, ...]:
        counted = Counter(device["accelerators"])
        names = (f"{n} × {name}" if n > 1 else name for name, n in counted.items())
        numbers = (str(device["cpus"]), str(device.get("threads", MISSING)))
        return platform_without_kernel(device), ", ".join(names) or "none", *numbers

    header = ["platform", "accelerators", "CPUs", "threads", "runs"]
    counts = Counter(machine(run.manifest["device"]) for run in runs).most_common()
    return markdown_table([header, *([*words, str(n)] for words, n in counts)], left=2)


def _packages(runs: Sequence[StepManifest]) -> str:
    versions: dict[str, list[str]] = {}
    for run in runs:
        for name, version in run.manifest["packages"].items():
            versions.setdefault(name, []).append(version)
    lines = [["package", "version", "runs"]]
    for name in sorted(versions):
        lines += [[name, version, str(n)] for version, n in Counter(versions[name]).most_common()]
    return markdown_table(lines, left=2)


def duration_in_words(seconds: float) -> str:
    """A duration on the environment page, in the unit that people would use.

    >>> duration_in_words(74.7), duration_in_words(372), duration_in_words(9000)
    ('75 s', '6.2 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
