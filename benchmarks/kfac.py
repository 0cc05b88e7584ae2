"""GeoSD against FwdKL by turns in one process, and K-FAC alone over blocks, width and subsample.

python benchmarks/kfac.py
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import synthetic
import torch
from measuring import (
    PhaseClock,
    Stopwatch,
    cpu_summary,
    digits,
    finish,
    headline,
    median_phases,
    parser,
    result,
    rotated,
    table,
    with_spread,
)
from steps_geosd import SMOKE, Work, arguments, assemble, phases_of, synthetic_model

from geosd.optim.kfac import KFAC
from geosd.training.loop import train_step

METHODS = {"fwdkl": "FwdKL", "fwdkl+kfac": "FwdKL with K-FAC", "geosd": "GeoSD"}
BLOCKS, WIDTHS, SUBSAMPLES = (1, 2, 4, 8, 16), (64, 128, 256, 512), (1 / 16, 1 / 8, 1 / 4, 1.0)


def whole_steps(name: str, work: Work) -> dict[str, dict[str, Any]]:
    """Steps of the methods by turns: whole, and without sampling."""
    runs = {kind: assemble(*synthetic_model(name), kind, work) for kind in METHODS}
    clocks = {kind: phases_of(run) for kind, run in runs.items()}
    times: dict[str, list[dict[str, float]]] = {kind: [] for kind in runs}
    laps: dict[str, list[dict[str, float]]] = {kind: [] for kind in runs}
    args = arguments(work)
    for step in range(1, 1 + work.warmup + work.steps):
        for kind in rotated(list(runs), step):
            clocks[kind].lap()
            watch = Stopwatch()
            train_step(runs[kind], args, step)
            seconds, lap = watch.read(), clocks[kind].lap()
            if step > work.warmup:
                times[kind].append(seconds)
                laps[kind].append(lap)
    return {
        kind: {
            **cpu_summary(times[kind]),
            "phases": median_phases(laps[kind]),
            "update": cpu_summary(
                {"cpu": sum(lap.values()) - lap["generate"], "wall": 0.0} for lap in laps[kind]
            ),
        }
        for kind in METHODS
    }


class Alone:
    """K-FAC of one model, fed with one backward pass a step."""

    def __init__(self, hidden: int, blocks: int, subsample: float, tokens: tuple[int, int]) -> None:
        """Make a model of two layers, its K-FAC, and a clock on the parts."""
        shape = synthetic.Shape(hidden=hidden, layers=2, head=min(32, hidden // 2))
        self.model = synthetic.model(shape)
        self.ids = torch.tensor(synthetic.prompt_ids(*tokens))
        self.kfac = KFAC(self.model, blocks=blocks, subsample=subsample)
        self.clock = clock = PhaseClock()
        factors = self.kfac.factors
        clock.wrap(factors, "add", "accumulate")
        clock.wrap(factors, "update", "accumulate")
        clock.wrap(factors, "_invert", "invert")
        clock.wrap(self.kfac, "step", "precondition")
        self.laps: list[dict[str, float]] = []

    def step(self) -> None:
        """Forward and backward pass, then K-FAC."""
        self.clock.lap()
        self.model.zero_grad()
        with self.kfac.observe(torch.ones_like(self.ids), self.ids.numel()):
            self.model(input_ids=self.ids).logits.square().mean().backward()
        self.kfac.step()
        self.laps.append(self.clock.lap())


def alone(smoke: bool) -> list[dict[str, Any]]:
    """Accumulate, invert and precondition over g, d and s, each varied around 4, 128 and 1/8."""
    cases = [(128, g, 1 / 8) for g in BLOCKS]
    cases += [(d, 4, 1 / 8) for d in WIDTHS if d != 128]
    cases += [(128, 4, s) for s in SUBSAMPLES if s != 1 / 8]
    if smoke:
        cases = [(32, 2, 0.5)]
    tokens = (2, 8) if smoke else (8, 160)
    made = [Alone(d, g, s, tokens) for d, g, s in cases]
    for _, each in itertools.product(range(2 if smoke else 8), made):
        each.step()
    return [
        {"d": d, "g": g, "s": s, **median_phases(each.laps[1:])}
        for (d, g, s), each in zip(cases, made, strict=True)
    ]


def main() -> None:
    """Measure both."""
    options = parser(__doc__)
    options.add_argument("--models", nargs="+", default=["0.8M", "4.8M"])
    options.add_argument("--steps", type=int, default=7)
    given = options.parse_args()
    torch.set_num_threads(1)
    work = Work(steps=given.steps)
    if given.smoke:
        given.models, work = ["tiny"], replace(work, **SMOKE, steps=2, warmup=0)
    found, rows, ratios = {}, [], []
    for name in given.models:
        found[name] = of = whole_steps(name, work)
        base = of["fwdkl"]
        for kind, label in METHODS.items():
            whole, update = (each["median"] for each in (of[kind], of[kind]["update"]))
            rows.append(
                [
                    f"{label}, {name}",
                    with_spread(of[kind]),
                    digits(whole / base["median"]),
                    with_spread(of[kind]["update"]),
                    digits(update / base["update"]["median"]),
                    *(digits(of[kind]["phases"].get(phase)) for phase in ("anchor", "K-FAC")),
                ]
            )
        ratio = of["geosd"]["median"] / base["median"]
        ratios.append(
            headline(
                f"GeoSD step over FwdKL, {name}, by turns", ratio, "at most 1.10", ratio <= 1.1
            )
        )
    parts = alone(given.smoke)
    tables = [
        table(
            "GeoSD against FwdKL, by turns",
            ["method", "step, CPU s", "× FwdKL", "without sampling", "× FwdKL", "anchor", "K-FAC"],
            rows,
            "The paper counts 1.27 times the operations and measures 1.10 times the wall time, both"
            " at 8B, where sampling is not part of the former.",
        ),
        table(
            "K-FAC alone: milliseconds a step over width d, blocks g, subsample s",
            ["d, g, s", "accumulate", "invert", "precondition", "forward and backward"],
            [
                [
                    f"{part['d']}, {part['g']}, {part['s']:.3g}",
                    *(
                        1e3 * part[name]
                        for name in ("accumulate", "invert", "precondition", "rest")
                    ),
                ]
                for part in parts
            ],
            "Two layers of width d, feed-forward 3 d, 8 sequences of 160 tokens.",
        ),
    ]
    finish(result("kfac", tables, {"steps": found, "alone": parts}, ratios), given.out)


if __name__ == "__main__":
    main()
