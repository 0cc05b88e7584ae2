"""The plan of a study as text tables for the terminal (`make plan`): hours, disk, memory."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import NamedTuple

from geosd.costs.assumptions import Assumptions
from geosd.costs.hours import HOUR, PlanRow, likely_hours
from geosd.costs.memory_and_disk import GB, MemoryPart, total_bytes
from geosd.reporting.tables import MISSING, markdown_table

ASSUMPTION_LABELS = {
    "gpu": "the GPU: {memory:.0f} GB, {bandwidth:g} TB/s, {flops:g} TFLOP/s dense bf16",
    "mfu": "share of its FLOP/s that passes over sequences get",
    "bandwidth_share": "share of its bandwidth that decoding gets",
    "usable": "share of its memory that is planned with",
    "length": "mean response, in caps; a step waits for the cap",
    "prompt": "tokens of a question with its template",
    "concurrent": "responses decoded side by side at most",
}


def assumption_table(assumed: Assumptions) -> str:
    """The plan's table of everything that its hours rest on, a line each."""
    gpu = assumed.device
    sheet = {
        "memory": gpu.memory / GB,
        "bandwidth": gpu.bandwidth / 1e12,
        "flops": gpu.flops / 1e12,
    }
    rows = [["Assumed", "", ""]]
    rows += [
        [k, str(getattr(assumed, k)), text.format(**sheet)] for k, text in ASSUMPTION_LABELS.items()
    ]
    return markdown_table(rows, left=3)


class CalendarRow(NamedTuple):
    """A row of the plan's table of schedules: bounds, seconds, most GPUs in use, peak on disk."""

    bounds: Mapping[str, int]
    seconds: float
    gpus: int
    peak: Sequence[MemoryPart]


def time_words(seconds: float) -> str:
    """A duration in the unit that suits it.

    Example:
        >>> [time_words(s) for s in (0, 0.29, 45, 600, 15_000, 2_200_000)]
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


def rule_table(
    plan: Sequence[PlanRow],
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
    head = "rule, jobs, done, GPUs, reckoned, measured, asks for, pieces, GPU-h"
    rows, total, likely = [head.split(", ")], 0.0, likely_hours(plan)
    for rule in dict.fromkeys(row.rule for row in plan):
        of_rule = [(r, hours) for r, hours in zip(plan, likely, strict=True) if r.rule == rule]
        gpu_hours = sum(row.jobs * row.gpus * (hours or 0.0) for row, hours in of_rule)
        asked = [limits[row.model, rule] for row, _ in of_rule if limits]
        total += gpu_hours
        rows.append([
            rule,
            str(jobs.get(rule, 0)),
            str(sum(row.done for row, _ in of_rule)),
            _each(str(row.gpus) for row, _ in of_rule),
            _each(_hours(row.reckoned) for row, _ in of_rule),
            _each(_hours(row.measured) for row, _ in of_rule),
            _each(time_words(60 * minutes) for minutes, _ in asked),
            _each(str(times) for _, times in asked),
            f"{gpu_hours:,.0f}" if gpu_hours else MISSING,
        ])  # fmt: skip
    shown = {row.rule for row in plan}
    others = {rule: n for rule, n in jobs.items() if rule not in shown}
    rows.append(["others", str(sum(others.values())), *[""] * 7])
    rows.append(["all", f"{sum(jobs.values()):,}", *[""] * 6, f"{total:,.0f}"])
    named = ", ".join(rule if n == 1 else f"{n} {rule}" for rule, n in sorted(others.items()))
    words = f"Others, of seconds or minutes, without GPU: {named}." if others else ""
    first, second, *more = zip(*rows, strict=True)
    said = [column for column in more if {*column[1:]} - {"", "0", MISSING}]
    table = markdown_table([*zip(first, second, *said, strict=True)])
    return "\n\n".join(filter(None, [table, fill(words, 80)]))


def _hours(hours: float | None) -> str:
    return MISSING if hours is None else time_words(hours * HOUR)


def _each(cells: Iterable[str]) -> str:
    """The cells of the models, or the one that all have; a unit of all stands once, at the end."""
    different = [*cells]
    text = "/".join(different if len({*different}) > 1 else different[:1]) or MISSING
    units = {cell.partition(" ")[2] for cell in different}
    return text.replace(f" {min(units)}/", "/") if len(units) == 1 else text


def calendar_table(calendar: Sequence[CalendarRow]) -> str:
    """The plan's table of how long a study takes, a line for each choice of bounds."""
    rows = [["jobs at once", "trainings", "GPUs at most", "takes at least", "TB on disk"]]
    for row in calendar:
        bounds = [str(row.bounds.get(name, MISSING)) for name in ("jobs", "trainings")]
        disk = f"{total_bytes(row.peak) / 1e12:.2f}" if row.peak else MISSING
        rows.append([*bounds, str(row.gpus), time_words(row.seconds), disk])
    note = (
        "First at the bounds of profiles/slurm/site.yaml, or those given; last without any. Not"
        " counted: waiting in SLURM's queue, retries, rules whose time is not known."
    )
    return f"{markdown_table(rows, left=0)}\n\n{fill(note, 80)}"


def peak_table(parts: Sequence[MemoryPart]) -> str:
    """The plan's table of the most that a study has on disk at once, part by part."""
    entries = [("On disk at most", "TB", "how")]
    entries += [(name, f"{size / 1e12:.2f}", how) for name, size, how in parts]
    entries.append(("together", f"{total_bytes(parts) / 1e12:.2f}", ""))
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
