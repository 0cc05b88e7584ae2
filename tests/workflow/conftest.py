"""Copies of the workflow in which every job is done, with made-up outputs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cases import QUICK_ROLLOUT, with_studies
from planner import plan, programs

from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "Snakefile",
    "params.yaml",
    "base_models",
    "dvc.yaml",
    "envs",
    "workflow",
    "profiles",
    "local",
    "slurm",
    "workstation",
    "src",
)

CHROMIUMS = "chromium chromium-browser google-chrome google-chrome-stable chrome".split()


PLANS = {"-n", "--dry-run", "--summary", "--detailed-summary", "--touch", "--report"}
"""Arguments with which Snakemake starts no job."""


planned_once = cache(plan)


@dataclass(frozen=True)
class Workflow:
    """A folder with the workflow in it.

    Attributes:
        folder: The folder.
        forks: Whether Snakemake is a fork of a process that has it imported, see `planner`, and so
            each Python program that it starts.
        kept: Whether a plan is made once, because nothing changes the folder.
    """

    folder: Path
    forks: bool = True
    kept: bool = False

    def snakemake(self, *arguments: str, check: bool = True) -> str:
        """What Snakemake prints."""
        if self.forks and PLANS & {*arguments}:
            status, printed = (planned_once if self.kept else plan)(self.folder, arguments)
        elif self.forks:
            status, printed = self._called("snakemake", *arguments)
        else:
            status, printed = self._started(sys.executable, "-m", "snakemake", *arguments)
        assert not check or status == 0, printed
        return printed

    def call(self, *command: str, status: int = 0) -> str:
        """What a command prints; each `python`, `snakemake` and `dvc` that it starts is a fork."""
        ended, printed = self._called(*command)
        assert ended == status, printed
        return printed

    def run_alone(self, *command: str) -> str:
        """What a command prints that runs, with all that it starts, in processes of its own."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        ended, printed = self._started(*command, PATH=path)
        assert ended == 0, printed
        return printed

    def _called(self, *command: str) -> tuple[int, str]:
        people = {
            f"GIT_{a}_{b}": "test" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")
        }
        path = [str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]]
        return self._started(*command, **people, PATH=os.pathsep.join(path))

    def _started(self, *command: str, **environment: str) -> tuple[int, str]:
        found = {**os.environ, "PYTHONPATH": str(self.folder / "src"), **environment}
        done = subprocess.run(command, cwd=self.folder, env=found, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def planned_jobs(self, *arguments: str) -> Counter[str]:
        """How many jobs of each rule a dry run plans, targets left out."""
        return self.jobs_in(self.snakemake("--profile", "local", "--dry-run", *arguments))

    @staticmethod
    def jobs_in(printed: str) -> Counter[str]:
        """How many jobs of each rule a dry run printed that it plans, targets left out."""
        jobs = dict(re.findall(r"^(\w+) +(\d+)$", printed, re.M))
        ignored = {"total", "all", "tables", "figures"}
        return Counter({rule: int(n) for rule, n in jobs.items() if rule not in ignored})

    def outputs(self, study: str = "quick") -> dict[str, str]:
        """Each declared output of the study, and the rule that makes it."""
        named = ("--config", f"study={study}")
        lines = self.snakemake("--profile", "local", "--summary", *named).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("output_file"))
        cells = [line.split("\t") for line in lines[start + 1 :] if "\t" in line]
        return {row[0]: row[2] for row in cells}

    def folders(self, study: str = "quick") -> RunFolders:
        """Where the results of a study lie, by the folder's own params.yaml."""
        with contextlib.chdir(self.folder):
            return RunFolders(resolve_study(load("params.yaml"), study))

    def change_rate(self, method: str, rate: str) -> None:
        """Give another learning rate to a method of study quick, by an entry of its own."""
        entry = f"    variants: {{{method}: {{training: {{learning_rate: {rate}}}}}}}\n"
        self.edit("params.yaml", QUICK_ROLLOUT, entry + QUICK_ROLLOUT)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the one occurrence of a text in a file."""
        text = (self.folder / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path} has {old!r} {text.count(old)} times"
        (self.folder / path).write_text(text.replace(old, new), encoding="utf-8")

    def keep_studies(self, *names: str) -> None:
        """Leave params.yaml some studies, in their own words."""
        params = self.folder / "params.yaml"
        text = params.read_text(encoding="utf-8")
        params.write_text(with_studies(text, names), encoding="utf-8")

    def append(self, path: str, text: str) -> None:
        """Add a text at the end of a file."""
        with (self.folder / path).open("a", encoding="utf-8") as file:
            file.write(text)


def _copied(source: Path, target: Path) -> Workflow:
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    target.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        if not (source / name).exists():  # a project need not ship base models
            continue
        if (source / name).is_dir() and not (source / name).is_symlink():
            shutil.copytree(source / name, target / name, symlinks=True, ignore=ignore)
        else:
            shutil.copy2(source / name, target / name, follow_symlinks=False)
    return Workflow(target)


@pytest.fixture(scope="session")
def untouched() -> Workflow:
    """The repository itself, for dry runs only."""
    return Workflow(ROOT)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The workflow as cloned: nothing has run."""
    return replace(_copied(ROOT, tmp_path_factory.mktemp("fresh")), kept=True)


@pytest.fixture(scope="session")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The workflow after a run whose programs were all replaced by writing a file's own name.

    Study quick and its selection are left: each of 36 others would be checked by every plan.
    """
    workflow = _copied(ROOT, tmp_path_factory.mktemp("done"))
    workflow.keep_studies("quick", "quick_selection")
    for name in workflow.outputs():
        path = workflow.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    # --forceall: what looks current would get no notes, and edits would go unseen.
    workflow.snakemake("--profile", "local", "--touch", "--forceall")
    return workflow


@pytest.fixture
def done(done_once: Workflow, tmp_path: Path) -> Callable[[], Workflow]:
    """A private copy of the finished workflow, to be edited."""
    shutil.copytree(done_once.folder, tmp_path / "copy", symlinks=True)
    return Workflow(tmp_path / "copy")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium that finds no host, or the tests are skipped."""
    found = [path for name in CHROMIUMS if (path := shutil.which(name))]
    chromium = os.environ.get("CHROMIUM") or next(iter(found), None)
    if chromium is None:
        pytest.skip(
            "no Chromium, so nobody looked at the pages. Hint: apt-get install chromium, or set"
            " CHROMIUM to the path of one."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        offline = ["--host-resolver-rules=MAP * ~NOTFOUND"]
        launched = playwright.chromium.launch(executable_path=chromium, args=offline)
        yield launched
        launched.close()
