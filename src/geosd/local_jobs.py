"""The jobs of a folder's Snakemake that run on this machine, and how they are ended.

A job is started by a shell of Snakemake; workflow/scripts/launch.py runs those that save a state,
and hands SIGTERM on. A job outlives a Snakemake that was killed, so jobs are not looked for below
it: they know it by a variable of their environment.
"""

import os
import shlex
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

DRIVER = "GEOSD_DRIVER"
"""The variable that Snakemake sets for its jobs: its own process."""
ENDING_S = 30.0
"""How long a job that is told to end may take to save its state."""
SHARDED_ENDING_S = 300.0
"""How long a training of several processes may take, which gathers its state first."""
WRAPPERS = ("bash", "sh", "dash")
SERVER = "geosd.cli.forkserver"
"""Mark of a server of programs, and of its forks, in their command; it ends with Snakemake."""


def local_jobs(folder: Path) -> dict[int, psutil.Process]:
    """The processes of a folder's jobs on this machine that SIGTERM must reach, by number.

    Of a job that launch.py runs it is that one, of others the program itself. Jobs of SLURM are
    left out, also where they run on this machine: SLURM ends them.
    """
    found = {process.pid: process for process in _started_by_a_driver(folder)}
    inner = {child.pid for process in found.values() for child in _children(process)}
    told: dict[int, psutil.Process] = {}
    for number, process in found.items():
        if number not in inner:
            told |= {each.pid: each for each in _programs(process)}
    return told


def describe_local_job(process: psutil.Process) -> str:
    """A job in a few words: program of geosd and folder, or command; empty where it is gone."""
    try:
        words = process.cmdline()
    except psutil.Error:
        words = []
    if "--scratch" in words and "geosd" in words:
        folder = words[words.index("--scratch") + 1]
        return f"{words[words.index('geosd') + 1]} ({folder})"
    program = words[words.index("--") + 1 :] if "--" in words else words
    return shlex.join(program)[:100]


def end_local_jobs(folder: Path) -> list[str]:
    """Send SIGTERM to a folder's local jobs, wait for their end, and kill what goes on.

    Returns:
        A line for each job, which says how it ended.
    """
    began, told, lines = time.monotonic(), dict[int, psutil.Process](), list[str]()
    names: dict[int, str] = {}
    while running := local_jobs(folder):
        passed = time.monotonic() - began
        for number, process in running.items():
            if number not in told:
                told[number], names[number] = process, describe_local_job(process)
                _signal([process], signal.SIGTERM)
            elif passed > _patience(process):
                lines.append(
                    f"Killed after {passed:.0f} s: {names.pop(number)}; it goes on from the last"
                    " state that was saved."
                )
                _signal([process, *_children(process)], signal.SIGKILL)
                told.pop(number)
        time.sleep(0.1)
    _signal(_servers(folder), signal.SIGTERM)
    return [*lines, *(f"Ended: {name}." for name in names.values() if name)]


def _patience(process: psutil.Process) -> float:
    words = _words(process)
    several = "--processes" in words and words[words.index("--processes") + 1] != "1"
    return SHARDED_ENDING_S if several else ENDING_S


def _started_by_a_driver(folder: Path) -> list[psutil.Process]:
    """The processes in a folder that a Snakemake has started for a job, in any depth."""
    return [process for process in _knowing_a_driver(folder) if not _is_server(process)]


def _servers(folder: Path) -> list[psutil.Process]:
    """The servers of programs in a folder; with all jobs ended they have no forks."""
    return [process for process in _knowing_a_driver(folder) if _is_server(process)]


def _knowing_a_driver(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            of_a_job = DRIVER in variables and "SLURM_JOB_ID" not in variables
            if of_a_job and Path(process.cwd()) == folder.resolve() and process.pid != os.getpid():
                found.append(process)
        except (psutil.Error, OSError):
            continue  # it has just ended, or is somebody else's
    return found


def _programs(process: psutil.Process) -> list[psutil.Process]:
    """The programs that a shell of Snakemake, or a Snakemake for one job, waits for."""
    words = _words(process)
    wraps = Path(words[0]).name in WRAPPERS if words else True
    wraps |= any("snakemake" in Path(word).name for word in words[:3])
    inside = [child for child in _children(process, deep=False) if not _is_server(child)]
    if wraps and inside:
        return [program for child in inside for program in _programs(child)]
    return [process]


def _is_server(process: psutil.Process) -> bool:
    return any(SERVER in word for word in _words(process))


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _children(process: psutil.Process, deep: bool = True) -> list[psutil.Process]:
    try:
        return process.children(recursive=deep)
    except psutil.Error:
        return []


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue  # it has just ended
