"""No two jobs of a machine work on one GPU, whoever of them is killed; GPUs are pretended."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from cases import until

from geosd.cli import forkserver
from geosd.gpu_leases import FOLDER, LEASE, cards_of_machine, leased

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "workflow/scripts/launch.py"
CARDS, JOBS, SNAKEMAKES = 8, 24, 2

# A job holds a lock of its own on each card that it sees, which no lease knows of.
JOB = """
import fcntl, os, sys, time
common, name, output = sys.argv[1:]
held = []
for card in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
    file = open(f"{common}/used-{card}", "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        open(f"{common}/collisions", "a").write(f"{name} {card}\\n")
    held.append(file)
open(f"{common}/starts", "a").write(f"{name} {os.getpid()} {len(held)}\\n")
time.sleep(0.7)
open(output, "w").write(name)
"""
SNAKEFILE = """
rule all:
    input: expand("done/{{name}}", name=range({jobs}))
rule job:
    output: "done/{{name}}"
    resources: gpu=lambda wildcards: 2 if int(wildcards.name) % 6 == 0 else 1
    shell:
        "exec {python} {launcher} --gpus {{resources.gpu}} --scratch scratch/{{wildcards.name}} --"
        " {python} -S {common}/job.py {common} {{wildcards.name}} {{output}} 2>> launched"
"""


def snakemake(project: Path, common: Path) -> subprocess.Popen[bytes]:
    words = ["--cores", "all", "--resources", f"gpu={CARDS}", "--retries", "20", "--nolock"]
    words += ["--jobs", str(CARDS), "--rerun-incomplete", "--keep-going", "--quiet", "all"]
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *words, "--scheduler", "greedy"],
        cwd=project,
        env={**os.environ, FOLDER: str(common / "leases"), "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.DEVNULL,
        stderr=(project / "printed").open("a"),
    )


def launchers(driver: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The launchers of a Snakemake that run a program."""
    found = psutil.Process(driver.pid).children(recursive=True)
    return [each for each in found if runs_a_program(each)]


def runs_a_program(process: psutil.Process) -> bool:
    """Whether a process is a launcher with a child; one that has ended meanwhile is none."""
    try:
        return str(LAUNCHER) in process.cmdline() and bool(process.children())
    except psutil.NoSuchProcess:
        return False


def two_launchers(driver: subprocess.Popen[bytes], draw: random.Random) -> list[psutil.Process]:
    """Two launchers that run a program, as soon as there are two; none once Snakemake has ended."""

    def found() -> tuple[list[psutil.Process], bool] | None:
        running = launchers(driver) if driver.poll() is None else []
        has_ended = driver.poll() is not None
        return (running, has_ended) if has_ended or len(running) > 1 else None

    running, has_ended = until(found, seconds=60)
    return [] if has_ended else draw.sample(running, 2)


def programs_of(launcher: psutil.Process) -> list[psutil.Process]:
    """The programs of a launcher; none where it has ended."""
    try:
        return launcher.children()
    except psutil.NoSuchProcess:
        return []


def kill(process: psutil.Process) -> bool:
    with pytest.MonkeyPatch.context():
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            return False
    return True


@pytest.mark.slow
def test_killed_jobs_and_drivers_of_two_snakemakes_never_share_a_card_and_lose_none(tmp_path):
    """24 jobs on 8 cards, four of them on two cards each; two Snakemakes are at work at once."""
    (tmp_path / "job.py").write_text(JOB)
    projects = [tmp_path / str(number) for number in range(SNAKEMAKES)]
    text = SNAKEFILE.format(
        jobs=JOBS // SNAKEMAKES, python=sys.executable, launcher=LAUNCHER, common=tmp_path
    )
    for project in projects:
        (project / "profiles/workstation").mkdir(parents=True)
        (project / "profiles/workstation/site.yaml").write_text(f"gpus: {CARDS}\n")
        (project / "Snakefile").write_text(text)
    drivers = [snakemake(project, tmp_path) for project in projects]
    draw, killed = random.Random(0), {"launchers": 0, "programs": 0, "drivers": 0}
    try:
        for turn in range(3):
            for driver in drivers:
                chosen = two_launchers(driver, draw)
                if not chosen:
                    continue
                killed["launchers"] += kill(chosen[0])
                killed["programs"] += sum(map(kill, programs_of(chosen[1])))
            if turn == 0:
                drivers[0].kill()  # its jobs go on
                drivers[0].wait()
                drivers[0] = snakemake(projects[0], tmp_path)
                killed["drivers"] += 1
        assert [driver.wait(120) for driver in drivers] == [0, 0], [
            (project / "printed").read_text()[-3000:] for project in projects
        ]
    finally:
        for driver in drivers:
            driver.kill()
    done = [file.name for project in projects for file in (project / "done").iterdir()]
    assert len(done) == JOBS and len(set(done)) == JOBS // SNAKEMAKES
    starts = [line.split() for line in (tmp_path / "starts").read_text().splitlines()]
    print(f"{len(starts)} starts of {JOBS} jobs; killed: {killed}")
    assert not (tmp_path / "collisions").exists(), (tmp_path / "collisions").read_text()
    assert {name for name, _, cards in starts if cards == "2"} == {"0", "6"}
    assert killed["drivers"] == 1 and killed["launchers"] >= 3 and killed["programs"] >= 3
    assert len(starts) > JOBS  # what was killed began anew
    # No card stays taken.
    with leased(CARDS, [str(card) for card in range(CARDS)], tmp_path / "leases") as lease:
        assert len(lease.cards) == CARDS


class Waiter:
    """A job in a thread that takes a lease, and keeps it until it may go."""

    def __init__(self, count, cards, folder):
        self.taken, self.may_go, self.cards = threading.Event(), threading.Event(), ()
        self.thread = threading.Thread(target=self._work, args=(count, cards, folder), daemon=True)
        self.thread.start()

    def _work(self, count, cards, folder):
        with leased(count, cards, folder) as lease:
            self.cards = lease.cards
            self.taken.set()
            self.may_go.wait(20)

    def end(self):
        self.may_go.set()
        self.thread.join()


def test_a_job_of_two_cards_is_not_passed_by_later_jobs_of_one(tmp_path):
    first = Waiter(1, "01", tmp_path)
    assert first.taken.wait(5)
    pair = Waiter(2, "01", tmp_path)
    until(lambda: [*tmp_path.glob("wait-*")])
    late, elsewhere = Waiter(1, "01", tmp_path), Waiter(1, "2", tmp_path)
    assert elsewhere.taken.wait(5)  # the line is of those who want the same cards
    assert not late.taken.wait(1.5) and not pair.taken.is_set()
    first.end()
    assert pair.taken.wait(5) and sorted(pair.cards) == ["0", "1"] and not late.taken.is_set()
    pair.end()
    assert late.taken.wait(5)
    for each in (late, elsewhere):
        each.end()
    assert not [*tmp_path.glob("wait-*")]


def test_the_place_in_line_of_a_killed_job_is_given_up(tmp_path):
    (tmp_path / "wait-0-1").write_text('["0"]')
    with leased(1, ["0"], tmp_path) as lease:
        assert lease.cards == ["0"]
    assert not (tmp_path / "wait-0-1").exists()


def test_a_card_stays_taken_while_a_program_outlives_all_who_held_the_lock(tmp_path):
    """As processes of a killed `accelerate launch`, or an engine whose trainer is dead."""
    (tmp_path / "gpu-0").write_text('{"process": 1, "started": 0.5, "lease": "of-a-dead-one"}')
    program = ["sleep", "60"]
    orphan = subprocess.Popen(program, env={**os.environ, LEASE: "of-a-dead-one"})
    try:
        waiting = Waiter(1, ["0"], tmp_path)
        assert not waiting.taken.wait(1)
    finally:
        orphan.kill()
        orphan.wait()
    assert waiting.taken.wait(5)
    waiting.end()


def test_a_job_that_waits_says_for_whom(tmp_path, capfd):
    first = Waiter(1, ["3"], tmp_path)
    assert first.taken.wait(5)
    second = Waiter(1, ["3"], tmp_path)
    said = until(lambda: capfd.readouterr().err)
    assert f"Waiting for 1 of the GPUs 3, on which others work: process {os.getpid()} on 3" in said
    first.end()
    assert second.taken.wait(5)
    second.end()


def test_no_server_of_programs_is_started_with_a_lease(monkeypatch):
    """It would have the lease in its environment, and end with Snakemake alone."""
    monkeypatch.setattr(forkserver.sys, "platform", "linux")
    monkeypatch.setattr(forkserver, "Path", lambda device: SimpleNamespace(exists=lambda: False))
    monkeypatch.delenv(LEASE, raising=False)
    assert forkserver._forks()
    monkeypatch.setenv(LEASE, "of a job")
    assert not forkserver._forks()


def test_the_number_of_a_dead_owner_that_another_process_has_now_takes_no_card(tmp_path):
    (tmp_path / "gpu-0").write_text(
        json.dumps({"process": os.getpid(), "started": 1.0, "lease": "x"})
    )
    with leased(1, ["0"], tmp_path) as lease:
        assert lease.cards == ["0"]
        record = json.loads((tmp_path / "gpu-0").read_text())
        own = psutil.Process()
        assert (record["process"], record["started"]) == (own.pid, own.create_time())
        with (tmp_path / "gpu-0").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_that_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="is a link or closed to you.\nHint: "):
        with leased(1, ["0"], tmp_path / "link"):
            pass
    (tmp_path / "open").mkdir()
    (tmp_path / "open/gpu-0").symlink_to(tmp_path / "of_somebody")
    (tmp_path / "of_somebody").write_text("mine")
    with pytest.raises(OSError, match="symbolic link"):
        with leased(1, ["0"], tmp_path / "open"):
            pass
    assert (tmp_path / "of_somebody").read_text() == "mine"


