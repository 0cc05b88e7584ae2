"""Least cost of a step: the miniature's on this core, and the 8B step's on an H200.

The first is measured over its floor, the second reckoned.

    python benchmarks/floors.py

The floor of a phase is the larger of its arithmetic at the measured rate of a large matrix product
and its bytes at the measured bandwidth. With it: how many torch operations the phase starts, and
what as many of the smallest operation cost, which is most of a small model's step.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from generation import bandwidth_at, floor_seconds, rates
from measuring import (
    PhaseClock,
    finish,
    median_phases,
    parser,
    result,
    table,
)
from steps_geosd import Work, arguments, assemble, phases_of
from synthetic import Shape, tokenizer
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from geosd.costs.assumptions import Assumptions
from geosd.costs.hours import decoding_seconds
from geosd.costs.update_operations import (
    BACKWARD,
    FORWARD,
    UpdateOperationsSize,
    kfac_units,
    units_counted,
)
from geosd.costs.workload import SamplingWorkload
from geosd.models.architectures import architecture, tiny_architecture
from geosd.models.tiny_models import build_tiny_model
from geosd.optim.partition import partition
from geosd.training.loop import train_step

LETTERS = 128
MINIATURE = Work(prompt=32, privileged=30, new=36, top_k=16, blocks=4, subsample=1.0, steps=20)
WORDS = {
    "generate": "sampling",
    "teacher": "teacher's pass",
    "anchor": "anchor's pass",
    "student": "student's pass",
    "loss": "heads and loss",
    "backward": "backward pass",
    "K-FAC": "K-FAC",
    "optimiser": "AdamW",
    "rest": "rest",
}


class CountOperations(TorchDispatchMode):
    """Counts the torch operations that each phase of a clock starts."""

    def __init__(self, clock: PhaseClock) -> None:
        """Count nothing yet."""
        super().__init__()
        self.clock, self.started = clock, Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count one and run it."""
        self.started[self.clock._stack[-1]] += 1
        return func(*args, **(kwargs or {}))


KINDS = {  # of operations, by their names; the first that matches
    "attention": r"aten::\w*(attention|sdpa)",
    "factorisations": r"aten::\w*(linalg|cholesky|triangular)",
    "matrix products": r"aten::\w*(mm|matmul|linear|bmm|mv|dot|einsum)",
    "top K, gathers, scatters": r"aten::\w*(topk|sort|gather|scatter|index|embedding|where|masked)",
    "copies and new tensors": r"aten::\w*(copy|cat|clone|empty|zeros|fill|contiguous|resize|_to_)",
    "elementwise and sums": r"aten::",
    "autograd and Python functions": r"",
}


def shares_by_kind(step: Any, steps: int) -> dict[str, tuple[float, int]]:
    """Share of torch's own time and number of operations a step, by kind of operation."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        for _ in range(steps):
            step()
    spent, started = Counter(), Counter()
    for event in seen.key_averages():
        kind = next(kind for kind, names in KINDS.items() if re.match(names, event.key))
        spent[kind] += event.self_cpu_time_total
        started[kind] += event.count // steps
    total = sum(spent.values())
    return {kind: (spent[kind] / total, started[kind]) for kind in KINDS}


def smallest_operation() -> float:
    """Seconds of adding two small tensors in place: the price of starting an operation."""
    a, b = torch.zeros(8, 64), torch.ones(8, 64)
    with torch.inference_mode():
        best = float("inf")
        for _ in range(20):
            began = time.process_time()
            for _ in range(1000):
                a.add_(b)
            best = min(best, (time.process_time() - began) / 1000)
    return best


def miniature_floor(shape: Shape, work: Work, measured: dict[str, Any]) -> dict[str, float]:
    """Least seconds of each phase of GeoSD's step."""
    rows, response = work.problems, work.new
    lengths = {"teacher": work.prompt + work.privileged + response}
    lengths |= dict.fromkeys(("anchor", "student"), work.prompt + response)
    attention = 4 * shape.layers * shape.heads * shape.head

    def seconds(operations: float, moved: float) -> float:
        return max(operations / measured["flops"], moved / bandwidth_at(measured, moved))

    weights = 4 * shape.parameters
    floor = {}
    for name, tokens in lengths.items():
        passed = rows * tokens * (2 * shape.projections + attention * tokens / 2)
        floor[name] = seconds(passed, weights)
    head = 2 * rows * response * shape.hidden * shape.vocabulary
    floor["loss"] = seconds(3 * head, 3 * 4 * rows * response * shape.vocabulary)
    floor["backward"] = 2 * floor["student"] + seconds(2 * head, 0.0)
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    outputs = [queries, keys, keys, shape.hidden, shape.ffn, shape.ffn, shape.hidden]
    inputs = [shape.hidden, queries, shape.hidden, shape.ffn]  # q k v share one, gate and up one
    sides = [*outputs, *inputs]

    def power(side: int, exponent: int) -> int:
        return sum(run.count * run.size**exponent for run in partition(side, work.blocks))

    squares, cubes = (shape.layers * sum(power(side, n) for side in sides) for n in (2, 3))
    drawn = work.subsample * rows * lengths["student"]
    products = 2 * shape.projections * (power(shape.hidden, 2) / shape.hidden) * 2
    floor["K-FAC"] = seconds(2 * squares * drawn + cubes + products, 3 * 4 * squares)
    floor["optimiser"] = seconds(10 * shape.parameters, 7 * weights)  # reads 4, writes 3
    floor["generate"] = floor_seconds(shape, rows, work.prompt, response, measured)["floor"]
    return floor


