"""Run a small study on a real SLURM, once undisturbed and once with each fault: the same bytes?

    make test-slurm

A training is struck with every fault; the pool, a training and an evaluation of the same study are
struck with two of them, one after the other. Words on the command line choose among the faults.
Needs the cluster of tests/slurm/cluster.sh. Ends with an error where a result differs, a job ran
twice at the same time, or one saw other GPUs than its own; prints a table of what happened.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from study import GPUS, STEPS, VARIANTS, copy_project, forget, results

SLURM_TESTS = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("FOLDER", "/run/geosd-slurm"))
SNAKEMAKE = [sys.executable, SLURM_TESTS / "driver_snakemake.py", "--profile", "slurm"]
PATIENCE_S = 900
STRUCK = "fwdkl"  # the variant whose jobs are hit


class Target(NamedTuple):
    """A job that is hit: its run, as a pattern below scratch/ and logs/; what it saves first."""

    run: str
    saved: str


TARGETS = {
    "train": Target(f"train/mini-qwen3/{STRUCK}-*/0", "state.pt"),
    "evaluate": Target(f"evaluate/mini-qwen3/{STRUCK}-*/0", "samples/000001.jsonl"),
    "pool": Target("pool/mini-qwen3-*", "samples/000001.jsonl"),
}


def output_of(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_for(event: str, happens: Callable[[], object], patience: float = PATIENCE_S) -> float:
    """Wait until an event happens; returns the seconds it took."""
    began = time.monotonic()
    while not happens():
        if time.monotonic() - began > patience:
            raise TimeoutError(
                f"{event} did not happen within {patience} s\n" + output_of("squeue", "-l")
            )
        time.sleep(0.3)
    return time.monotonic() - began


@dataclass
class Driver:
    """A running `snakemake --profile slurm`, and how many processes its jobs have.

    Attributes:
        project: The folder that it runs in.
        config: What its `--config` says.
        struck: Part of the name of the job that is hit, as its comment has it.
        patience_s: How long the driver may take.
        process: The driver.
        most: Most launchers that were at work on a job at the same time.
        watching: Whether they are counted.
    """

    project: Path
    config: tuple[str, ...] = ("study=quick",)
    struck: str = STRUCK
    patience_s: float = PATIENCE_S
    process: subprocess.Popen[str] | None = None
    most: dict[str, int] = field(default_factory=dict)
    watching: bool = True

    def start(self, *arguments: str) -> None:
        """Start a driver; its output goes to driver.log."""
        with (self.project / "driver.log").open("a") as log:
            self.process = subprocess.Popen(
                [*SNAKEMAKE, *arguments, "--config", *self.config],
                cwd=self.project,
                env={**os.environ, "PYTHONPATH": str(self.project / "src")},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                # In the background of a script Ctrl-C is ignored, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def end(self) -> None:
        """Wait for the driver's end; its exit status must be 0."""
        assert self.process is not None
        try:
            status = self.process.wait(self.patience_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)
            raise
        if status:
            log = self.project / "driver.log"
            said = log.read_text()
            first = max(0, said.find("Error in rule"))
            raise RuntimeError(f"{log} says\n{said[first : first + 6000]}")

    def stop(self) -> None:
        """End the driver and its jobs, where they have not ended: neither outlives the test."""
        if self.process is not None and self.process.poll() != 0:
            command = [sys.executable, "workflow/slurm/orphaned_jobs.py", "--all"]
            subprocess.run(command, cwd=self.project)

    def watch(self) -> None:
        """Count, twice a second, the launchers at work on each job."""
        while self.watching:
            now: dict[str, int] = {}
            for scratch in launched(self.project):
                now[scratch] = now.get(scratch, 0) + 1
            for scratch, count in now.items():
                self.most[scratch] = max(count, self.most.get(scratch, 0))
            time.sleep(0.5)

    def job(self, rule: str = "train") -> str:
        """The number of the SLURM job of a rule that is hit."""
        command = ["squeue", "--me", "--noheader", "--states=RUNNING", "--format=%i|%k|%Z"]
        for line in output_of(*command).splitlines():
            number, comment, folder = line.split("|")
            hit = f"rule_{rule}_" in comment and (self.struck in comment or rule == "pool")
            if hit and folder == str(self.project):
                return number
        raise LookupError(f"no job of rule {rule} runs for {self.struck}")


