"""What the workflow costs beside the science: starts of programs, planning, and Snakemake's jobs.

    python benchmarks/workflow.py            # --long: `make run` and `make test` instead

A start is everything before a program's first work: Python, imports, arguments, settings. The
programs run on inputs made here and end where the work would begin. CPU seconds of a command hold
all processes that it starts.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measuring import (
    ROOT,
    child_seconds,
    cpu_summary,
    digits,
    finish,
    headline,
    parser,
    result,
    table,
    with_spread,
)

# program -> (arguments, where its work begins: module and function)
STARTS: dict[str, tuple[str, str, str]] = {
    "base": (
        "--model mini-qwen3 --out {out} --scratch {out} --data {data}",
        "geosd.training.pretrain",
        "pretrain",
    ),
    "pool": (
        "--model mini-qwen3 --base {model} --problems {empty} --out {out}",
        "geosd.rollout.solution_pool",
        "pool_solutions",
    ),
    "train": (
        "--model mini-qwen3 --variant geosd --seed 0 --base {model} --problems {empty}"
        " --pool {empty} --out {out} --scratch {out}",
        "geosd.training.run",
        "assemble_run",
    ),
    "evaluate": (
        "--model mini-qwen3 --variant geosd --seed 0 --checkpoint {model} --problems {empty}"
        " --out {out}",
        "geosd.evaluation.sampling",
        "evaluate",
    ),
    "analyse": ("--runs {empty} --out {out}", "geosd.config.run_folders", "read_index"),
    "claims": (
        "--scores {scores} --drift {scores} --consensus {scores} --out {out}",
        "pandas",
        "read_csv",
    ),
    "render": ("figure_frontier --tidy {scores} --out {out}", "pandas", "read_csv"),
}

# Runs a program as `python -m` does, and ends it where the function would be called.
UNTIL_WORK = """
import importlib.abc, importlib.machinery, os, sys, time
program, module, function = sys.argv[1:4]

def work_begins(*args, **kwargs):
    print("CPU", time.process_time(), flush=True)
    os._exit(0)