def miniature(work: Work, measured: dict[str, Any]) -> dict[str, Any]:
    """GeoSD's step on mini-qwen3's dimensions: seconds, operations, floor by phase."""
    torch.set_num_threads(1)
    of = tiny_architecture("mini-qwen3", LETTERS)
    model = build_tiny_model("mini-qwen3", LETTERS, pad_id=0, end_id=2, seed=0)
    run = assemble(model, tokenizer(LETTERS), "geosd", work)
    clock, args, laps = phases_of(run), arguments(work), []
    for step in range(1, 1 + work.warmup + work.steps):
        clock.lap()
        train_step(run, args, step)
        laps.append(clock.lap())
    with CountOperations(clock) as counter:
        train_step(run, args, 1 + work.warmup + work.steps)
    after = itertools.count(2 + work.warmup + work.steps)
    kinds = shares_by_kind(lambda: train_step(run, args, next(after)), min(5, work.steps))
    shape = Shape(of.hidden, of.layers, vocabulary=LETTERS, head=of.head)
    return {
        "phases": median_phases(laps[work.warmup :]),
        "operations": dict(counter.started),
        "kinds": kinds,
        "floor": miniature_floor(shape, work, measured),
    }


def h200() -> list[tuple[str, float, float]]:
    """Least seconds of the parts of an 8B step on one H200, and at usual shares of its sheet."""
    model, size = architecture("qwen3-8b"), UpdateOperationsSize()
    sampling, rows = SamplingWorkload(size.sequences, size.tokens), []
    # As costs.hours reckons for plans: 0.4 of the operations, 0.7 of the bandwidth.
    for assumed in (Assumptions(mfu=1.0, bandwidth_share=1.0, prompt=256), Assumptions()):
        rate = assumed.mfu * assumed.device.flops
        unit = model.parameters * size.total / rate
        units = units_counted(model, size, kfac_units(model, size, share_inputs=True).total)
        student = units.student * unit
        # AdamW reads weight, gradient and two moments, and writes all but the gradient.
        adamw = 7 * 4 * model.parameters / (assumed.bandwidth_share * assumed.device.bandwidth)
        rows.append(
            [
                decoding_seconds(model, sampling, 1, assumed),
                units.teacher * unit,
                (units.anchor or 0.0) * unit,
                student * FORWARD / (FORWARD + BACKWARD),
                student * BACKWARD / (FORWARD + BACKWARD),
                (units.kfac or 0.0) * unit,
                adamw,
            ]
        )
    names = [
        f"sampling, {size.sequences} responses of {size.tokens} tokens",
        *(WORDS[name] for name in ("teacher", "anchor", "student", "backward", "K-FAC")),
        WORDS["optimiser"],
    ]
    return [*zip(names, *rows, strict=True), ("whole step", *map(sum, rows))]


def main() -> None:
    """Measure the miniature's step, reckon both floors."""
    given = parser(__doc__).parse_args()
    work = MINIATURE
    if given.smoke:
        work = replace(work, problems=2, new=4, steps=1, warmup=1, compiled=False)
    torch.set_num_threads(1)
    measured, smallest = rates(given.smoke), smallest_operation()
    of = miniature(work, measured)
    rows = []
    for phase, label in WORDS.items():
        seconds, floor = of["phases"].get(phase, 0.0), of["floor"].get(phase)
        operations = of["operations"].get(phase, 0)
        cells = [1e3 * seconds, 1e3 * floor if floor else None, seconds / floor if floor else None]
        rows.append([label, *cells, operations, 1e3 * operations * smallest])
    total, least = sum(of["phases"].values()), sum(of["floor"].values())
    started = sum(of["operations"].values())
    cells = [1e3 * total, 1e3 * least, total / least, started, 1e3 * started * smallest]
    rows.append(["whole step", *cells])
    columns = ["phase", "CPU ms", "floor, ms", "× floor", "operations", "their start, ms"]
    notes = (
        f"mini-qwen3's dimensions, {work.problems} problems, prompts of {work.prompt} tokens and"
        f" {work.privileged} more for the teacher, {work.new} new tokens, GeoSD with K-FAC."
        f" One thread: matrix product {measured['flops'] / 1e9:.0f} GFLOP/s; the smallest torch"
        f" operation takes {1e6 * smallest:.2f} µs, and `their start` is that times the operations."
        " Operations inside compiled code are not seen."
    )
    large = h200()
    both = "H200 SXM by its data sheet: 989 TFLOP/s in bf16, 4.8 TB/s. Reckoned, not measured."
    tables = [
        table("The miniature's step and its floor", columns, rows, notes),
        table(
            "What the miniature's step does, by kind of operation",
            ["kind", "share of torch's time", "operations"],
            [[kind, f"{100 * share:.0f} %", count] for kind, (share, count) in of["kinds"].items()],
            "By torch's profiler, whose own cost makes small operations dearer than they are.",
        ),
        table(
            "Qwen3-8B on one H200, GeoSD: the step's floor",
            ["part", "floor, s", "share", "at 0.4 of the operations, 0.7 of the bandwidth, s"],
            [
                [name, least, f"{100 * least / large[-1][1]:.0f} %", usual]
                for name, least, usual in large
            ],
            f"8 responses of 4,096 tokens, prompts of 256. {both}",
        ),
    ]
    data = {"rates": measured, "smallest": smallest, "miniature": of, "h200": large}
    finish(result("floors", tables, data), given.out)


if __name__ == "__main__":
    main()
