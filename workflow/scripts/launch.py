"""Start a program with a resume state: alone on its scratch folder, on the GPUs it asked for.

    python workflow/scripts/launch.py --gpus 4 --processes 4 --scratch DIR -- python -m geosd ...

One process is started as it is, several through `accelerate launch`. With `--nodes` a SLURM job of
several nodes starts this program again on each of them (`srun`), and there `accelerate launch` with
the node's number; a machine without SLURM starts all processes itself. SIGTERM, by which SLURM
announces the time limit, a preemption or a scancel, is handed on: the program saves its state and
ends with an error, so that the job is tried again and goes on from there. DIR/attempts.jsonl lists
the starts.

On a machine without SLURM the program gets GPUs that no other job of the machine has
(geosd.gpu_leases), for which this one waits; a program that asked for none sees none.
"""

import argparse
import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from geosd.gpu_leases import VISIBLE, Lease, cards_of_machine, lease_folder, leased
from geosd.prerequisites.node_report import node_visible_gpus

# accelerate's processes are killed 30 s after their SIGTERM; a sharded state may take longer to
# save. It stays below the notice that profiles/slurm asks SLURM for.
SAVING_S = 270


def check_gpus(requested: int, environment: Mapping[str, str]) -> None:
    """Refuse to start on other GPUs than were requested.

    Raises:
        SystemExit: Too few are visible; or, in a SLURM job, too many, which others may be using.
    """
    visible = node_visible_gpus(environment)
    job = environment.get("SLURM_JOB_ID")
    if visible < requested or (job and requested and visible > requested):
        where = f"SLURM job {job}" if job else "this machine"
        offers = "`gpus` of profiles/workstation/site.yaml, or nvidia-smi, names"
        if job:
            offers = "the partitions of profiles/slurm/site.yaml offer"
        raise SystemExit(
            f"This job asked for {requested} GPUs and {where} shows it {visible}"
            f" (CUDA_VISIBLE_DEVICES is {environment.get(VISIBLE)!r}).\n"
            f"Hint: compare what the model asks for in params.yaml with what {offers}."
        )


@contextlib.contextmanager
def own_gpus(requested: int) -> Iterator[Lease]:
    """Context with GPUs of this machine that no other job has, as soon as they are free.

    SLURM gives its jobs their GPUs, so there and where none is asked for nothing is leased. Outside
    SLURM who asks for none sees none: a study of a laptop is computed by a GPU's machine as by one
    without.

    Raises:
        SystemExit: This machine has fewer.
    """
    if "SLURM_JOB_ID" in os.environ:
        check_gpus(requested, os.environ)
        yield Lease([], [], {})
    elif not requested:
        yield Lease([], [], {VISIBLE: ""})
    else:
        cards = cards_of_machine(os.environ)
        check_gpus(requested, {VISIBLE: ",".join(cards)})
        with leased(requested, cards, lease_folder(os.environ)) as lease:
            yield lease


class Node(NamedTuple):
    """A node of a job of several: their number, its own, and where the processes of all meet."""

    nodes: int
    rank: int
    address: str
    port: int


def command(processes: int, program: list[str], node: Node | None = None) -> list[str]:
    """The command that runs a program, `python -m geosd ...`, in so many processes on all nodes.

    Nothing is left to a user's own configuration of `accelerate launch`. --multi_gpu is its word
    for "one process per device", also on CPUs, where --cpu would start one process. Port 0 is a
    free one, so that two jobs on one node do not meet. --same_network is its word for "the first
    node's address is enough".
    """
    if processes <= 1:
        return program
    named: dict[str, Any] = {
        "num_processes": processes,
        "num_machines": 1,
        "gpu_ids": "all",
        "main_process_port": 0,
        "mixed_precision": "no",  # the training's own: by training.precision
        "dynamo_backend": "no",
    }
    flags = ["--multi_gpu"]
    if node is not None:
        flags += ["--same_network"]
        named |= {
            "num_machines": node.nodes,
            "machine_rank": node.rank,
            "main_process_ip": node.address,
            "main_process_port": node.port,
        }
    flags += [str(word) for key, value in named.items() for word in (f"--{key}", value)]
    python, *module = program
    return [python, "-m", "accelerate.commands.launch", *flags, *module]


