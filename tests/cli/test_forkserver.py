"""Programs that a server forks: the same as those that start by themselves, to whoever waits."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from geosd.cli import command, forkserver
from geosd.cli.forkserver import FOLDER, OWNER, SERVED
from geosd.provenance.code import SOURCES, code_of

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="servers are Linux's"),
    pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="none where a GPU is"),
]


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """What is true at last, read once."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def server_of(path: Path) -> int:
    """The process that listens at a path."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return struct.unpack("3i", credentials)[0]


def children_of(process: int) -> list[int]:
    return [child.pid for child in psutil.Process(process).children()]


def ended(process: int) -> bool:
    """Whether a process is gone, or a zombie whose parent has not waited for it."""
    gone = not psutil.pid_exists(process)
    return gone or psutil.Process(process).status() == psutil.STATUS_ZOMBIE


def sockets(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_socket() and not path.suffix]


class Site:
    """A folder of servers, and programs that start there."""

    def __init__(self, folder: Path, owner: int) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            FOLDER: str(folder),
            OWNER: str(owner),
        }

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            env={**self.environment, **variables},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell's background jobs, and so tests run as one, ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *words: str, **variables: str) -> tuple[int, str, str]:
        process = self.start(*words, **variables)
        printed = process.communicate(timeout=120)
        return (process.returncode, *printed)

    @contextlib.contextmanager
    def blocked(self, pipe: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
        """A program that waits for its params.yaml; its server, and its fork."""
        os.mkfifo(pipe)
        names = ["--study", "quick", "--model", "m", "--params", str(pipe)]
        paths = [
            word
            for name in ("base", "problems", "out", "scratch")
            for word in (f"--{name}", "none")
        ]
        process = self.start("geosd", "pool", *names, *paths)
        writer: list[int] = []

        def reads() -> bool:
            with contextlib.suppress(OSError):  # ENXIO: nobody reads
                writer.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            return bool(writer)

        until(reads)
        server = server_of(sockets(self.folder)[0])
        # The server has one child more while it answers the connection of server_of.
        (waiting,) = until(lambda: len(found := children_of(server)) == 1 and found)
        (fork,) = children_of(waiting)
        yield process, server, fork
        os.close(writer[0])
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with subprocess.Popen(["sleep", "600"]) as owner:
        yield Site(tmp_path_factory.mktemp("fork"), owner.pid)
        owner.kill()


@pytest.mark.slow
def test_a_fork_prints_and_ends_as_a_program_that_starts_by_itself(site: Site) -> None:
    program = ("geosd", "evaluate", "--study", "nosuch", "--variant", "sft", "--seed", "one")
    status, printed, error = site.run(*program)
    assert (status, printed, error) == site.run(*program, **{FOLDER: ""})
    assert status == 2
    assert "Required options" in error
    assert len(sockets(site.folder)) == 1


def test_a_traceback_ends_a_fork_with_status_1(site: Site, tmp_path: Path) -> None:
    names = ("--study", "quick", "--model", "mini-qwen3", "--base", "base_models/mini-qwen3/0")
    paths = ("--problems", str(tmp_path), "--out", "none", "--scratch", "none")  # a folder
    status, printed, error = site.run("geosd", "pool", *names, *paths)
    assert (status, printed) == (1, "")
    assert error.startswith("Traceback")


def test_a_mistake_of_the_configuration_ends_a_fork_with_its_words_alone(
    site: Site, tmp_path: Path
) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("studies: {")
    paths = [
        word for name in ("base", "problems", "out", "scratch") for word in (f"--{name}", "none")
    ]
    program = ("geosd", "pool", "--study", "q", "--model", "m", "--params", str(params), *paths)
    status, printed, error = site.run(*program)
    assert (status, printed) == (1, "")
    assert error.startswith(f"{params} is not YAML") and "Hint: " in error


def test_signals_to_the_program_reach_its_fork(site: Site, tmp_path: Path) -> None:
    with site.blocked(tmp_path / "terminated") as (process, server, _):
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
        until(lambda: not children_of(server))
    with site.blocked(tmp_path / "interrupted") as (process, server, _):
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1].splitlines()[-1] == "KeyboardInterrupt"
        assert process.returncode


def test_a_killed_program_takes_its_fork_with_it(site: Site, tmp_path: Path) -> None:
    with site.blocked(tmp_path / "pipe") as (process, server, _):
        process.kill()
        until(lambda: not children_of(server))


def test_a_killed_fork_is_a_killed_program(site: Site, tmp_path: Path) -> None:
    with site.blocked(tmp_path / "pipe") as (process, _, fork):
        os.kill(fork, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL


@pytest.mark.slow  # for a server of its own, as the next two
def test_a_server_ends_with_its_owner_and_its_programs_go_on(tmp_path: Path) -> None:
    site = Site(tmp_path, 0)
    owner = subprocess.Popen(["sleep", "600"])
    site.environment[OWNER] = str(owner.pid)
    with site.blocked(tmp_path / "pipe") as (process, server, fork):
        owner.kill()
        owner.wait()
        until(lambda: not sockets(site.folder) and ended(server))
        assert process.poll() is None and not ended(fork)
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
        until(lambda: ended(fork))


@pytest.mark.slow
def test_other_variables_are_another_server(site: Site) -> None:
    for variables in ({}, {"OMP_NUM_THREADS": "2"}, {"PWD": "elsewhere"}):
        assert site.run("geosd", "pool", "--help", **variables)[0] == 0
    assert len(sockets(site.folder)) == 2


@pytest.mark.slow
def test_a_folder_with_a_long_name_has_a_server_too(site: Site, tmp_path: Path) -> None:
    """A socket's name may have 107 bytes, and the folders of a cluster's jobs are longer."""
    long = tmp_path / ("x" * 90) / "geosd-abcdefgh"
    long.mkdir(parents=True)
    assert site.run("geosd", "pool", "--help", **{FOLDER: str(long)})[0] == 0
    assert len(sockets(long)) == 1


def test_a_server_that_ends_at_once_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forkserver.sys, "executable", "/bin/false")
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        forkserver._connected(tmp_path)
    assert time.monotonic() - began < forkserver.START_S / 2


def test_programs_without_torch_start_by_themselves(tmp_path: Path) -> None:
    site = Site(tmp_path, os.getpid())
    assert site.run("geosd", "runs", "--help")[0] == 0
    assert not sockets(tmp_path)


@pytest.mark.slow
def test_without_a_server_a_program_starts_by_itself(tmp_path: Path) -> None:
    site = Site(tmp_path / "nosuch", os.getpid())
    assert site.run("geosd", "pool", "--help")[0] == 0


def test_served_are_the_steps_that_import_torch() -> None:
    def imports_torch(file: str) -> bool:
        nodes = ast.parse((SOURCES / file).read_text(encoding="utf-8")).body
        names = [
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        ]
        names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
        return any(name.split(".")[0] in ("torch", "transformers") for name in names)

    jobs = command.GROUPS["the jobs of a study, which `geosd run` starts"]
    values = {"source": "search", "objective": "geosd"}
    heavy = {
        name
        for name, (module, _) in jobs.items()
        if any(imports_torch(file) for file in code_of(module, values) if file.endswith(".py"))
    }
    assert heavy == SERVED
