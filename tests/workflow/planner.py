"""Programs in forks of a process that has Snakemake, DVC and geosd imported: most of their time.

Run as a program, this file is that process. It forks for each message on its socket, and ends with
its input, so with the process of the tests. It is not that process itself, because a fork must find
what is imported as it is, whatever tests have done to it.

`plan` is `python -m snakemake` in such a fork. With the folder of `programs()` first on PATH, so is
each `python`, `snakemake` and `dvc` that a program starts.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src/geosd")
CODE = "provenance/code.py"
IMPORTED = (
    "snakemake.cli",
    "geosd.config.job_counts",
    "geosd.config.run_folders",
    "geosd.reporting.specs",
    "snakemake.storage",
    "dvc.cli",
    "dvc.repo",
    "dvc.commands.repro",
    "dvc.commands.data_sync",
    "dvc.commands.commit",
    "dvc.fs",
    "dvc.stage.serialize",
    "dvc.cachemgr",
    "dvc.cli.parser",
    "dvc.data_cloud",
    "dvc.lock",
    "dvc.repo.artifacts",
    "dvc.repo.datasets",
    "dvc.repo.metrics",
    "dvc.repo.params",
    "dvc.repo.plots",
    "dvc.repo.stage",
    "dvc.rwlock",
    "dvc.utils.strictyaml",
    "dvc_data.hashfile.db.local",
    "dvc_data.hashfile.status",
    "scmrepo.git",
    "ruamel.yaml",
    "smart_open",
    "seaborn",
    "statsmodels.api",
    "tyro",
)
"""What Snakemake, the Snakefile, DVC and programs without torch import, with all they import."""
STAND_INS = "stand_ins"
"""A folder of a project with what runs in place of `geosd NAME`: the code of the project stays."""
PYTHON = sys.executable  # as it is before a test puts another program in its place
TOUCHED = 0.01
"""Seconds between two jobs of --touch. Snakemake's own tenth is for file systems of such clocks."""
LARGEST = 100_000
"""Bytes of a message: the words of a command, and the environment."""

CLIENT = f"""#!{PYTHON} -ES
import os, pickle, socket, sys
name = os.path.basename(sys.argv[0])
words = sys.argv[1:] if name == "python" else ["-m", name, *sys.argv[1:]]
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "socket"))
message = pickle.dumps((os.getcwd(), words, dict(os.environ)))
socket.send_fds(link, [message], [0, 1, 2])
status = int(link.recv(100) or 1)
sys.exit(status if status >= 0 else 128 - status)
"""
"""`python`, `snakemake` or `dvc`, by the name that it is called."""


@cache
def _started(*loaded: str) -> tuple[subprocess.Popen[bytes], Path]:
    """The process that forks, one for all tests of this one, and its folder of programs."""
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    for name in ("python", "snakemake", "dvc"):
        (folder / name).write_text(CLIENT)
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    words = [PYTHON, __file__, str(folder), *loaded]
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, cwd=ROOT, env=environment)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    atexit.register(process.communicate)  # it ends, and its time counts
    return process, folder


def programs(*loaded: str) -> Path:
    """A folder with the commands `python`, `snakemake` and `dvc`; each command runs in a fork.

    The fork has modules `loaded` in place of `IMPORTED`: those that import torch, where tests start
    several programs that do.
    """
    return _started(*loaded)[1]