def on_every_node(nodes: int, gpus: int, words: list[str]) -> list[str]:
    """The command that starts this program, with its `words`, once on each node of the job."""
    each = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    each += [f"--gres=gpu:{gpus}"] if gpus else []
    # Every launcher may use all CPUs of its node; the end of one with an error ends the others.
    each += ["--cpu-bind=none", "--kill-on-bad-exit=1"]
    with socket.socket() as free:  # here, on the first node, at this moment
        free.bind(("", 0))
        port = free.getsockname()[1]
    return ["srun", *each, sys.executable, __file__, "--port", str(port), *words]


def this_node(nodes: int, port: int, environment: Mapping[str, str]) -> Node:
    """The node on which a task of `on_every_node` runs, from what SLURM tells the task."""
    listed = environment["SLURM_JOB_NODELIST"]  # "gpu[03-04]"
    names = subprocess.run(
        ["scontrol", "show", "hostnames", listed], capture_output=True, text=True, check=True
    ).stdout.split()
    return Node(nodes, int(environment["SLURM_NODEID"]), names[0], port)


@contextlib.contextmanager
def alone(scratch: Path) -> Iterator[int]:
    """Hold the scratch folder's lock, which the system takes back when its holder dies.

    Yields:
        The descriptor of the lock, for the child to inherit: it is free only when both have ended.

    Raises:
        SystemExit: Another process holds it.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A file system without locks: the start of a driver has cancelled what was left over.
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
                raise SystemExit(
                    f"{scratch}: another process is at work on this; `fuser {scratch}/lock` names"
                    " those of this machine.\nHint: wait for its end. Where a killed Snakemake left"
                    " it, `make stop` ends it with its state saved, here and on SLURM."
                ) from error
        yield lock.fileno()


def note(scratch: Path, **values: Any) -> None:
    """Add a line to the attempts of this scratch folder."""
    line = json.dumps({"time": round(time.time(), 2), **values})
    with (scratch / "attempts.jsonl").open("a", encoding="utf-8") as attempts:
        attempts.write(line + "\n")


def run(
    arguments: list[str], locks: Sequence[int] = (), variables: Mapping[str, str] | None = None
) -> int:
    """Run a command to its end, handing SIGTERM on.

    `srun` gets none: SLURM itself tells the tasks, and `srun` would kill them at once. The command
    inherits the descriptors of the locks, and has the variables besides this process's.

    Returns:
        Its exit status; 128 + n where signal n ended it, as shells say it.
    """
    environment = {**os.environ, **(variables or {})}
    if "accelerate.commands.launch" in arguments:
        environment.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(SAVING_S))
    # Blocked until there is a child to hand it to: a SIGTERM in between must not be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    unblock = partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, {signal.SIGTERM})
    child = subprocess.Popen(arguments, env=environment, pass_fds=locks, preexec_fn=unblock)
    handed_on = arguments[0] != "srun"
    signal.signal(
        signal.SIGTERM, lambda number, _: child.send_signal(number) if handed_on else None
    )
    unblock()
    status = child.wait()
    return status if status >= 0 else 128 - status


def main(words: list[str]) -> int:
    """Check, start, wait, and return the step's exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, required=True, help="GPUs that it asked of each node")
    parser.add_argument("--nodes", type=int, default=1, help="nodes that it asked for")
    parser.add_argument("--processes", type=int, default=1, help="processes to start in all")
    parser.add_argument("--port", type=int, help="set by itself: where processes of all nodes meet")
    parser.add_argument("--scratch", type=Path, required=True, help="folder of the resume state")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="-- python -m geosd arguments")
    given = parser.parse_args(words)
    program = given.program[1:] if given.program[:1] == ["--"] else given.program
    several = given.nodes > 1 and "SLURM_JOB_ID" in os.environ
    requested = given.gpus * (1 if several else given.nodes)
    if several and given.port is not None:
        check_gpus(requested, os.environ)
        node = this_node(given.nodes, given.port, os.environ)
        return run(command(given.processes, program, node))
    arguments = command(given.processes, program)
    if several:
        arguments = on_every_node(given.nodes, given.gpus, words)
    with alone(given.scratch) as lock, own_gpus(requested) as lease:
        here = {
            "host": os.environ.get("SLURMD_NODENAME", socket.gethostname()),
            "job": os.environ.get("SLURM_JOB_ID"),
            "gpus": lease.variables.get(VISIBLE, os.environ.get(VISIBLE)),
            "process": os.getpid(),
        }
        note(given.scratch, event="start", **here)
        status = run(arguments, [lock, *lease.locks], lease.variables)
        note(given.scratch, event="end", status=status, **here)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
