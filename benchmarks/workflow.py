"""The workflow's cost without the science: starts of programs, planning, and Snakemake's jobs.

    python benchmarks/workflow.py            # --long: `make run` and `make test` instead

A start is everything before a program's first work: Python, imports, arguments, settings. The
programs run on inputs made here and end where the work would begin. CPU seconds of a command hold
all processes that it starts.
"""

from __future__ import annotations

import os
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

from geosd.cli import forkserver

# program -> (arguments, where its work begins: module and function)
STARTS: dict[str, tuple[str, str, str]] = {
    "base": (
        "--model mini-qwen3 --out {out} --scratch {out}",
        "geosd.training.pretrain",
        "pretrain",
    ),
    "pool": (
        "--model mini-qwen3 --base {model} --problems {problems} --out {out}",
        "geosd.sampling.solution_pool",
        "pool_solutions",
    ),
    "train": (
        "--model mini-qwen3 --variant geosd --seed 0 --base {model} --problems {problems}"
        " --pool {pool} --out {out} --scratch {out}",
        "geosd.training.run",
        "assemble_run",
    ),
    "evaluate": (
        "--model mini-qwen3 --variant geosd --seed 0 --checkpoint {model} --problems {problems}"
        " --out {out}",
        "geosd.evaluation.benchmarks",
        "sample_benchmarks",
    ),
    "analyse": ("--runs {empty} --out {out}", "geosd.config.run_folders", "read_run_folders"),
    "claims": (
        "--scores {scores} --drift {scores} --consensus {scores} --out {out}",
        "pandas",
        "read_csv",
    ),
    "render": ("figure_frontier --tidy {scores} --out {out}", "pandas", "read_csv"),
}

# As sitecustomize of a program, and of the server that it may be forked from: ends the program
# where the function would be called.
UNTIL_WORK = """
import importlib.abc, importlib.util, os, sys, time

def work_begins(*args, **kwargs):
    print("CPU", time.process_time(), flush=True)
    os._exit(0)

class Patched(importlib.abc.MetaPathFinder):
    module, _, function = os.environ["BENCH_WORK"].rpartition(".")

    def find_spec(self, name, path, target=None):
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(made):
            execute(made)
            setattr(made, self.function, work_begins)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Patched())
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
    """Arguments of the programs: a base model, a solved problem, an empty file, an empty table."""
    from geosd.json_lines import write_jsonl
    from geosd.models.load_and_save import save_model
    from geosd.models.tiny_models import build_tiny_model
    from geosd.problems.miniature import build_miniature_tokenizer
    from geosd.problems.records import PooledSolutionsRecord, Problem
    from geosd.problems.search.corpora import VOCABULARY

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = build_miniature_tokenizer(VOCABULARY)
        ends = (tokenizer.pad_token_id, tokenizer.eos_token_id)
        save_model(
            build_tiny_model("mini-qwen3", len(tokenizer), *ends, seed=0),
            tokenizer,
            folder / "model",
        )
        (folder / "empty.jsonl").touch()
        write_jsonl(folder / "problems.jsonl", [Problem("p", "id", "1+1", "2")])
        write_jsonl(folder / "pool.jsonl", [PooledSolutionsRecord("p", ("A: 2",), 1, 1)])
        (folder / "scores.csv").write_text("model\n")
        (folder / "sitecustomize.py").write_text(UNTIL_WORK)
        (folder / "sockets").mkdir()
        yield {
            "model": folder / "model",
            "empty": folder / "empty.jsonl",
            "problems": folder / "problems.jsonl",
            "pool": folder / "pool.jsonl",
            "scores": folder / "scores.csv",
            "out": folder / "out",
            "folder": folder,
        }


def start_seconds(program: str, places: dict[str, Path], *, served: bool) -> dict[str, float]:
    """CPU and wall seconds of a program until its work begins.

    Args:
        program: A step.
        places: Of its arguments.
        served: Fork it from a server that runs already or else is started, as in a study; the
            program's own process and its fork count, the server does not.
    """
    arguments, module, function = STARTS[program]
    words = arguments.format(**places).split() + ["--study", "quick"]
    paths = (str(places["folder"]), str(ROOT / "src"))
    environment = {"PYTHONPATH": os.pathsep.join(paths), "BENCH_WORK": f"{module}.{function}"}
    if served:
        owner = {forkserver.FOLDER: places["folder"] / "sockets", forkserver.OWNER: os.getpid()}
        environment |= {name: str(value) for name, value in owner.items()}
    command = [sys.executable, "-m", "geosd", program, *words]
    printed: list[str] = []
    seconds = child_seconds(command, environment, printed=printed)
    last = printed[0].strip().splitlines()[-1:] or [""]
    if not last[0].startswith("CPU "):
        raise RuntimeError(
            f"geosd {program} did not reach {module}.{function}.\nHint: STARTS in"
            " benchmarks/workflow.py says where each program's work begins."
        )
    fork = float(last[0].split()[1]) if served else 0.0
    return {**seconds, "cpu": seconds["cpu"] + fork}


def starts(programs: list[str], repetitions: int) -> dict[str, Any]:
    """Starts of all programs, by turns; and of Python and torch alone, to compare."""
    alone = {"python": "pass", "python, torch": "import torch"}
    alone["python, torch, transformers"] = "import torch, transformers.modeling_utils"
    alone = alone if repetitions > 1 else {}
    times: dict[str, list[dict[str, float]]] = {}
    with inputs() as places:
        for program in forkserver.SERVED & set(programs):
            start_seconds(program, places, served=True)  # starts the server
        for _ in range(repetitions):
            for program in programs:
                seconds = start_seconds(program, places, served=False)
                times.setdefault(program, []).append(seconds)
                if program in forkserver.SERVED:
                    seconds = start_seconds(program, places, served=True)
                    times.setdefault(f"{program}, in a study", []).append(seconds)
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
    """A dry run of a study that has no results yet."""
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
    rows = [
        [f"start: {name}", with_spread(of), digits(of["wall"])]
        for name, of in data["starts"].items()
    ]
    found = []
    for name in programs:
        label = f"{name}, in a study"
        label = label if label in data["starts"] else name
        value = data["starts"][label]["median"]
        aim = f"at most {AIM_START}"
        found.append(headline(f"start of {label}, CPU s", value, aim, value <= AIM_START))
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
    notes = (
        "CPU seconds of a command and of all that it starts. In a study, programs that need torch"
        " are forked from a server that has it loaded; the server's own start is paid once a study."
    )
    tables = [table("The workflow", ["what", "CPU s", "wall s"], rows, notes)]
    finish(result("workflow", tables, data, found), given.out)


if __name__ == "__main__":
    main()
