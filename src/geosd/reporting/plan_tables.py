"""The plan of a study as text tables for the terminal (`make plan`): hours, disk, memory."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

from geosd.costs.assumptions import Assumptions
from geosd.costs.fitting import FittingGpu, parts_not_fitting, smallest_fitting_gpu
from geosd.costs.gpu_memory import total_gpu_memory
from geosd.costs.hours import HOUR, HoursRow, WeightSyncHours, likely_hours
from geosd.costs.memory_and_disk import GB, MemoryAndDiskPart
from geosd.reporting.tables import MISSING, markdown_table

ASSUMPTION_LABELS = {
    "gpu": "the GPU: {memory:.0f} GB, {bandwidth:g} TB/s, {flops:g} TFLOP/s dense bf16",
    "gpu_gb": "its memory in GB of 2^30 bytes, in place of the data sheet's",
    "mfu": "share of its FLOP/s that passes over sequences get",
    "bandwidth_share": "share of its bandwidth that decoding gets",
    "usable": "share of its memory that is planned with",
    "length": "mean response, in caps; a step waits for the cap",
    "prompt": "tokens of a question with its template",
    "concurrent": "responses decoded side by side at most",
}


def plan_assumption_table(assumed: Assumptions) -> str:
    """The plan's table of everything that its hours rest on, a line each."""
    gpu = assumed.device
    sheet = {
        "memory": gpu.memory / GB,
        "bandwidth": gpu.bandwidth / 1e12,
        "flops": gpu.flops / 1e12,
    }
    rows = [["Assumed", "", ""]]
    for name, label in ASSUMPTION_LABELS.items():
        if getattr(assumed, name) is None:
            continue
        rows.append([name, str(getattr(assumed, name)), label.format(**sheet)])
    return markdown_table(rows, left=3)


class PlanCalendarRow(NamedTuple):
    """A row of the plan's table of schedules: bounds, seconds, most GPUs in use, peak on disk."""

    bounds: Mapping[str, int]
    seconds: float
    gpus: int
    peak: Sequence[MemoryAndDiskPart]


class PlanDesignRow(NamedTuple):
    """A design of a study: seeds of a model in the mean, GPU-hours, their share, power by claim."""

    name: str
    seeds: float
    gpu_hours: float
    share: float
    power: Sequence[float]


def plan_design_table(
    designs: Sequence[PlanDesignRow], ends: Sequence[tuple[int, float]], claims: Sequence[str]
) -> str:
    """The plan's table of a study in stages beside the study that it stands for.

    `ends` are the seeds of each stage, and the GPU-hours of a study that ends there.
    """
    rows = [["design", "seeds", "GPU-h", "share", "power"]]
    for row in designs:
        power = "/".join(f"{each:.3f}".removeprefix("0") for each in row.power)
        hours = f"{row.gpu_hours:,.0f}"
        rows.append([row.name, f"{row.seeds:.1f}", hours, f"{100 * row.share:.0f} %", power])
    stages = ", ".join(f"{hours:,.0f} after {seeds} seeds" for seeds, hours in ends)
    note = (
        f"Seeds and hours of the stages in the mean, where a model ends once its rows are decided;"
        f" with all models {stages}. Power: rows that agree at the paper's effects, of"
        f" {', '.join(claims)}."
    )
    return f"{markdown_table(rows)}\n\n{fill(note, 80)}"


def plan_time_words(seconds: float) -> str:
    """A duration in the unit that suits it.

    Example:
        >>> [plan_time_words(s) for s in (0, 0.29, 45, 600, 15_000, 2_200_000)]
        ['0 s', '.3 s', '45 s', '10 min', '4.2 h', '25 days']
    """
    if 0 < seconds < 0.95:
        return f"{seconds:.1f} s"[1:]
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 99.5 * HOUR:
        return f"{seconds / HOUR:.1f} h".replace(".0", "")
    return f"{seconds / (24 * HOUR):.0f} days"