def plan(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status and words of `python -m snakemake` in a folder, as it is planned by a fork.

    The environment is that of this process, where none is given, and what the fork starts are forks
    too. They find the folder's own geosd.
    """
    path = os.pathsep.join([str(programs()), os.environ["PATH"]])
    environment = dict({**os.environ, "PATH": path} if environment is None else environment)
    message = pickle.dumps((str(folder), ["-m", "snakemake", *arguments], environment))
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link, open(os.devnull) as empty, tempfile.TemporaryFile("w+") as output:
        with tempfile.TemporaryFile("w+") as errors:
            files = (empty, output, errors)
            link.connect(str(programs() / "socket"))
            socket.send_fds(link, [message], [file.fileno() for file in files])
            status = int(link.recv(100))
            for file in (output, errors):
                file.seek(0)
            return status, output.read() + errors.read()


def serve(folder: Path, *loaded: str) -> None:
    """Fork for each message, and answer with the fork's exit status."""
    for name in loaded or IMPORTED:
        importlib.import_module(name)
    if not loaded:
        _check_own_studies_once()
        _warm_up()
    gc.freeze()  # or each fork would look through all of this, and copy it
    own = _content(ROOT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen(100)
        threading.Thread(target=_end_with_input, args=(folder,), daemon=True).start()
        signal.signal(signal.SIGCHLD, _reap)
        print("ready", flush=True)
        while True:
            link, _ = listening.accept()
            if not os.fork():
                listening.close()
                _answer(link, own)
            link.close()


def _check_own_studies_once() -> None:
    """Check the studies of this repository here, so that no fork does it again.

    A fork that imports geosd anew checks them by the code that it finds.
    """
    sys.path.append(str(ROOT / "tests"))
    import checked_studies

    from geosd.config import loading

    loading._study = checked_studies.once(loading._study)
    sys.path.remove(str(ROOT / "tests"))


def _warm_up() -> None:
    """Plan study quick of this repository, so that no fork does again what any plan begins with.

    That is imports, expressions that are compiled, and the text of rules as Snakemake parses it: a
    file of the same bytes is parsed once, and knows its own path.
    """
    import dvc.cli.parser
    from snakemake import cli, workflow
    from snakemake.executors import touch

    from geosd.claims.published import published
    from geosd.provenance import code

    touch.Executor.SLEEPING_TIME = TOUCHED
    dvc.cli.parser.get_main_parser()  # which imports the commands
    published()
    for file in PACKAGE.rglob("*.py"):
        code._read(file)  # what it imports in its turn
    parse, known = workflow.parse, {}

    def parsed(source: Any, of: Any, linemap: dict[int, int], **counted: int) -> tuple[str, int]:
        path = source.get_path_or_uri(secret_free=True)
        key = (Path(path).read_bytes(), *counted.items())
        if key not in known:
            lines: dict[int, int] = {}
            known[key] = (*parse(source, of, lines, **counted), lines, path)
        text, rules, lines, first = known[key]
        linemap |= lines
        return text.replace(f"snakefile={first!r}", f"snakefile={path!r}"), rules

    workflow.parse = parsed
    environment, path, register = dict(os.environ), [*sys.path], atexit.register
    atexit.register = lambda function: function  # what a driver does at its end, no fork does
    with open(os.devnull, "w") as nowhere, contextlib.suppress(SystemExit):
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            cli.main(["--profile", "local", "--dry-run"])
    atexit.register = register
    os.environ.clear()  # which the Snakefile sets
    os.environ.update(environment)
    sys.path[:] = path


def _reap(*_: object) -> None:
    """Wait for those that have answered, so that their time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_with_input(folder: Path) -> None:
    """End this process with its input, and remove its folder."""
    os.read(0, 1)  # sys.stdin would be locked in all forks
    shutil.rmtree(folder)
    os._exit(0)


def _answer(link: socket.socket, own: dict[str, bytes]) -> NoReturn:
    """Run what a message says in a fork, send its exit status, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(link, LARGEST, 3)
    folder, words, environment = pickle.loads(message)
    words = words[words[0] == "-u" :]
    process = os.fork()
    if not process:
        link.close()
        _become(Path(folder), words, environment, files, own)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(OSError):  # who asked is gone
        link.send(str(status).encode())
    os._exit(0)


def _is_client(python: str) -> bool:
    """Whether a `python` is one of `programs()`."""
    return Path(python).with_name("socket").exists()


def _content(folder: Path) -> dict[str, bytes]:
    """Each file of a folder's geosd."""
    package = folder / PACKAGE
    return {
        str(file.relative_to(package)): file.read_bytes()
        for file in sorted(package.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    }


def _become(
    folder: Path,
    words: list[str],
    environment: dict[str, str],
    files: list[int],
    own: dict[str, bytes],
) -> NoReturn:
    """Run Python with some arguments in this process, with the folder's own geosd, and end."""
    status = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.environ.clear()
        os.environ.update(environment)
        os.environ["PYTHONPATH"] = str(folder / "src")
        os.chdir(folder)
        script = not words[0].startswith("-")
        first = Path(words[0]).resolve().parent if script else folder
        # In the places of this file's folder and of PYTHONPATH.
        sys.path[:2] = [str(first), str(folder / "src")]
        python = shutil.which("python", path=environment.get("PATH"))
        if python and _is_client(python):
            sys.executable = python
        if (content := _content(folder)) != own:
            _forget_geosd(keep_parsed=content.get(CODE) == own[CODE])
        try:
            _run(words)
        except SystemExit as end:
            if end.code is not None and not isinstance(end.code, int):
                print(end.code, file=sys.stderr)
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        else:
            status = 0
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forget_geosd(keep_parsed: bool) -> None:
    """Have geosd imported anew; what its files of code say, by their bytes, may stay known."""
    from geosd.provenance import code

    parsed = code._parsed
    for name in [name for name in sys.modules if name.split(".")[0] == "geosd"]:
        del sys.modules[name]
    if keep_parsed:
        importlib.import_module(code.__name__)._parsed = parsed


def _run(words: list[str]) -> None:
    """What `python` does with some arguments."""
    first, *others = words
    name = others[0] if first == "-m" else ""
    sys.argv = [name, *others[1:]] if name else [first, *others[first == "-c" :]]
    if name == "snakemake":
        import snakemake.cli

        snakemake.cli.main(others[1:])
    elif name == "dvc":
        import dvc.cli

        raise SystemExit(dvc.cli.main(others[1:]))
    elif name == "geosd" and (stand_in := Path(STAND_INS, f"{others[1]}.py")).exists():
        runpy.run_path(str(stand_in), run_name="__main__")
    elif name:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif first == "-c":
        exec(others[0], {"__name__": "__main__"})
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), *sys.argv[2:])
