"""How a step grows: batch, response length, vocabulary, K, layers; fitted exponents.

    python benchmarks/scaling.py

Around one base size, each quantity alone is varied; the exponent b of seconds ~ a x^b is fitted by
least squares of logarithms, for the whole step and for its parts. Below 1: a fixed share remains.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import synthetic
import torch
from measuring import (
    PhaseClock,
    digits,
    finish,
    in_child,
    median_phases,
    parser,
    result,
    table,
)
from steps_geosd import Work, arguments, assemble, phases_of

from geosd.training.loop import train_step

BASE = {"batch": 8, "length": 64, "vocabulary": 1024, "K": 128, "layers": 4}
VALUES = {
    "batch": (4, 8, 16, 32, 64),
    "length": (32, 64, 128, 256),
    "vocabulary": (256, 1024, 4096, 16384),
    "K": (32, 64, 128, 256, 512),
    "layers": (2, 4, 8, 16),
}
PARTS = {
    "sampling": ("generate",),
    "passes": ("teacher", "anchor", "pi_0", "student", "backward"),
    "loss": ("loss",),
    "K-FAC and optimiser": ("K-FAC", "optimiser"),
}


def measure(size: dict[str, int], steps: int) -> dict[str, float]:
    """CPU seconds of a step of GeoSD by part."""
    torch.set_num_threads(1)
    shape = synthetic.Shape(128, size["layers"], vocabulary=size["vocabulary"])
    work = Work(problems=size["batch"], new=size["length"], top_k=size["K"])
    work = replace(work, warmup=1, steps=steps, compiled=False)
    run = assemble(synthetic.model(shape), synthetic.tokenizer(shape.vocabulary), "geosd", work)
    clock: PhaseClock = phases_of(run)
    laps = []
    for step in range(1, 1 + work.warmup + work.steps):
        clock.lap()
        train_step(run, arguments(work), step)
        laps.append(clock.lap())
    phases = median_phases(laps[work.warmup :])
    parts = {part: sum(phases.get(name, 0.0) for name in of) for part, of in PARTS.items()}
    return {"whole step": sum(phases.values()), **parts}


def exponent(x: list[float], seconds: list[float]) -> float:
    """The slope of log seconds over log x."""
    a, b = ([math.log(value) for value in values] for values in (x, seconds))
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    covariance = sum((u - mean_a) * (v - mean_b) for u, v in zip(a, b, strict=True))
    return covariance / sum((u - mean_a) ** 2 for u in a)


def main() -> None:
    """Measure each quantity's sizes, one process each, and fit."""
    options = parser(__doc__)
    options.add_argument("--steps", type=int, default=3)
    given = options.parse_args()
    base, sweeps = BASE, VALUES
    if given.smoke:
        base = {"batch": 2, "length": 4, "vocabulary": 128, "K": 8, "layers": 1}
        sweeps, given.steps = {"batch": (2, 4)}, 1
    known: dict[tuple[int, ...], dict[str, float]] = {}
    data: dict[str, list[dict[str, Any]]] = {}
    rows = []
    for name, values in sweeps.items():
        data[name] = []
        for value in values:
            size = {**base, name: value}
            key = tuple(size.values())
            if key not in known:
                known[key] = in_child(partial(measure, size, given.steps))
            data[name].append({name: value, **known[key]})
        fits = [
            exponent(list(values), [each[part] for each in data[name]])
            for part in ("whole step", *PARTS)
        ]
        ends = [digits(data[name][i]["whole step"]) for i in (0, -1)]
        span = f"{name}, {values[0]:,} to {values[-1]:,}"
        rows.append([span, *ends, *(f"{fit:.2f}" for fit in fits)])
    at = ", ".join(f"{name} {value:,}" for name, value in base.items())
    columns = ["what grows", "first, CPU s", "last, CPU s", "whole step", *PARTS]
    notes = (
        f"GeoSD with K-FAC, hidden 128, around {at}. Exponents of CPU seconds."
        " The sampler's step is not compiled here: each size would need a compilation of its own."
    )
    tables = [table("Growth of a step", columns, rows, notes)]
    finish(result("scaling", tables, {"base": base, "sweeps": data}), given.out)


if __name__ == "__main__":
    main()