def plan_rule_table(
    plan: Sequence[HoursRow],
    jobs: Mapping[str, int],
    limits: Mapping[tuple[str, str], tuple[int, int]],
) -> str:
    """The plan's table of jobs, GPUs and times: a line for each rule of each model's jobs.

    What differs between models stands in their order, with slashes between. GPU-hours are at the
    times measured, else reckoned (`likely_hours`). Columns that say nothing are left out.

    Args:
        jobs: Rule -> how many Snakemake would run, of all rules.
        limits: Model and rule -> minutes that a job asks for, and how often it is submitted at most
            to be done; empty where no job is submitted.
    """
    by_rule: dict[str, list[HoursRow]] = {}
    hours_by_rule: dict[str, float] = {}
    for row, hours in zip(plan, likely_hours(plan), strict=True):
        by_rule.setdefault(row.rule, []).append(row)
        gpu_hours = row.jobs * row.gpus * (hours or 0.0)
        hours_by_rule[row.rule] = hours_by_rule.get(row.rule, 0) + gpu_hours
    head = "rule, jobs, done, GPUs, reckoned, measured, asks for, pieces, GPU-h"
    lines = [head.split(", ")]
    for rule, rows in by_rule.items():
        asked = [limits[row.model, rule] for row in rows] if limits else []
        lines.append(_rule_line(rule, rows, jobs.get(rule, 0), asked, hours_by_rule[rule]))
    others = {rule: count for rule, count in jobs.items() if rule not in by_rule}
    nothing = [""] * 6
    lines.append(["others", str(sum(others.values())), *nothing, ""])
    total = sum(hours_by_rule.values(), start=0.0)
    lines.append(["all", f"{sum(jobs.values()):,}", *nothing, _gpu_hours(total)])
    table = markdown_table(_without_empty_columns(lines))
    if not others:
        return table
    named = [rule if count == 1 else f"{count} {rule}" for rule, count in sorted(others.items())]
    words = f"Others, of seconds or minutes, without GPU: {', '.join(named)}."
    return f"{table}\n\n{fill(words, 80)}"


def _rule_line(
    rule: str,
    rows: Sequence[HoursRow],
    jobs: int,
    asked: Sequence[tuple[int, int]],
    gpu_hours: float,
) -> list[str]:
    """The line of a rule: `rows` and `asked` (minutes, and how often) are those of the models."""
    return [
        rule,
        str(jobs),
        str(sum(row.done for row in rows)),
        _each(str(row.gpus) for row in rows),
        _each(_hours(row.reckoned) for row in rows),
        _each(_hours(row.measured) for row in rows),
        _each(plan_time_words(60 * minutes) for minutes, _ in asked),
        _each(str(times) for _, times in asked),
        _gpu_hours(gpu_hours) if gpu_hours else MISSING,
    ]


def _gpu_hours(hours: float) -> str:
    """GPU-hours, below ten with a decimal."""
    return f"{hours:.1f}" if 0 < hours < 9.95 else f"{hours:,.0f}"