class Patched(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(made):
            execute(made)
            setattr(made, function, work_begins)
        spec.loader.exec_module = exec_module
        return spec

import importlib.util, runpy
sys.meta_path.insert(0, Patched())
sys.argv = ["-m", *sys.argv[4:]]
runpy.run_module(program, run_name="__main__")
sys.exit("the program ended without its work")
"""
STUDIES = {"quick": "local", "miniature": "local", "paper": "slurm"}
TRIVIAL_JOBS = 24
SNAKEFILE = """
rule all:
    input: [f"out/{i}" for i in range(int(config["jobs"]))]
rule one:
    output: "out/{i}"
    shell: "touch {output}"
"""
AIM_START, AIM_PLANNING = 1.5, 8.0
AIM_MINUTES = {"run": 3, "test": 8}


@contextmanager
def inputs() -> Any:
    """Arguments of the programs: a base model, problem files without a problem, an empty table."""
    from geosd.models.checkpoints import save_model
    from geosd.models.tiny_architectures import build
    from geosd.problems.miniature.tokenizer import build_tokenizer
    from geosd.steps.base import PROBLEM_FILES

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = build_tokenizer()
        ends = (tokenizer.pad_token_id, tokenizer.eos_token_id)
        save_model(build("mini-qwen3", len(tokenizer), *ends, seed=0), tokenizer, folder / "model")
        (folder / "data").mkdir()
        for file in (*(f"data/{file}" for file in PROBLEM_FILES), "empty.jsonl"):
            (folder / file).touch()
        (folder / "scores.csv").write_text("model\n")
        yield {
            "model": folder / "model",
            "data": folder / "data",
            "empty": folder / "empty.jsonl",
            "scores": folder / "scores.csv",
            "out": folder / "out",
        }


def start_seconds(program: str, places: dict[str, Path]) -> float:
    """CPU seconds of a program's process until its work begins."""
    arguments, module, function = STARTS[program]
    words = arguments.format(**places).split() + ["--study", "quick"]
    command = [sys.executable, "-c", UNTIL_WORK, f"geosd.steps.{program}", module, function, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    last = done.stdout.strip().splitlines()[-1:] or [""]
    if done.returncode or not last[0].startswith("CPU "):
        raise RuntimeError(
            f"geosd.steps.{program} did not reach {module}.{function}:\n{done.stderr[-2000:]}\n"
            "Hint: STARTS in benchmarks/workflow.py says where each program's work begins."
        )
    return float(last[0].split()[1])


def starts(programs: list[str], repetitions: int) -> dict[str, Any]:
    """Starts of all programs, by turns; and of Python and torch alone, to compare."""
    alone = {"python": "pass", "python, torch": "import torch"}
    alone["python, torch, transformers"] = "import torch, transformers.modeling_utils"
    alone = alone if repetitions > 1 else {}
    times: dict[str, list[dict[str, float]]] = {}
    with inputs() as places:
        for _ in range(repetitions):
            for program in programs:
                cpu = start_seconds(program, places)
                times.setdefault(program, []).append({"cpu": cpu, "wall": 0.0})
            for name, code in alone.items():
                times.setdefault(name, []).append(child_seconds([sys.executable, "-c", code]))
    return {name: cpu_summary(each) for name, each in times.items()}


@contextmanager
def copy_of_tree() -> Any:
    """The tracked files in a folder of their own: no results, no logs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in filter(None, listed.stdout.split("\0")):
            if (ROOT / file).exists() or (ROOT / file).is_symlink():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, folder / file, follow_symlinks=False)
        yield folder


def planning(study: str, profile: str, folder: Path) -> dict[str, float]:
    """A dry run of a study of which nothing has been made."""
    words = ["--profile", profile, "--dry-run", "--quiet", "all", "--config", f"study={study}"]
    return child_seconds(
        [sys.executable, "-m", "snakemake", *words],
        {"PYTHONPATH": str(folder / "src")},
        cwd=folder,
    )


def overhead(jobs: int) -> dict[str, float]:
    """Snakemake's own cost: so many jobs that touch a file, under the local profile's options."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "Snakefile").write_text(SNAKEFILE)
        words = ["--cores", "2", "--scheduler", "greedy", "--quiet", "all", "--config"]
        command = [sys.executable, "-m", "snakemake", *words, f"jobs={jobs}"]
        return child_seconds(command, cwd=Path(name))


def whole(target: list[str]) -> dict[str, float]:
    """A target of make in a copy of the tree, with this environment."""
    with copy_of_tree() as folder:
        (folder / ".venv").symlink_to(Path(sys.prefix))
        done = [f"--old-file=.venv/{each}" for each in ("installed", "installed-test")]
        return child_seconds(
            ["make", *done, *target], {"PYTHONPATH": str(folder / "src")}, cwd=folder
        )


def long_ones() -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """`make run` and `make test`: table, measurements, and what they should be."""
    rows, data, found = [], {}, []
    for target, most in AIM_MINUTES.items():
        data[f"make {target}"] = of = whole([target])
        rows.append([f"make {target}", of["cpu"], of["wall"]])
        minutes = of["wall"] / 60
        label = f"make {target}, minutes of wall time"
        found.append(headline(label, minutes, f"at most {most}", minutes <= most))
    return [table("Whole targets", ["what", "CPU s", "wall s"], rows)], data, found


def main() -> None:
    """Measure starts, planning and overhead; or the long ones."""
    options = parser(__doc__)
    options.add_argument("--long", action="store_true", help="`make run` and `make test` alone")
    options.add_argument("--repetitions", type=int, default=3)
    given = options.parse_args()
    programs, studies, jobs = list(STARTS), STUDIES, TRIVIAL_JOBS
    if given.smoke:
        given.repetitions, studies, jobs = 1, {}, 2
        programs = ["train", "analyse"]
    if given.long:
        finish(result("long", *long_ones()), given.out)
        return
    data: dict[str, Any] = {"starts": starts(programs, given.repetitions)}
    rows = [[f"start: {name}", with_spread(of), "–"] for name, of in data["starts"].items()]
    found = [
        headline(
            f"start of geosd.steps.{name}, CPU s",
            data["starts"][name]["median"],
            f"at most {AIM_START}",
            data["starts"][name]["median"] <= AIM_START,
        )
        for name in programs
    ]
    with copy_of_tree() as folder:
        for study, profile in studies.items():
            times = [planning(study, profile, folder) for _ in range(min(2, given.repetitions))]
            data[f"planning {study}"] = of = cpu_summary(times)
            label = f"snakemake -n, study {study}, profile {profile}"
            rows.append([label, with_spread(of), digits(of["wall"])])
            if study == "paper":
                value = of["median"]
                aim = f"at most {AIM_PLANNING:.0f}"
                found.append(headline(f"{label}, CPU s", value, aim, value <= AIM_PLANNING))
    none, many = overhead(1), overhead(1 + jobs)
    data["overhead"] = {key: (many[key] - none[key]) / jobs for key in none}
    cells = (data["overhead"]["cpu"], data["overhead"]["wall"])
    rows.append(["Snakemake, a job more", *map(digits, cells)])
    notes = "CPU seconds of a command and of all that it starts; a start: of the program alone."
    tables = [table("The workflow", ["what", "CPU s", "wall s"], rows, notes)]
    finish(result("workflow", tables, data, found), given.out)


if __name__ == "__main__":
    main()
