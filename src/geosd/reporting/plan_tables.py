"""The plan of a study as text tables for the terminal (`make plan`): hours, disk, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geosd.claims.published import published
from geosd.costs.disk import PeakPart
from geosd.costs.hours import PlanRow, likely_hours
from geosd.costs.training_memory import GB, MemoryPart, rounded_memory, total_bytes, training_memory
from geosd.costs.workload import Assumptions
from geosd.models.published_architectures import architecture
from geosd.reporting.table_kfac_memory import memory_in_gb
from geosd.reporting.tables import MISSING, markdown_table

REFERENCE = "qwen3-8b"
"""The model of the paper's tables of one size."""
ASSUMPTION_LABELS = {
    "gpu": "the GPU: {memory:.0f} GB, {bandwidth:g} TB/s, {flops:g} TFLOP/s dense bf16",
    "mfu": "share of its operations that passes over whole sequences get",
    "bandwidth_share": "share of its bandwidth that decoding gets",
    "usable": "share of its memory that is planned with",
    "length": "mean response, in caps (a step waits for its longest, taken to be the cap)",
    "prompt": "tokens of a question with its template",
    "concurrent": "responses decoded side by side at most",
    "jobs": "jobs side by side (profiles/slurm/site.yaml)",
    "trainings": "trainings among them (the same file)",
}


def assumption_table(assumed: Assumptions) -> str:
    """The plan's table of everything that its hours rest on, a line each."""
    gpu = assumed.device
    sheet = {
        "memory": gpu.memory / GB,
        "bandwidth": gpu.bandwidth / 1e12,
        "flops": gpu.flops / 1e12,
    }
    rows = [["Taken for granted", "", ""]]
    rows += [
        [k, str(getattr(assumed, k)), text.format(**sheet)] for k, text in ASSUMPTION_LABELS.items()
    ]
    return markdown_table(rows, left=3)


def job_table(plan: Sequence[PlanRow]) -> str:
    """The plan's table of jobs, GPUs and hours: a line for each model and rule, and the sums.

    The last column is of all jobs, at the hours measured, else reckoned (`likely_hours`).
    """
    rows = [["model", "rule", "jobs", "done", "GPUs", "h reckoned", "measured", "off", "GPU-h"]]
    total = 0.0
    for row, hours in zip(plan, likely_hours(plan), strict=True):
        gpu_hours = row.jobs * row.gpus * (hours or 0.0)
        total += gpu_hours
        numbers = [(row.reckoned, ".1f"), (row.measured, ".3g"), (row.off, ".2f")]
        cells = [MISSING if n is None else format(n, form) for n, form in numbers]
        cells.append(f"{gpu_hours:,.0f}" if row.gpus and hours else MISSING)
        rows.append([row.model, row.rule, str(row.jobs), str(row.done), str(row.gpus), *cells])
    sums = [str(sum(getattr(row, name) for row in plan)) for name in ("jobs", "done")]
    rows.append(["all", "", *sums, "", "", "", "", f"{total:,.0f}"])
    return markdown_table(rows, left=2)


def evaluation_table(savings: Mapping[str, Mapping[str, float]]) -> str:
    """The plan's table of an evaluation's hours by model, without each means of saving some."""
    models = list(savings)
    rows = [["Hours of one evaluation", *models]]
    for case in savings[models[0]]:
        rows.append([case, *(f"{savings[model][case]:.2f}" for model in models)])
    return markdown_table(rows)


def peak_table(parts: Sequence[PeakPart]) -> str:
    """The plan's table of the most that a study has on disk at once, part by part."""
    entries = [("On disk at most", "TB", "how")]
    entries += [(part.name, f"{part.bytes / 1e12:.2f}", part.how) for part in parts]
    entries.append(("together", f"{sum(part.bytes for part in parts) / 1e12:.2f}", ""))
    return _sum_table(entries)


def gpu_memory_table(title: str, parts: Sequence[MemoryPart], assumed: Assumptions) -> str:
    """The plan's table of what one GPU holds, part by part, against what it has."""
    used, usable = total_bytes(parts), assumed.usable_bytes
    fits = f"{'fits' if used <= usable else 'DOES NOT FIT'} in {usable / GB:.1f}"
    entries = [(title, "GB", "how")]
    entries += [(name, f"{size / GB:.1f}", formula) for name, size, formula in parts]
    entries.append(("together", f"{used / GB:.1f}", fits))
    return _sum_table(entries)


def _sum_table(entries: Sequence[tuple[str, str, str]]) -> str:
    """A table of parts, whose last column of words is flush left."""
    width = max(len(how) for *_, how in entries)
    return markdown_table([[name, size, how.ljust(width)] for name, size, how in entries])


def training_state_table(model: str, blocks: int, storage: str) -> str:
    """The plan's table of a whole training state, by the paper's count, and its digits."""
    state = training_memory(architecture(model), blocks, storage)
    computed = memory_in_gb(state)
    rounded = dict(zip(("snapshot", "total"), rounded_memory(state), strict=True))
    at_8b = published()["memory_methods"]["rows"]["geosd"]["base"]
    paper = {"base": at_8b if model == REFERENCE else None}
    paper |= published()["kfac_memory"]["rows"].get(model, {})
    names = {
        "base": "weights, gradients, moments: 16 N",
        "full": "dense K-FAC covariances, never formed",
        "kfac": f"K-FAC factors and inverses, g = {blocks}, {storage}",
        "snapshot": "anchor, bf16: 2 N",
        "total": "K-FAC and anchor",
        "increase": "their percentage of 16 N",
    }
    rows = [["The whole state, in GB", "here", "from rounded terms", "paper"]]
    for key, name in names.items():
        form = ".0f" if key == "increase" else ".1f"
        term = format(rounded[key], form) if key in rounded else ""
        printed = MISSING if paper.get(key) is None else format(paper[key], "g")
        rows.append([name, format(computed[key], form), term, printed])
    return markdown_table(rows)