def _without_empty_columns(lines: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Lines without the columns, from the third on, that say nothing below their heading."""
    first, second, *others = zip(*lines, strict=True)
    shown = [column for column in others if set(column[1:]) - {"", "0", MISSING}]
    return list(zip(first, second, *shown, strict=True))


def _hours(hours: float | None) -> str:
    return MISSING if hours is None else plan_time_words(hours * HOUR)


def _each(cells: Iterable[str]) -> str:
    """Join the models' cells with slashes; one cell if all agree, a shared unit once."""
    cells = list(cells)
    if not cells:
        return MISSING
    if len(set(cells)) == 1:
        return cells[0] or MISSING
    text = "/".join(cells)
    units = {cell.partition(" ")[2] for cell in cells}
    if len(units) == 1:
        (unit,) = units
        text = text.replace(f" {unit}/", "/")
    return text


def plan_calendar_table(calendar: Sequence[PlanCalendarRow]) -> str:
    """The plan's table of how long a study takes, a line for each choice of bounds."""
    rows = [["jobs at once", "trainings", "GPUs at most", "takes at least", "TB on disk"]]
    for row in calendar:
        bounds = [str(row.bounds.get(name, MISSING)) for name in ("jobs", "trainings")]
        disk = f"{total_gpu_memory(row.peak) / 1e12:.2f}" if row.peak else MISSING
        rows.append([*bounds, str(row.gpus), plan_time_words(row.seconds), disk])
    note = (
        "First at the bounds of profiles/slurm/site.yaml, or those given; last without any. Not"
        " counted: waiting in SLURM's queue, retries, rules whose time is not known."
    )
    return f"{markdown_table(rows, left=0)}\n\n{fill(note, 80)}"


def plan_sync_words(syncs: Mapping[str, WeightSyncHours]) -> str:
    """What a sync of the weights takes, by model, in words; nothing where no engine has a copy."""
    if not syncs:
        return ""
    each = [
        f"{model} {sync.bytes / GB:.1f} GB, {plan_time_words(sync.seconds)}"
        for model, sync in syncs.items()
    ]
    return fill(f"New weights for vLLM at each step of a training: {'; '.join(each)}.", 80)


def plan_peak_table(parts: Sequence[MemoryAndDiskPart]) -> str:
    """The plan's table of the most that a study has on disk at once, part by part."""
    entries = [("On disk at most", "TB", "how")]
    entries += [(name, f"{size / 1e12:.2f}", how) for name, size, how in parts]
    entries.append(("together", f"{total_gpu_memory(parts) / 1e12:.2f}", ""))
    return _sum_table(entries)


def plan_fitting_table(needs: Mapping[str, Sequence[FittingGpu]], assumed: Assumptions) -> str:
    """The plan's table of whether each job fits the assumed GPU, and of the smallest that holds it.

    What differs between models stands in their order, with slashes between.
    """
    name = assumed.gpu if assumed.gpu_gb is None else f"{assumed.gpu_gb:g} GB"
    device = assumed.device.memory
    rows = [["a GPU of", "must have, GB", f"{name} has {device / GB:.0f}", "smallest that fits"]]
    by_part: dict[str, list[FittingGpu]] = {}
    for of_model in needs.values():
        for need in of_model:
            by_part.setdefault(need.part, []).append(need)
    for part, each in by_part.items():
        sizes = _each(f"{need.bytes / GB:.0f}" for need in each)
        verdict = _each("fits" if need.bytes <= device else "TOO SMALL" for need in each)
        rows.append(
            [part, sizes, verdict, _each(smallest_fitting_gpu(n.bytes) or "none" for n in each)]
        )
    table = markdown_table(rows)
    if not parts_not_fitting(needs, assumed):
        return table
    hint = (
        f"Hint: not every job fits a GPU of {device / GB:.0f} GB; docs/gpu.md has placements for"
        " smaller GPUs, `resources` of params.yaml takes them."
    )
    return f"{table}\n\n{fill(hint, 80)}"


def plan_gpu_memory_table(
    title: str, parts: Sequence[MemoryAndDiskPart], assumed: Assumptions
) -> str:
    """The plan's table of what one GPU holds, part by part, against what it has."""
    used = total_gpu_memory(parts)
    usable = assumed.usable_bytes
    verdict = "fits" if used <= usable else "DOES NOT FIT"
    entries = [(title, "GB", "how")]
    entries += [(name, f"{size / GB:.1f}", formula) for name, size, formula in parts]
    entries.append(("together", f"{used / GB:.1f}", f"{verdict} in {usable / GB:.1f}"))
    return _sum_table(entries)


def _sum_table(entries: Sequence[tuple[str, str, str]]) -> str:
    """A table of parts, whose last column of words is flush left."""
    width = max(len(how) for *_, how in entries)
    return markdown_table([[name, size, how.ljust(width)] for name, size, how in entries])
