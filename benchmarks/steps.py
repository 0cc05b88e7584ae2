"""Whole steps of this project against TRL's trainers, on the same work, by phase.

    python benchmarks/steps.py --trl .venv-trl-bench/bin/python

8 prompts of 32 tokens, 128 new tokens each (GRPO: 64 responses), random weights, fp32, one thread.
The two engines need environments of their own, so they take turns as processes: A B A B. Without
TRL's interpreter only this project is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import synthetic
from measuring import (
    MB,
    ROOT,
    cpu_summary,
    digits,
    finish,
    headline,
    median_phases,
    parser,
    result,
    table,
    with_spread,
)

NAMES = {
    ("geosd", "fwdkl"): "ours, FwdKL",
    ("geosd", "revkl"): "ours, RevKL",
    ("geosd", "jsd"): "ours, JSD",
    ("geosd", "skewkl"): "ours, SkewKL",
    ("geosd", "tip"): "ours, TIP",
    ("geosd", "tropd"): "ours, TrOPD",
    ("geosd", "sft"): "ours, SFT",
    ("geosd", "grpo"): "ours, GRPO (beta 0)",
    ("geosd", "geosd"): "ours, GeoSD (K-FAC)",
    ("trl", "gkd"): "TRL, GKD",
    ("trl", "distillation"): "TRL, Distillation",
    ("trl", "sdft"): "TRL, SDFT",
    ("trl", "grpo"): "TRL, GRPO (beta 0)",
}
PHASES = (
    "generate",
    "teacher",
    "anchor",
    "pi_0",
    "student",
    "loss",
    "backward",
    "K-FAC",
    "optimiser",
    "rest",
)
NOTES = (
    "CPU seconds a step: median ± half the distance of the quartiles. Phases are medians, each for"
    " itself. Student and teacher are the bodies' passes; this project and TRL's Distillation"
    " trainer apply the output head in `loss`, TRL's other trainers in the pass. Peak: resident"
    " memory of the process, and what of it came after the models were loaded."
)
# A step of SmolLM2 takes half a minute: one is measured, of the methods that meet here.
ONCE = {"geosd": ["fwdkl", "geosd"], "trl": ["distillation", "sdft"]}


def run_engine(python: str, engine: str, arguments: list[str], out: Path) -> dict[str, Any]:
    """One process that measures an engine; its result."""
    program = ROOT / "benchmarks" / f"steps_{engine}.py"
    # `-I` would hide PYTHONPATH, which names this tree where another one is installed.
    done = subprocess.run(
        [python, str(program), *arguments, "--out", str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"steps_{engine}.py ended with status {done.returncode}:\n{done.stdout[-3000:]}\n"
            "Hint: run the program alone."
        )
    return json.loads(out.read_text())


def smollm2(folder: Path) -> bool:
    """Write SmolLM2-135M where its package is installed; whether it is."""
    import yaml

    from geosd.models.gguf_checkpoints import find_gguf_in_package, load_gguf
    from geosd.models.load_and_save import save_model
    from geosd.models.released_models import ReleaseNotFoundError

    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    source = params["models"]["smollm2-135m"]["base"]["checkpoint"]
    try:
        path = find_gguf_in_package(source["package"], source["file"])
    except ReleaseNotFoundError:
        return False
    save_model(*load_gguf(path, source["sha256"]), folder)
    return True


def measure(
    pythons: dict[str, str], arguments: dict[str, list[str]], repetitions: int, scratch: Path
) -> tuple[dict[tuple[str, str, str], list[dict[str, Any]]], dict[str, Any]]:
    """Runs by model, engine and kind; and the versions of each engine."""
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    versions = {}
    for _ in range(repetitions):
        for engine, python in pythons.items():
            made = run_engine(python, engine, arguments[engine], scratch / f"{engine}.json")
            versions[engine] = made["versions"]
            for run in made["data"]["runs"]:
                runs.setdefault((run["model"], engine, run["kind"]), []).append(run)
    return runs, versions


def rows_of(runs: dict[tuple[str, str, str], list[dict[str, Any]]], model: str) -> list[list[Any]]:
    """A row for each engine and kind: time, phases, memory."""
    rows = []
    for (of, engine, kind), repeated in runs.items():
        if of != model:
            continue
        summary = summarised(repeated)
        phases = [summary["phases"].get(name) for name in PHASES]
        peak = statistics.median(run["peak_bytes"] for run in repeated)
        more = statistics.median(run["peak_bytes"] - run["start_bytes"] for run in repeated)
        name = NAMES.get((engine, kind), f"{engine}, {kind}")
        times = [with_spread(summary), digits(summary["wall"])]
        rows.append([name, *times, *map(digits, phases), f"{peak / MB:.0f} / {more / MB:.0f}"])
    return rows


def summarised(repeated: list[dict[str, Any]]) -> dict[str, Any]:
    """Times and phases over the steps of all repetitions."""
    times = [time for run in repeated for time in run["times"]]
    phases = [lap for run in repeated for lap in run["phases"]]
    return {**cpu_summary(times), "phases": median_phases(phases)}


def headlines(runs: dict[tuple[str, str, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Our step over the fastest of TRL's; for a real model, GeoSD over FwdKL."""
    cpu = {key: summarised(repeated)["median"] for key, repeated in runs.items()}
    found = []
    for model in dict.fromkeys(key[0] for key in cpu):
        rivals = {
            "fwdkl": [cpu[k] for k in cpu if k[:2] == (model, "trl") and k[2] != "grpo"],
            "grpo": [cpu[k] for k in cpu if k == (model, "trl", "grpo")],
        }
        for kind, others in rivals.items():
            own = cpu.get((model, "geosd", kind))
            if own and others:
                ratio = own / min(others)
                name = {"fwdkl": "FwdKL", "grpo": "GRPO"}[kind]
                what = f"{name} step over the fastest of TRL's, {model}"
                found.append(headline(what, ratio, "at most 0.5", ratio <= 0.5))
        both = [cpu.get((model, "geosd", kind)) for kind in ("geosd", "fwdkl")]
        if all(both) and model not in synthetic.SHAPES:  # kfac.py compares those by turns
            ratio = both[0] / both[1]
            what = f"GeoSD step over FwdKL, {model}, whole step"
            found.append(headline(what, ratio, "at most 1.10", ratio <= 1.10))
    return found


