"""The plan of a study as text tables for the terminal (`make plan`): hours, disk, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from geosd.claims.published import published
from geosd.costs.hours_and_disk import REFERENCE, PlanRow
from geosd.costs.training_memory import GB, MemoryPart, rounded_memory, total_bytes, training_memory
from geosd.costs.update_operations import UpdateUnits
from geosd.costs.workload import Assumptions
from geosd.models.published_architectures import architecture
from geosd.reporting.table_kfac_memory import memory_in_gb
from geosd.reporting.tables import MISSING, markdown_table

ASSUMPTION_LABELS = {
    "gpu": "the GPU: {memory:.0f} GB, {bandwidth:g} TB/s, {flops:g} TFLOP/s dense bf16",
    "mfu": "share of its operations that passes over whole sequences get",
    "bandwidth_share": "share of its bandwidth that decoding gets",
    "usable": "share of its memory that is planned with",
    "length": "mean response, in caps (a step waits for its longest, taken to be the cap)",
    "prompt": "tokens of a question with its template",
    "concurrent": "responses decoded side by side at most",
}


def assumption_table(assumed: Assumptions, ratios: Mapping[str, float]) -> str:
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
    in_text = {entry["key"]: entry["value"] for entry in published()["text"]}
    for rule, ratio in ratios.items():
        hours = in_text[f"gpu_hours_{rule}"]
        text = f"its {hours} GPU-h at 8B by those reckoned here: expected = reckoned x this"
        rows.append([f"paper/{rule}", f"{ratio:.2f}", text])
    return markdown_table(rows, left=3)


def job_table(plan: Sequence[PlanRow]) -> str:
    """The plan's table of jobs, GPUs and hours: a line for each model and rule, and the sums."""
    head = ["model", "rule", "jobs", "GPUs", "h reckoned", "expected", "GPU-h reckoned", "expected"]
    rows = [head]
    for row in plan:
        hours = [MISSING] * 4
        if row.gpus:
            hours = [f"{row.roofline_hours:.1f}", f"{row.expected_hours:.1f}"]
            hours += [f"{row.gpu_hours(expected=e):,.0f}" for e in (False, True)]
        rows.append([row.model, row.rule, str(row.jobs), str(row.gpus), *hours])
    sums = [f"{sum(row.gpu_hours(expected=e) for row in plan):,.0f}" for e in (False, True)]
    rows.append(["all", "", str(sum(row.jobs for row in plan)), "", "", "", *sums])
    return markdown_table(rows, left=2)


def disk_sentence(usages: Sequence[tuple[float, float, float]]) -> str:
    """The plan's sentence on what a study's models keep on disk, from `disk_bytes` of each."""
    weights, samples, resuming = zip(*usages, strict=True)
    return (
        f"On disk: weights {sum(weights) / 1e12:.1f} TB (fp32, every run's and every snapshot's),"
        f" samples {sum(samples) / 1e12:.2f} TB; while a training runs, up to"
        f" {max(resuming) / GB:.0f} GB to resume it from."
    )


def gpu_memory_table(title: str, parts: Sequence[MemoryPart], assumed: Assumptions) -> str:
    """The plan's table of what one GPU holds, part by part, against what it has."""
    used, usable = total_bytes(parts), assumed.usable_bytes
    fits = f"{'fits' if used <= usable else 'DOES NOT FIT'} in {usable / GB:.1f}"
    entries = [(title, "GB", "how")]
    entries += [(name, f"{size / GB:.1f}", formula) for name, size, formula in parts]
    entries.append(("together", f"{used / GB:.1f}", fits))
    width = max(len(formula) for *_, formula in entries)
    return markdown_table([[name, size, formula.ljust(width)] for name, size, formula in entries])


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


def update_units_table(
    model: str, methods: Mapping[str, UpdateUnits], seconds: Mapping[str, tuple[float, float]]
) -> str:
    """The plan's table of an update's units (and the paper's at 8B) and of a step's seconds."""
    head = ["Units of an update", "student", "frozen", "anchor", "K-FAC", "all", "paper"]
    rows = [[*head, "s generating", "s updating"]]
    for name, units in methods.items():
        each = [units.student, units.teacher, units.anchor, units.kfac, units.total]
        columns = [f"{value:.2f}" if value else MISSING for value in each]
        columns.append(_published_total(name, units) if model == REFERENCE else MISSING)
        rows.append([name, *columns, *(f"{value:.1f}" for value in seconds[name])])
    return markdown_table(rows)


def _published_total(method: str, units: UpdateUnits) -> str:
    """The paper's total: of GeoSD, and of every method that a student and a teacher make up."""
    opsd = (units.student, units.teacher, units.anchor, units.kfac) == (6, 3, None, None)
    if method != "geosd" and not opsd:
        return MISSING
    return f"{published()['flops']['rows']['geosd' if method == 'geosd' else 'opsd']['total']:g}"
