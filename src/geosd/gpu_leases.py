"""Leases of a machine's GPUs: without SLURM, no two jobs work on one card.

A card has a file in a folder that all users and clones of the machine share. Who holds the file's
lock (flock) has the card; the program that works on it inherits the lock, and the system takes the
lock back when its last holder dies, however that happens. The file says who the owner is: process,
start time, and a word that the environment of all its programs has. By it a program is found that
outlived the holders of the lock, as a process of a killed launcher does, and its card stays taken.

Jobs that wait stand in a line. A job takes all of its cards at once, and none while an older job
waits for one of the same cards, so a job of four cards gets them although jobs of one keep coming.
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import yaml

FOLDER = "GEOSD_LEASES"
"""The variable that names another folder of leases than `SHARED_FOLDER`."""
SHARED_FOLDER = Path("/tmp/geosd-gpus")
"""Not in TMPDIR, in which two shells of one machine may differ."""
LEASE = "GEOSD_LEASE"
"""The variable whose value names a lease, in the environment of the programs that work by it."""
SITE_FILE = Path("profiles/workstation/site.yaml")
"""What a machine without SLURM has, from the project's folder."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
WAIT_S = 0.3
"""Seconds between two looks of a job that waits."""


class Lease(NamedTuple):
    """Cards that a job has to itself: `locks` are descriptors, for its programs to inherit."""

    cards: Sequence[str]
    locks: Sequence[int]
    variables: Mapping[str, str]
    """What the environment of the programs must have."""


def cards_of_machine(environment: Mapping[str, str], site: Path = SITE_FILE) -> list[str]:
    """The GPUs that jobs may take: of CUDA_VISIBLE_DEVICES, else `gpus` of a site, else all.

    Returns:
        Their numbers as nvidia-smi counts them. A card that is named by another word, as a part of
        a card is (MIG), keeps it.

    Raises:
        ValueError: `gpus` is neither a number, nor a list of numbers, nor null.
    """
    if VISIBLE in environment:
        words = [word.strip() for word in environment[VISIBLE].split(",") if word.strip()]
        return _by_number(words)
    named = _named_in_site(site)
    return list(_listed_by_driver()) if named is None else [str(number) for number in named]


def _named_in_site(site: Path) -> Sequence[int] | None:
    """The numbers of the cards that a site's file names; None where nvidia-smi is to say them."""
    if not site.exists():
        return None
    named = (yaml.safe_load(site.read_text(encoding="utf-8")) or {}).get("gpus")
    if named is None:
        return None
    numbers = [*range(named)] if type(named) is int else named
    if not isinstance(numbers, list) or any(type(number) is not int for number in numbers):
        raise ValueError(
            f"gpus in {site} is {named!r}; allowed are a number of GPUs, a list of their numbers,"
            " and null.\nHint: 8, or [0, 1, 3]; null takes those that nvidia-smi lists."
        )
    return numbers


def _by_number(words: Sequence[str]) -> list[str]:
    """Cards by their numbers, where some are named by the beginning of their identity (GPU-...)."""
    if not any(word.startswith("GPU-") for word in words):
        return list(words)
    listed = _listed_by_driver()
    numbers = []
    for word in words:
        same = [number for number, identity in listed.items() if identity.startswith(word)]
        numbers.append(same[0] if len(same) == 1 else word)
    return numbers


def _listed_by_driver() -> dict[str, str]:
    """The cards that nvidia-smi lists: number -> identity; none where it is not installed."""
    if not shutil.which("nvidia-smi"):
        return {}
    query = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True)
    pairs = (line.partition(",") for line in done.stdout.splitlines() if "," in line)
    return {number.strip(): identity.strip() for number, _, identity in pairs}


def smallest_gpu_to_lease(environment: Mapping[str, str], site: Path = SITE_FILE) -> int | None:
    """Bytes of the smallest of the machine's GPUs; None where nvidia-smi does not say."""
    if not shutil.which("nvidia-smi"):
        return None
    query = ["nvidia-smi", "--query-gpu=index,memory.total", "--format=csv,noheader,nounits"]
    done = subprocess.run(query, capture_output=True, text=True)
    pairs = (line.partition(",") for line in done.stdout.splitlines() if "," in line)
    mebibytes = {number.strip(): memory.strip() for number, _, memory in pairs}
    used = [mebibytes.get(card, "") for card in cards_of_machine(environment, site)]
    return min((int(each) * 2**20 for each in used if each.isdigit()), default=None)


def lease_folder(environment: Mapping[str, str]) -> Path:
    """The folder of this machine's leases."""
    return Path(environment.get(FOLDER) or SHARED_FOLDER)


