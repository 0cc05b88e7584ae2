"""A plan as tables for the terminal: what a study will cost, and what a model holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from geosd.claims.published import published
from geosd.costs.assumptions import Assumptions
from geosd.costs.gpu_memory import MemoryPart, total_bytes
from geosd.costs.study_plan import REFERENCE, DiskUsage, PlanRow
from geosd.costs.update_cost import GB, UpdateUnits, memory, rounded_terms
from geosd.models.published_architectures import architecture
from geosd.reporting.table_kfac_memory import memory_in_gb
from geosd.reporting.tables import MISSING, aligned

WHOLE = ("weights", "samples")
"""Of what is on disk, what stays."""
MEANING = {
    "gpu": "the GPU",
    "mfu": "share of its operations that passes over whole sequences get",
    "bandwidth_share": "share of its bandwidth that decoding gets",
    "usable": "share of its memory that is planned with",
    "length": "mean response, in caps (a step waits for its longest, taken to be the cap)",
    "prompt": "tokens of a question with its template",
    "concurrent": "responses decoded side by side at most",
}


def assumptions(assumed: Assumptions, times: Mapping[str, float]) -> str:
    """Everything that the hours rest on, a line each."""
    gpu = assumed.device
    rows = [["Taken for granted", "", ""]]
    for field in fields(assumed):
        value = getattr(assumed, field.name)
        rows.append([field.name, str(value), MEANING[field.name]])
    sheet = f"{gpu.memory / GB:.0f} GB, {gpu.bandwidth / 1e12:g} TB/s, {gpu.flops / 1e12:g} TFLOP/s"
    rows[1][2] += f": {sheet} dense bf16"
    in_text = {entry["key"]: entry["value"] for entry in published()["text"]}
    for rule, factor in times.items():
        hours = in_text[f"gpu_hours_{rule}"]
        text = f"its {hours} GPU-h at 8B by those reckoned here: expected = reckoned x this"
        rows.append([f"paper/{rule}", f"{factor:.2f}", text])
    return aligned(rows, left=3)


def study_plan(lines: Sequence[PlanRow]) -> str:
    """A line for each model and rule, and the sums."""
    head = ["model", "rule", "jobs", "GPUs", "h reckoned", "expected", "GPU-h reckoned", "expected"]
    rows = [head]
    for line in lines:
        rows.append([line.model, line.rule, str(line.jobs), str(line.gpus), *_hours(line)])
    sums = [sum(line.gpu_hours(expected=e) for line in lines) for e in (False, True)]
    jobs = str(sum(line.jobs for line in lines))
    rows.append(["all", "", jobs, "", "", "", *(f"{hours:,.0f}" for hours in sums)])
    return aligned(rows, left=2)


def disk_use(kept: Sequence[DiskUsage]) -> str:
    """What the study keeps on disk, in words."""
    weights, samples = (sum(getattr(one, key) for one in kept) / 1e12 for key in WHOLE)
    most = max(one.resuming for one in kept) / GB
    return (
        f"On disk: weights {weights:.1f} TB (fp32, every run's and every snapshot's), samples"
        f" {samples:.2f} TB; while a training runs, up to {most:.0f} GB to resume it from."
    )


def _hours(line: PlanRow) -> list[str]:
    if line.roofline_hours is None or line.expected_hours is None:
        return [MISSING] * 4
    each = [f"{line.roofline_hours:.1f}", f"{line.expected_hours:.1f}"]
    return each + [f"{line.gpu_hours(expected=e):,.0f}" for e in (False, True)]


def gpu_memory(title: str, parts: Sequence[MemoryPart], assumed: Assumptions) -> str:
    """What one GPU holds, part by part, against what it has."""
    rows = [[title, "GB", "how"]]
    rows += [[part.name, f"{part.bytes / GB:.1f}", part.how] for part in parts]
    used = total_bytes(list(parts))
    fits = "fits" if used <= assumed.usable_bytes else "DOES NOT FIT"
    rows.append(["together", f"{used / GB:.1f}", f"{fits} in {assumed.usable_bytes / GB:.1f}"])
    return _left_aligned_how(rows)


def _left_aligned_how(rows: list[list[str]]) -> str:
    width = max(len(row[2]) for row in rows)
    return aligned([[row[0], row[1], row[2].ljust(width)] for row in rows])


def training_state(model: str, blocks: int, storage: str) -> str:
    """The paper's own count of a training state beside its printed digits (Table kfac_memory)."""
    row = memory(architecture(model), blocks, storage)
    published_row = published()["kfac_memory"]["rows"].get(model, {})
    snapshot, extra = rounded_terms(row)
    computed = memory_in_gb(row)
    at_8b = published()["memory_methods"]["rows"]["geosd"]["base"]
    paper = {"base": at_8b if model == REFERENCE else None, **published_row}
    terms = {"snapshot": snapshot, "total": extra}
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
        rounded = format(terms[key], form) if key in terms else ""
        given = MISSING if paper.get(key) is None else format(paper[key], "g")
        rows.append([name, format(computed[key], form), rounded, given])
    return aligned(rows)


def update_units(
    model: str, methods: Mapping[str, UpdateUnits], seconds: Mapping[str, tuple[float, float]]
) -> str:
    """Model-pass units of an update, the paper's at its 8B, and seconds of a step."""
    head = ["Units of an update", "student", "frozen", "anchor", "K-FAC", "all", "paper"]
    rows = [[*head, "s generating", "s updating"]]
    for name, flops in methods.items():
        each = [flops.student, flops.teacher, flops.anchor, flops.kfac, flops.total]
        columns = [MISSING if not value else f"{value:.2f}" for value in each]
        columns.append(_published_total(model, name, flops))
        rows.append([name, *columns, *(f"{value:.1f}" for value in seconds[name])])
    return aligned(rows)


def _published_total(model: str, method: str, flops: UpdateUnits) -> str:
    """The paper's total: of GeoSD, and of every method that a student and a teacher make up."""
    opsd = (flops.student, flops.teacher, flops.anchor, flops.kfac) == (6, 3, None, None)
    row = "geosd" if method == "geosd" else "opsd" if opsd else None
    if row is None or model != REFERENCE:
        return MISSING
    return f"{published()['flops']['rows'][row]['total']:g}"