@pytest.fixture
def driver_of_three(tmp_path, monkeypatch):
    """A stand-in for nvidia-smi that lists three cards."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '0, GPU-aa1\\n1, GPU-ab2\\n2, GPU-b3\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("site", "environment", "expected"),
    [
        ("gpus: null", {}, ["0", "1", "2"]),
        (None, {}, ["0", "1", "2"]),
        ("gpus: 2", {}, ["0", "1"]),
        ("gpus: [1, 5]", {}, ["1", "5"]),
        ("gpus: 8", {"CUDA_VISIBLE_DEVICES": "2, 0"}, ["2", "0"]),
        ("gpus: 8", {"CUDA_VISIBLE_DEVICES": ""}, []),
        ("gpus: 8", {"CUDA_VISIBLE_DEVICES": "GPU-ab,GPU-a"}, ["1", "GPU-a"]),
        ("gpus: 8", {"CUDA_VISIBLE_DEVICES": "MIG-1"}, ["MIG-1"]),
    ],
)
def test_cards_are_those_of_the_environment_or_the_site_or_the_driver(
    driver_of_three, tmp_path, site, environment, expected
):
    file = tmp_path / "site.yaml"
    if site is not None:
        file.write_text(site)
    assert cards_of_machine(environment, file) == expected


@pytest.mark.parametrize("wrong", ["many", "[a]", "true", "-1.5"])
def test_other_words_for_the_gpus_of_a_site_are_refused(tmp_path, wrong):
    file = tmp_path / "site.yaml"
    file.write_text(f"gpus: {wrong}")
    with pytest.raises(ValueError, match="allowed are a number of GPUs, a list of their numbers"):
        cards_of_machine({}, file)


SAYS = (
    "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'), os.environ.get('CUDA_DEVICE_ORDER'))"
)


@pytest.mark.parametrize(
    ("gpus", "environment", "printed"),
    [
        (2, {}, "0,1 PCI_BUS_ID"),
        (0, {}, " None"),  # a study of a laptop is no guest of somebody's card
        (1, {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "3"}, "3 None"),
    ],
)
def test_a_program_sees_the_cards_of_its_job_alone(tmp_path, gpus, environment, printed):
    (tmp_path / "profiles/workstation").mkdir(parents=True)
    (tmp_path / "profiles/workstation/site.yaml").write_text("gpus: 2")
    done = subprocess.run(
        [
            sys.executable,
            LAUNCHER,
            "--gpus",
            str(gpus),
            "--scratch",
            "s",
            "--",
            "python",
            "-c",
            SAYS,
        ],
        cwd=tmp_path,
        env={**os.environ, FOLDER: str(tmp_path / "leases"), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.rstrip("\n") == printed
    assert (
        json.loads((tmp_path / "s/attempts.jsonl").read_text().splitlines()[0])["gpus"]
        == (printed.split(" ")[0])
    )


def test_more_gpus_than_the_machine_has_are_refused_by_name(tmp_path):
    done = subprocess.run(
        [sys.executable, LAUNCHER, "--gpus", "3", "--scratch", "s", "--", "true"],
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "asked for 3 GPUs and this machine shows it 2" in done.stderr
    assert "`gpus` of profiles/workstation/site.yaml, or nvidia-smi, names" in done.stderr
