"""Programs of several processes, as torchrun starts them, without the seconds of their imports."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

IMPORTED = (
    "geosd.training.fsdp",
    "geosd.training.loop",
    "geosd.training.rollout_workers",
    "geosd.training.run",
    "transformers.models.qwen3.modeling_qwen3",
)
"""What the programs import, with all that these import: three seconds a process."""


def places(processes: int) -> list[dict[str, str]]:
    """What torchrun tells each of some processes of one run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    everyone = {
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "test",
        "OMP_NUM_THREADS": "1",
    }
    return [{**everyone, "RANK": str(i), "LOCAL_RANK": str(i)} for i in range(processes)]


def launch(
    program: str,
    *arguments: object,
    processes: int = 2,
    timeout: float = 600,
    imported: Sequence[str] = IMPORTED,
) -> None:
    """Run a program in several processes, none of which may fail.

    Each is a fork of a process that has imported its packages and done nothing: a fork of the
    process of the tests would find what is left of other tests' process groups and threads.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*imported])
    words = [program, *map(str, arguments)]
    started = [context.Process(target=_run, args=(words, each)) for each in places(processes)]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(timeout)
            assert process.exitcode == 0
    finally:
        for process in started:
            process.kill()


def _run(words: list[str], place: dict[str, str]) -> None:
    """Be a program in its place."""
    os.environ.update(place)
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)
    runpy.run_path(words[0], run_name="__main__")