def launched(project: Path) -> Iterator[str]:
    """The scratch folder of each launcher that is at work in this project."""
    found: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[1:2] != ["workflow/scripts/launch.py"]:
                continue
            if (entry / "cwd").readlink() == project:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found[int(entry.name)] = (parent, words[words.index("--scratch") + 1])
        except OSError:
            continue  # it has just ended
    # A launcher's child goes by the launcher's name until it is the program itself.
    yield from (scratch for parent, scratch in found.values() if parent not in found)


def processes_in(folder: Path) -> list[str]:
    """The command of each process whose working directory a folder is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(
                    (entry / "cmdline")
                    .read_bytes()
                    .decode(errors="replace")
                    .replace("\0", " ")
                    .strip()
                )
        except OSError:
            continue  # it has just ended
    return found


def attempts(project: Path, run: str) -> list[dict]:
    """What the launcher noted of each start and end of a job."""
    [path] = project.glob(f"scratch/{run}/attempts.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def let_start(number: str) -> None:
    """Lift the two minutes for which SLURM holds a job that it has requeued."""

    def waits() -> bool:
        return "PENDING" in output_of("squeue", "--noheader", "--format=%T", "--jobs", number)

    wait_for(f"job {number} back in the queue", waits, 120)
    subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], check=True)


Fault = Callable[[Driver, str], None]
"""What is done to a driver and to a job by its number."""


def scancelled(driver: Driver, number: str) -> None:
    """The job is cancelled by hand; the driver submits it anew."""
    output_of("scancel", number)


def params_edited(driver: Driver, number: str) -> None:
    """Somebody edits params.yaml; the job that SLURM starts next must not compute with the edit."""
    params = driver.project / "params.yaml"
    edited = params.read_text().replace(f"steps: {STEPS}\n", f"steps: {2 * STEPS}\n")
    assert edited != params.read_text()
    params.write_text(edited)
    output_of("scancel", number)


def preempted(driver: Driver, number: str) -> None:
    """An urgent job takes all nodes; SLURM requeues the study's jobs."""
    urgent = ["-p", "urgent", "-N3", "--exclusive", "--mem=0", "-t", "1", "-o", "/dev/null"]
    output_of("sbatch", "--wait", *urgent, "--wrap", "sleep 3")
    for running in output_of(
        "squeue", "--me", "-h", "-t", "PENDING", "-p", "gpu", "-o", "%i"
    ).split():
        let_start(running)


def node_killed(driver: Driver, number: str) -> None:
    """The node's daemon and everything of the job die at once, as when the power fails."""
    node = output_of("squeue", "--noheader", "--jobs", number, "--format=%N").strip()
    doomed = [int((FOLDER / f"run/slurmd.{node}.pid").read_text())]
    for entry in Path("/proc").glob("[0-9]*"):
        words = (entry / "cmdline").read_bytes() if (entry / "cmdline").exists() else b""
        if words.startswith(f"slurmstepd: [{number}.".encode()):
            doomed += below(int(entry.name))
    for process in doomed:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    let_start(number)


def below(process: int) -> list[int]:
    """A process and all that it started."""
    found = [process]
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        for child in listed.read_text().split():
            found += below(int(child))
    return found


def driver_killed(driver: Driver, number: str) -> None:
    """The driver dies without a word; a second one starts while its jobs still run."""
    assert driver.process is not None
    driver.process.kill()
    driver.process.wait()
    assert number in output_of("squeue", "--noheader", "--me", "--format=%i").split()
    # As `make stop` unlocks; a Snakemake that does so takes as long as the rest of the training.
    shutil.rmtree(driver.project / ".snakemake/locks")
    driver.start()


def driver_interrupted(driver: Driver, number: str) -> None:
    """Ctrl-C: the driver cancels its jobs and ends; later it is started again."""
    assert driver.process is not None
    driver.process.send_signal(signal.SIGINT)
    driver.process.wait(PATIENCE_S)
    wait_for("an empty queue", lambda: not output_of("squeue", "--me", "--noheader"), 120)
    driver.start()


FAULTS = {
    scancelled: ("pool", "train", "evaluate"),
    node_killed: ("pool", "train", "evaluate"),
    preempted: ("train",),
    driver_killed: ("train",),
    driver_interrupted: ("train",),
    params_edited: ("train",),
}
"""Each fault and the rules whose jobs it hits in one run of the study, in this order."""


