"""Find, and end, the jobs of this folder: those whose driver is gone, or all.

Snakemake does not adopt the jobs of a driver that was killed; it submits them a second time, and
two jobs would write the same files. The job names of profiles/slurm carry their driver's process
and host (`geosd-<process>-<host>_<run>`), so that a later driver can tell: this runs at its start.

    orphaned_jobs.py             cancel what no driver waits for
    orphaned_jobs.py --all       stop this folder's drivers and jobs, local ones too (`make stop`)
    orphaned_jobs.py --idle      refuse, with an error, where anything is at work (`make clean`)
    orphaned_jobs.py --driver N  cancel what the driver of process N leaves at its end
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from geosd.local_jobs import describe_local_job, end_local_jobs, local_jobs

LOCKS = Path(".snakemake/locks")
NAME = re.compile(r"geosd-(?P<process>\d+)-(?P<host>[\w-]+)_[0-9a-f-]+")
TIMEOUT_S = 300  # a job may take its KillWait to save its state


@dataclass(frozen=True)
class Job:
    """One SLURM job in the queue, and the driver that submitted it."""

    number: str
    process: int
    host: str

    def driver_lives(self) -> bool:
        """Whether the driver still runs on this machine.

        Raises:
            RuntimeError: It ran on another machine, where we cannot look.
        """
        if self.host != this_host():
            raise RuntimeError(
                f"SLURM job {self.number} of this folder belongs to a Snakemake on {self.host},"
                f" process {self.process}; from {this_host()} nobody can see whether that still"
                " runs.\nHint: start there; or, if it is gone, `make stop` cancels its jobs."
            )
        # Else another program has got its number.
        return any("snakemake" in word for word in command(self.process))


def this_host() -> str:
    """This machine's name in the characters that a job's name may have."""
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:30]


def parse(listing: str, folder: Path) -> list[Job]:
    """The SLURM jobs of one folder, from lines of `number|name|working directory`."""
    jobs = []
    for line in listing.splitlines():
        if line.count("|") < 2:  # a word of squeue itself, no job
            continue
        number, name, where = line.split("|", 2)
        if (driver := NAME.fullmatch(name)) and Path(where).resolve() == folder.resolve():
            jobs.append(Job(number, int(driver["process"]), driver["host"]))
    return jobs


def queued(folder: Path, *more: str) -> list[Job]:
    """This user's jobs of one folder that are in the queue, cancelled ones too until they end."""
    squeue = ["squeue", "--noheader", "--me", "--format=%i|%j|%Z"]
    done = subprocess.run([*squeue, *more], capture_output=True, text=True, check=True, timeout=120)
    return parse(done.stdout, folder)


def cancel(jobs: list[Job], folder: Path) -> None:
    """Cancel SLURM jobs and wait until they are gone: until then they write.

    Raises:
        TimeoutError: Some are still there after `TIMEOUT_S`.
    """
    numbers = {job.number for job in jobs}
    subprocess.run(["scancel", *sorted(numbers)], check=True, timeout=120)
    end = time.monotonic() + TIMEOUT_S
    while left := numbers & {job.number for job in queued(folder)}:
        if time.monotonic() > end:
            raise TimeoutError(
                f"SLURM jobs {', '.join(sorted(left))} were cancelled {TIMEOUT_S} s ago and are"
                " still in the queue.\nHint: `squeue --me` says why; start when they are gone."
            )
        time.sleep(2)


def command(process: int) -> list[str]:
    """The command line of a process; empty where the process has ended."""
    try:
        return [word for word in Path(f"/proc/{process}/cmdline").read_text().split("\0") if word]
    except OSError:
        return []


