"""When the jobs of a study would run: their graph simulated under bounds on what runs at once.

List scheduling (Graham 1966), as Snakemake does it: whenever a job ends, jobs whose inputs are
there start in the order of their priority, as far as the bounds allow. The time that jobs wait for
a node in SLURM's queue is not known and not counted.
"""

import heapq
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

Bounds = Mapping[str, int]
"""Resource -> how much of it may be in use at once; a resource without a bound is unlimited."""


class ScheduledTask(NamedTuple):
    """A job of a schedule: seconds, the tasks it waits for (by index), and what it occupies."""

    seconds: float
    needs: Sequence[int] = ()
    uses: Mapping[str, int] = {}
    priority: int = 0


def scheduled_start_times(tasks: Sequence[ScheduledTask], bounds: Bounds) -> list[float]:
    """Seconds after which each task starts: the higher priority first, then the order of `tasks`.

    Raises:
        ValueError: A task uses more than a bound, or waits for itself.
    """
    for task in tasks:
        for name, amount in task.uses.items():
            if amount > bounds.get(name, amount):
                raise ValueError(
                    f"a job needs {amount} {name}, of which {bounds[name]} may be in use at once.\n"
                    f"Hint: --{name} {amount}, or more."
                )
    missing = [len(set(task.needs)) for task in tasks]
    readers: list[list[int]] = [[] for _ in tasks]
    for index, task in enumerate(tasks):
        for need in set(task.needs):
            readers[need].append(index)
    ready = sorted((-task.priority, i) for i, task in enumerate(tasks) if not missing[i])
    starts = [-1.0] * len(tasks)
    now = 0.0
    running: list[tuple[float, int]] = []  # a heap of ends
    free = dict(bounds)
    while ready or running:
        waiting = []
        for priority, index in ready:
            task = tasks[index]
            bounded = {name: n for name, n in task.uses.items() if name in free}
            if any(n > free[name] for name, n in bounded.items()):
                waiting.append((priority, index))
                continue
            for name, n in bounded.items():
                free[name] -= n
            starts[index] = now
            heapq.heappush(running, (now + task.seconds, index))
        ready = waiting
        if not running:
            break
        now = running[0][0]
        while running and running[0][0] == now:
            _, ended = heapq.heappop(running)
            for name, n in tasks[ended].uses.items():
                if name in free:
                    free[name] += n
            for reader in readers[ended]:
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append((-tasks[reader].priority, reader))
        ready.sort()
    if -1.0 in starts:
        raise ValueError(f"task {starts.index(-1.0)} waits for itself.\nHint: jobs form no circle.")
    return starts


def schedule_duration(tasks: Sequence[ScheduledTask], starts: Sequence[float]) -> float:
    """Seconds until the last task ends."""
    return max((at + task.seconds for at, task in zip(starts, tasks, strict=True)), default=0.0)


def most_scheduled(tasks: Sequence[ScheduledTask], starts: Sequence[float], resource: str) -> int:
    """The most of a resource that is in use at once."""
    changes = []
    for at, task in zip(starts, tasks, strict=True):
        n = task.uses.get(resource, 0)
        if task.seconds and n:
            changes += [(at, n), (at + task.seconds, -n)]
    return max(accumulate(n for _, n in sorted(changes)), default=0)