def main() -> None:
    """Measure the small models by turns; with `--smollm2` measure SmolLM2 once."""
    options = parser(__doc__)
    options.add_argument("--trl", type=Path, help="Python of an environment that has TRL")
    options.add_argument("--repetitions", type=int, default=2)
    options.add_argument("--steps", type=int, default=3)
    options.add_argument("--models", nargs="*", default=["0.8M", "4.8M"])
    options.add_argument("--kinds", nargs="+", default=["fwdkl", "geosd", "grpo", "sft"])
    options.add_argument("--smollm2", action="store_true", help="also SmolLM2-135M, once")
    given = options.parse_args()
    pythons = {"geosd": sys.executable}
    if given.trl and given.trl.exists():
        pythons["trl"] = str(given.trl)
    common = ["--steps", str(given.steps), "--warmup", "1"]
    if given.smoke:
        common, given.repetitions, given.models = ["--smoke"], 1, ["tiny"]
    arguments = {engine: [*common, "--models", *given.models] for engine in pythons}
    arguments["geosd"] += ["--kinds", *given.kinds]
    with tempfile.TemporaryDirectory() as scratch:
        runs, versions = {}, {}
        if given.models:
            runs, versions = measure(pythons, arguments, given.repetitions, Path(scratch))
        folder, missing = Path(scratch) / "SmolLM2-135M", ""
        if given.smollm2 and smollm2(folder):
            once = ["--steps", "1", "--warmup", "1", "--models", str(folder), "--kinds"]
            words = {engine: [*once, *ONCE[engine]] for engine in pythons}
            more, versions = measure(pythons, words, 1, Path(scratch))
            runs |= more
        elif given.smollm2:
            missing = " SmolLM2's weights are not installed: envs/install.sh smollm2."
    columns = ["step", "CPU s", "wall s", *PHASES, "peak / more, MB"]
    tables = [
        table(f"Whole steps, {model}", columns, rows_of(runs, model), NOTES + missing)
        for model in dict.fromkeys(key[0] for key in runs)
    ]
    data = {
        "versions": versions,
        "runs": [
            {"model": model, "engine": engine, **run}
            for (model, engine, _), repeated in runs.items()
            for run in repeated
        ],
    }
    section = "steps" if given.models else "smollm2"
    finish(result(section, tables, data, headlines(runs)), given.out)


if __name__ == "__main__":
    main()