def ignores_interrupts(process: int) -> bool:
    """Whether a process ignores Ctrl-C, as one does that a script started in the background."""
    status = Path(f"/proc/{process}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (signal.SIGINT - 1) & 1)


def drivers(folder: Path) -> set[int]:
    """The processes on this machine that submit, or soon will, jobs of one folder."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        words = command(int(entry.name))
        try:
            here = (entry / "cwd").readlink() == folder.resolve()
        except OSError:
            continue  # it has just ended, or is somebody else's
        # A profile is named by a driver only; what runs inside a job gets every setting in full.
        if here and "--profile" in words and any("snakemake" in word for word in words[:3]):
            found.add(int(entry.name))
    return found


def interrupt(processes: set[int]) -> None:
    """Press Ctrl-C for drivers: they cancel their jobs; left alone they would submit them anew."""
    for process in processes:
        print(f"Stopping the Snakemake of process {process}.", flush=True)
        os.kill(process, signal.SIGKILL if ignores_interrupts(process) else signal.SIGINT)


def wait_for(processes: set[int]) -> None:
    """Wait until drivers have ended.

    Raises:
        TimeoutError: Some are still there after `TIMEOUT_S`.
    """
    end = time.monotonic() + TIMEOUT_S
    while any(command(process) for process in processes):
        if time.monotonic() > end:
            raise TimeoutError(f"Snakemake does not end: {processes}.\nHint: look at its terminal.")
        time.sleep(0.2)


def queued_or_none(folder: Path, *more: str) -> list[Job]:
    """This user's queued jobs of one folder; none where there is no SLURM."""
    if not shutil.which("squeue"):
        return []
    try:
        return queued(folder, *more)
    except (subprocess.SubprocessError, OSError) as error:
        # A machine with SLURM's commands and no controller runs nothing that could be in the way.
        print(f"orphaned_jobs: SLURM does not answer, so no old jobs were looked for: {error}")
        return []


def cancel_orphans() -> None:
    """Cancel this folder's SLURM jobs whose driver is gone."""
    folder = Path.cwd()
    jobs = [job for job in queued_or_none(folder) if not job.driver_lives()]
    if jobs:
        print(
            f"Cancelling {len(jobs)} SLURM jobs that a killed Snakemake left behind; training saves"
            " its state and will go on."
        )
        cancel(jobs, folder)


def stop_everything() -> None:
    """End this folder's drivers, then their jobs here and on SLURM; say what was ended."""
    folder = Path.cwd()
    running = drivers(folder)
    interrupt(running)  # first, or it would start the next jobs
    ended = end_local_jobs(folder)
    print("\n".join(ended), end="\n" if ended else "", flush=True)
    wait_for(running)
    jobs = queued_or_none(folder)
    if jobs:
        print(
            f"Cancelling {len(jobs)} SLURM jobs of this folder; training saves its state and will"
            " go on."
        )
        cancel(jobs, folder)
    locked = LOCKS.is_dir() and any(LOCKS.iterdir())
    shutil.rmtree(LOCKS, ignore_errors=True)  # as `snakemake --unlock`, which takes seconds
    if locked:
        print("The folder is unlocked.")
    if not (running or ended or jobs or locked):
        print("Nothing was at work in this folder.")


def refuse_beside_a_run() -> None:
    """Refuse to remove what a run reads and writes.

    Raises:
        RuntimeError: A Snakemake or a job is at work in this folder, or was killed in it.
    """
    folder = Path.cwd()
    at_work = [f"the Snakemake of process {process}" for process in sorted(drivers(folder))]
    at_work += [describe_local_job(process) for process in local_jobs(folder).values()]
    at_work += [f"SLURM job {job.number}" for job in queued_or_none(folder)]
    if LOCKS.is_dir() and any(LOCKS.iterdir()):
        at_work.append(f"whoever holds the locks in {LOCKS}")
    if at_work:
        raise RuntimeError(
            f"Nothing was removed: at work in this folder is {', '.join(at_work)}.\nHint: wait for"
            " the end, or `make stop` first, which also unlocks a folder in which a run was killed."
        )


def clear_driver(driver: int) -> None:
    """Cancel what is not yet cancelled of one driver's jobs; its next start waits for their end."""
    jobs = [
        job.number
        for job in queued_or_none(Path.cwd(), "--states=PENDING,RUNNING")
        if (job.process, job.host) == (driver, this_host())
    ]
    if jobs:
        print(f"Cancelling {len(jobs)} SLURM jobs more; training saves its state and will go on.")
        subprocess.run(["scancel", *jobs], check=True, timeout=120)


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["--driver"]:
            clear_driver(int(sys.argv[2]))
        elif sys.argv[1:] == ["--all"]:
            stop_everything()
        elif sys.argv[1:] == ["--idle"]:
            refuse_beside_a_run()
        else:
            cancel_orphans()
    except (RuntimeError, TimeoutError) as error:
        sys.exit(str(error))
