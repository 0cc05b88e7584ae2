"""Steps of a run in which something is not as it should be, counted from the step log.

skipped                    loss, gradient or a factor was not finite, or a factor had no inverse:
                           weights, moments and factors stayed as they were
blocks in float64          float32 was too coarse for the inverse of a factor's block
an empty response          a response is its end alone: one position, as the end of any other
all responses truncated    a step like any other: the states were visited
all responses right        no gradient in GRPO, else a step like any other
all responses wrong        the same
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

IRREGULAR: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "skipped": ("update/skipped", lambda value: value > 0),
    "blocks in float64": ("curvature/float64_blocks", lambda value: value > 0),
    "an empty response": ("rollout/empty", lambda value: value > 0),
    "all responses truncated": ("rollout/truncated", lambda value: value == 1),
    "all responses right": ("rollout/accuracy", lambda value: value == 1),
    "all responses wrong": ("rollout/accuracy", lambda value: value == 0),
}
"""Kind of step -> its column of the step log, and which values are of that kind."""


def count_irregular_steps(log: Path, steps: int) -> dict[str, int]:
    """How many of a finished run's `steps` are of each kind of `IRREGULAR`, by its steps.csv.

    The last row of the log is the trained student's and no step.
    """
    with log.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) < steps]
    return {
        kind: sum(1 for row in rows if row.get(column) and matches(float(row[column])))
        for kind, (column, matches) in IRREGULAR.items()
    }
