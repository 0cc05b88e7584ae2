"""A server that forks programs which have torch and transformers loaded.

To import both costs three seconds of processor time, for jobs that may need no more for their work.
On one machine Snakemake names a folder, `FOLDER`, for the time of its run. The first program of
`SERVED` that starts then starts a server there, which imports what they all need, and forks. This
and each later program hands its arguments, folder and standard streams over, waits, passes signals
on, and ends as its fork ends. So it remains the ordinary program that it is without the folder.

A server has one environment, the whole of it: a program with any other variable, as another number
of threads, starts another server. It ends with the process of Snakemake.
"""

import contextlib
import fcntl
import gc
import hashlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

FOLDER = "GEOSD_FORKSERVER"
"""The variable that names the folder of the sockets, in the environment of Snakemake's jobs."""
OWNER = "GEOSD_FORKSERVER_OWNER"
"""The process by whose end the servers end."""
SERVED = frozenset({"alignment", "base", "evaluate-run", "pool", "score-tokens", "states", "train"})
"""The programs of jobs that import torch."""
PRELOADED = (
    "torch.distributed.checkpoint.state_dict",
    "accelerate.tracking",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.llama.modeling_llama",
    "transformers.models.olmo3.modeling_olmo3",
    "transformers.models.qwen3.modeling_qwen3",
    "pydantic",
    "tyro",
)
"""No module of geosd, whose code may be edited during a run; none that starts a thread (pandas)."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
UNREAD = {"PWD", "OLDPWD", "SHLVL", "_"}
"""Variables of a shell, which no library reads."""
START_S = 30.0
"""How long a program waits for a server that another one is starting."""


def run_forked(name: str, entry: str) -> None:
    """Run a program, with the arguments of this command line, in a fork of the server.

    Returns only where the program must run here: it is not served, or no server can be had.

    Args:
        name: The program.
        entry: The module whose `main` the fork calls, as this process has called it.

    Raises:
        SystemExit: With the status of the program.
    """
    folder = os.environ.get(FOLDER)
    if not folder or name not in SERVED or "RANK" in os.environ or not _forks():
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until there is a fork to pass them on to
    try:
        connection = _connected(Path(folder))
        process = _handed_over(connection, entry)
    except (OSError, EOFError):
        return
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    sys.exit(_wait(connection, process))


def _forks() -> bool:
    """Whether a fork can do the work: on Linux, and not on a GPU, which allows no forks.

    Nor for a job that has leased a GPU: the server would have its lease, and outlive it.
    """
    from geosd.gpu_leases import LEASE  # imports that a program without a server need not wait for

    gpu = any(Path(device).exists() for device in ("/dev/nvidiactl", "/dev/kfd"))
    return sys.platform == "linux" and not gpu and LEASE not in os.environ


def _connected(folder: Path) -> Connection:
    """A connection to the server of this environment, which is started where there is none."""
    variables = sorted((name, text) for name, text in os.environ.items() if name not in UNREAD)
    key = json.dumps([sys.executable, variables])
    path = folder / hashlib.sha256(key.encode()).hexdigest()[:16]
    with _short_name(path) as address, path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            return Client(address)
        path.unlink(missing_ok=True)
        server = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import main; main()", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the programs, not their server
        )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and server.poll() is None:
            time.sleep(0.01)
            with contextlib.suppress(OSError):
                return Client(address)
    raise TimeoutError(f"{path}: no server has started")


@contextlib.contextmanager
def _short_name(path: Path) -> Iterator[str]:
    """Context with a short name of a socket: the system takes none of more than 107 bytes.

    A folder of a cluster's job, where TMPDIR lies, may have more. The name goes through a
    descriptor of the folder.
    """
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _handed_over(connection: Connection, entry: str) -> int:
    """The process of the program, to which all signals are passed on."""
    umask = os.umask(0)
    os.umask(umask)
    program = {
        "entry": entry,
        "arguments": sys.argv[1:],
        "folder": os.getcwd(),
        "umask": umask,
        "environment": dict(os.environ),
    }
    with socket.socket(fileno=os.dup(connection.fileno())) as carrier:
        socket.send_fds(carrier, [b"\0"], [0, 1, 2])
    connection.send_bytes(json.dumps(program).encode())
    process = int(connection.recv_bytes())
    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: _kill(process, number))
    return process


def _wait(connection: Connection, process: int) -> int:
    """The exit status of the program; where a signal ended it, that signal ends this process."""
    try:
        status = int(connection.recv_bytes())
    except (OSError, EOFError):
        _kill(process, signal.SIGKILL)
        raise SystemExit("the server of this program has died") from None
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL cannot be set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _kill(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def main() -> None:
    """Serve at the path that the command line names, until the owner ends.

    Each connection has a process of its own, which forks the program and waits for its end.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    gc.disable()
    path, owner = Path(sys.argv[1]), os.pidfd_open(int(os.environ[OWNER]))
    listener = socket.socket(socket.AF_UNIX)
    partial = path.with_suffix(".new")
    with _short_name(partial) as address:
        listener.bind(address)
    listener.listen(64)
    partial.rename(path)  # programs that connect wait from here on
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets processes that have ended
    while owner not in select.select([listener, owner], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            os.close(owner)
            _serve(connection)
            return
        connection.close()
    path.unlink(missing_ok=True)


def _serve(accepted: socket.socket) -> None:
    """Fork the program of one connection; tell the client its number and, at its end, its status.

    In the fork: run the program.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _, streams, _, _ = socket.recv_fds(accepted, 1, 3)
        connection = Connection(accepted.detach())
        program = json.loads(connection.recv_bytes())
    except (OSError, EOFError, ValueError):  # the client died before it had asked
        return
    process = os.fork()
    if not process:
        connection.close()
        _become({**program, "streams": streams})
        importlib.import_module(program["entry"]).main()
        return
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(process)
    with contextlib.suppress(OSError):  # the client died meanwhile: select() says so
        connection.send_bytes(str(process).encode())
    if ended not in select.select([ended, connection], [], [])[0]:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    with contextlib.suppress(OSError):
        connection.send_bytes(str(os.waitstatus_to_exitcode(status)).encode())


def _become(program: Mapping[str, Any]) -> None:
    """Make this process the one that `geosd NAME ...` would be."""
    for target, stream in enumerate(program["streams"]):
        os.dup2(stream, target)
        os.close(stream)
    sys.stdout, sys.stderr = _opened_anew(sys.stdout), _opened_anew(sys.stderr)
    os.chdir(program["folder"])
    os.umask(program["umask"])
    os.environ.clear()
    os.environ.update(program["environment"])
    del os.environ[FOLDER]  # it is here already
    sys.argv[1:] = program["arguments"]
    sys.path[0] = program["folder"]
    for name in [name for name in sys.modules if name.split(".")[0] == "geosd"]:
        del sys.modules[name]


def _opened_anew(stream: TextIOWrapper) -> TextIOWrapper:
    """A standard stream for the file that its number means now.

    Python asked when the server began whether the file can be sought in, and asks no more.
    """
    number = stream.fileno()
    return TextIOWrapper(
        open(number, "wb", closefd=False),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or os.isatty(number),
    )
