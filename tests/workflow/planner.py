"""Plans of Snakemake by forks of a process that has imported it, and geosd: most of a plan's time.

Run as a program, this file is that process. It begins a fork for each line of its input, and ends
with its input, so with the process of the tests. It is not that process itself, because a fork must
find Snakemake and geosd as they are imported, whatever tests have done to them.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path("src/geosd")
IMPORTED = ("geosd.config.job_counts", "geosd.config.run_folders", "geosd.reporting.specs")
"""What the Snakefile imports, with all that these import."""
PYTHON = sys.executable  # as it is before a test puts another program in its place
TOUCHED = 0.01
"""Seconds between two jobs of --touch. Snakemake's own tenth is for file systems of such clocks."""


@cache
def _started() -> subprocess.Popen[str]:
    """The process that forks, one for all tests of this one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    words = [PYTHON, __file__]
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment)


def plan(
    folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status and words of `python -m snakemake` in a folder, as it is planned by a fork.

    The environment is that of this process, where none is given. Programs that the fork starts find
    the folder's own geosd.
    """
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        environment = dict(os.environ if environment is None else environment)
        files = [output.name, errors.name]
        process = _started()
        assert process.stdin is not None and process.stdout is not None
        print(
            json.dumps([str(folder), arguments, environment, files]), file=process.stdin, flush=True
        )
        status = int(process.stdout.readline())
        return status, "".join(Path(file).read_text() for file in files)


def serve() -> None:
    """Fork for each request, and answer with the fork's exit status."""
    import snakemake.cli
    import snakemake.executors.touch

    from geosd.config import load
    from geosd.provenance import code

    snakemake.executors.touch.Executor.SLEEPING_TIME = TOUCHED
    for name in IMPORTED:
        importlib.import_module(name)
    load("params.yaml")
    for file in PACKAGE.rglob("*.py"):
        code._read(file)  # what it imports in its turn
    gc.freeze()  # or each fork would look through all of this, and copy it
    own = _content(ROOT)
    for line in sys.stdin:
        folder, arguments, environment, files = json.loads(line)
        process = os.fork()
        if not process:
            _become_snakemake(Path(folder), arguments, environment, files, own)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _content(folder: Path) -> dict[str, bytes]:
    """Each file of a folder's geosd."""
    package = folder / PACKAGE
    return {
        str(file.relative_to(package)): file.read_bytes()
        for file in sorted(package.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    }


def _become_snakemake(
    folder: Path,
    arguments: list[str],
    environment: dict[str, str],
    files: list[str],
    own: dict[str, bytes],
) -> NoReturn:
    """Run Snakemake in this process, with the folder's own geosd, and end."""
    status = 1
    try:
        for number, name in enumerate([os.devnull, *files]):
            os.dup2(os.open(name, os.O_RDWR), number)
        os.environ.clear()
        os.environ.update(environment)
        os.environ["PYTHONPATH"] = str(folder / "src")
        os.chdir(folder)
        sys.path[:] = [str(folder / "src"), *sys.path[1:]]
        if _content(folder) != own:
            for name in [name for name in sys.modules if name.split(".")[0] == "geosd"]:
                del sys.modules[name]
        sys.argv = ["snakemake", *arguments]
        import snakemake.cli

        try:
            snakemake.cli.main(list(arguments))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