def struck(driver: Driver, fault: Fault, rules: Sequence[str]) -> list[dict[str, Any]]:
    """Strike a job of each rule when it has saved something; a row of what was done for each."""
    rows = []
    for rule in rules:
        target = TARGETS[rule]
        state = f"scratch/{target.run}/{target.saved}"
        wait_for(
            f"a saved {target.saved} of {rule}",
            lambda state=state: [*driver.project.glob(state)] or driver.process.poll() is not None,
        )
        number, now = driver.job(rule), time.time()
        fault(driver, number)
        rows.append({"fault": fault.__name__.replace("_", " "), "rule": rule, "at": now})
        wait_for(f"job of {rule} started again", lambda row=rows[-1]: started_after(driver, row))
        subprocess.run([SLURM_TESTS / "cluster.sh", "revive"], check=True)
    return rows


def started_after(driver: Driver, row: dict[str, Any]) -> float | None:
    """When the job that was struck started again, if it has; an error if the driver has ended."""
    assert driver.process is not None
    again = (a["time"] for a in starts_of(driver.project, row["rule"]) if a["time"] > row["at"])
    if (found := next(again, None)) is None and driver.process.poll() is not None:
        raise AssertionError("the study went on as if nothing had happened")
    return found


def starts_of(project: Path, rule: str) -> list[dict]:
    """The starts of the job of a rule that is hit, as its launcher noted them."""
    return [a for a in attempts(project, TARGETS[rule].run) if a["event"] == "start"]


def run_study(project: Path, fault: Fault | None = None) -> list[dict[str, Any]]:
    """Run the study to its end with a fault, or without one, and say what was seen: rows."""
    driver = Driver(project)
    watcher = threading.Thread(target=driver.watch)
    watcher.start()
    began = time.monotonic()
    try:
        driver.start()
        rows = (
            struck(driver, fault, FAULTS[fault]) if fault else [{"fault": "none", "rule": "train"}]
        )
        driver.end()
    finally:
        driver.stop()
        driver.watching = False
        watcher.join()
    for row in rows:
        starts = starts_of(project, row["rule"])
        row |= {"starts": len(starts), "nodes": " ".join(a["host"] for a in starts)}
        if at := row.pop("at", None):
            row["again after"] = f"{next(a['time'] for a in starts if a['time'] > at) - at:.0f} s"
            row["went on from"] = resumed_at(project, TARGETS[row["rule"]].run)
    rows[0]["seconds"] = f"{time.monotonic() - began:.0f}"
    assert max(driver.most.values()) == 1, driver.most
    seen = {
        Path(scratch).parts[-2].partition("-")[0] for scratch in driver.most if "train" in scratch
    }
    assert seen == set(VARIANTS), driver.most
    check_gpus(project)
    return rows


def resumed_at(project: Path, run: str) -> str:
    """Where the last start of a job went on from, by the first bar of its log: 6/100 steps."""
    [path] = project.glob(f"logs/quick/{run}.log")
    bar = re.search(r"\| (\d+/\d+) \[", path.read_text())
    return bar[1] if bar else "?"


def check_gpus(project: Path) -> None:
    """Every training had a node's two GPUs, every evaluation one, and no two at once the same."""
    for variant in VARIANTS:
        for attempt in attempts(project, f"train/mini-qwen3/{variant}-*/0"):
            assert len(attempt["gpus"].split(",")) == GPUS["train"], attempt
    for path in project.glob("results/evaluate/*/*/*/manifest.json"):
        device = json.loads(path.read_text())["device"]
        assert len(device["visible"].split(",")) == GPUS["evaluate"], (path, device)


def main() -> int:
    """Run all, print the table, and return how many faults changed something."""
    project = copy_project(Path(tempfile.mkdtemp(prefix="geosd-study-")).resolve())
    print(f"study in {project}", flush=True)
    params = (project / "params.yaml").read_bytes()
    rows, failures = run_study(project), 0
    expected = results(project)
    print(rows[0], flush=True)
    for fault, rules in FAULTS.items():
        if sys.argv[1:] and fault.__name__ not in sys.argv[1:]:
            continue
        forget(project, pool="pool" in rules)
        try:
            found = run_study(project, fault)
            after = results(project)
            differing = [name for name in expected if after[name] != expected[name]]
            found[0]["results"] = "the same" if not differing else " ".join(differing)
            failures += bool(differing)
        except (AssertionError, RuntimeError, LookupError, TimeoutError) as error:
            found = [{"fault": fault.__name__, "results": f"FAILED: {error}"}]
            failures += 1
        (project / "params.yaml").write_bytes(params)
        subprocess.run([SLURM_TESTS / "cluster.sh", "mend"], check=True)
        rows += found
        print(*found, sep="\n", flush=True)
    print(pd.DataFrame(rows).fillna("").to_markdown(index=False))
    return failures


if __name__ == "__main__":
    sys.exit(main())