@contextmanager
def leased(count: int, cards: Sequence[str], folder: Path) -> Iterator[Lease]:
    """Context with the lease of some of the cards, for which it waits; `count` is at least 1.

    Raises:
        ValueError: There are fewer cards.
        PermissionError: The folder is somebody else's, and closed to this user.
    """
    if len(set(cards)) < count:
        raise ValueError(
            f"a job asks for {count} GPUs, and this machine has {len(set(cards))}"
            f" ({', '.join(cards) or 'none'}).\nHint: `gpus` in profiles/workstation/site.yaml, or"
            " CUDA_VISIBLE_DEVICES, says which there are."
        )
    _make_shared(folder)
    name = secrets.token_hex(8)
    taken = _wait(count, cards, folder, name)
    visible = ",".join(taken)
    # Numbers are nvidia-smi's, not those that CUDA gives the fastest card first.
    variables = {VISIBLE: visible, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", LEASE: name}
    try:
        yield Lease([*taken], [*taken.values()], variables)
    finally:
        for lock in taken.values():
            _write(
                lock, {"lease": name}
            )  # a program of it may go on, as an engine that lost its job
            os.close(lock)


def _wait(count: int, cards: Sequence[str], folder: Path, name: str) -> dict[str, int]:
    """Stand in line until the cards can be taken: card -> descriptor of its lock."""
    with _alone(folder):
        ticket = folder / f"wait-{time.time_ns():020d}-{os.getpid()}"
        waiting = _open(ticket)
        fcntl.flock(waiting, fcntl.LOCK_EX)
        os.write(waiting, json.dumps([*cards]).encode())
    said = False
    try:
        while True:
            with _alone(folder):
                taken = {} if _after_others(ticket, cards) else _take(count, cards, folder, name)
            if taken:
                return taken
            if not said:
                owners = ", ".join(_owners(cards, folder))
                print(
                    f"Waiting for {count} of the GPUs {', '.join(cards)}, on which others work:"
                    f" {owners}",
                    file=sys.stderr,
                    flush=True,
                )
                said = True
            time.sleep(WAIT_S)
    finally:
        ticket.unlink(missing_ok=True)
        os.close(waiting)


def _after_others(ticket: Path, cards: Sequence[str]) -> bool:
    """Whether an older job waits for one of the cards; removes the tickets of dead ones."""
    for other in sorted(ticket.parent.glob("wait-*")):
        if other.name >= ticket.name:
            return False
        lock = _locked(other)
        if lock is not None:
            other.unlink(missing_ok=True)
            os.close(lock)
            continue
        with suppress(ValueError, OSError):  # it has just gone
            if set(json.loads(other.read_text())) & set(cards):
                return True
    return False


def _take(count: int, cards: Sequence[str], folder: Path, name: str) -> dict[str, int]:
    """Lock so many free cards, or none."""
    taken: dict[str, int] = {}
    for card in dict.fromkeys(cards):
        if len(taken) == count:
            break
        lock = _free(folder / f"gpu-{card}")
        if lock is not None:
            taken[card] = lock
    if len(taken) < count:
        for lock in taken.values():
            os.close(lock)
        return {}
    own = psutil.Process()
    for lock in taken.values():
        _write(lock, {"process": own.pid, "started": own.create_time(), "lease": name})
    return taken


def _write(lock: int, record: Mapping[str, Any]) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(record).encode(), 0)


def _free(file: Path) -> int | None:
    """The lock of a card that nobody works on; None where somebody does."""
    lock = _locked(file)
    if lock is None:
        return None
    try:
        record = json.loads(os.pread(lock, 10_000, 0) or b"{}")
    except ValueError:  # cut off by a full disk
        record = {}
    if record and _worker(record) is not None:
        os.close(lock)
        return None
    return lock


def _worker(record: Mapping[str, Any]) -> int | None:
    """The number of a lease's owner, or of a program that works by it; None where none lives."""
    if "process" in record:
        with suppress(psutil.Error):
            if psutil.Process(record["process"]).create_time() == record["started"]:
                return record["process"]
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has just ended, or is somebody else's
            if process.environ().get(LEASE) == record.get("lease"):
                return process.pid
    return None


def _owners(cards: Sequence[str], folder: Path) -> Iterator[str]:
    """The process on each card that is taken, in words."""
    for card in cards:
        with suppress(OSError, ValueError):
            record = json.loads((folder / f"gpu-{card}").read_text())
            worker = _worker(record)
            if worker is not None:
                yield f"process {worker} on {card}"


def _locked(file: Path) -> int | None:
    """A descriptor that holds a file's lock; None where another one does."""
    descriptor = _open(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Context in which no other job looks at the line or the cards: some milliseconds."""
    descriptor = _open(folder / "line")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    """Open a file that all users may, and make it where it is absent; a link is refused.

    A system may refuse to make what is there, in a folder that is open to all (protected_regular).
    """
    with suppress(FileNotFoundError):
        return os.open(file, os.O_RDWR | os.O_NOFOLLOW)
    with suppress(FileExistsError):
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL)
        os.fchmod(descriptor, 0o666)
        return descriptor
    return os.open(file, os.O_RDWR | os.O_NOFOLLOW)


def _make_shared(folder: Path) -> None:
    """Make the folder of leases, open to all users of the machine."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if folder.is_symlink() or not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(
                f"{folder}, where this machine's GPUs are leased, is a link or closed to you.\n"
                f"Hint: its owner can run `chmod 1777 {folder}`; or name another folder, the same"
                f" for all: export {FOLDER}=/a/folder."
            ) from None
        return
    folder.chmod(0o1777)
