"""The configuration of a run of the workflow, as it was when the run was planned.

A run takes minutes or weeks, and people edit params.yaml meanwhile, for the next one. A job that
started after such an edit would compute with other settings than those that its folder is named by.
So the driver of a run keeps a copy of the configuration (`keep_planned`), and every program of the
run reads the copy: the variable `PLAN` of its environment names the folder of the copy.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from geosd.config.errors import ConfigError
from geosd.files import write_text

PARAMS = "params.yaml"
PLAN = "GEOSD_PLAN"
"""The variable that names the folder of the copy, in the environment of a run's programs."""
PLANS = Path("scratch/plans")
"""Where runs keep the copies; equal ones are one folder."""


def planned(path: Path | str) -> Path:
    """The file to read in place of one of the configuration: the run's copy, where it has one.

    Outside a run it is the file itself.

    Raises:
        ConfigError: The folder of the run's copies is gone.
    """
    folder = os.environ.get(PLAN)
    if folder is None or Path(path).is_absolute():
        return Path(path)
    if not Path(folder).is_dir():
        raise ConfigError(
            f"{folder}: the configuration that this run was planned with is gone.\n"
            "Hint: start the run again; `make clean` is for the time when none is under way."
        )
    copy = Path(folder, path)
    return copy if copy.exists() else Path(path)


def planned_configuration_text() -> str:
    """The text of params.yaml, which is the whole configuration."""
    return planned(PARAMS).read_text(encoding="utf-8")


def keep_planned(text: str) -> Path:
    """Keep a copy of the configuration for a run; the folder of the copy, by a digest of it."""
    folder = PLANS / hashlib.sha256(text.encode()).hexdigest()[:16]
    copy = folder / PARAMS
    if not copy.exists():
        write_text(copy, text)
    return folder


@contextmanager
def planned_configuration() -> Iterator[None]:
    """Context in which all programs, those started too, read the configuration as it is now.

    A context within another one keeps to the outer one's copy.
    """
    outer = PLAN in os.environ
    os.environ.setdefault(PLAN, str(keep_planned(planned_configuration_text())))
    try:
        yield
    finally:
        if not outer:
            del os.environ[PLAN]


def planned_file_times(files: Iterable[Path]) -> dict[Path, int]:
    """When each file was written last, in nanoseconds; of a file that is not there 0."""
    return {file: file.stat().st_mtime_ns if file.exists() else 0 for file in files}


def edits_since_planned(study: str, before: Mapping[Path, int]) -> str:
    """Edits made while a study ran, and their meaning for its results; empty: none.

    Args:
        before: `planned_file_times` of what the run reads, when it was planned.
    """
    now = planned_file_times(before)
    edited = sorted(str(file) for file, written in before.items() if now[file] != written)
    others = [name for name in edited if name != PARAMS]
    lines = []
    if PARAMS in edited:
        lines += [
            f"{PARAMS} was edited while study {study} ran; all jobs kept to what it was at the"
            " start.",
            f"Hint: `make plan STUDY={study}` says what the edit would run.",
        ]
    if others:
        lines += [
            f"Edited while study {study} ran: {_listed(others)}. Jobs that began later may have"
            " read the edit.",
            f"Hint: `make stale STUDY={study}` lists the results that differ in code or inputs;"
            " the next run makes them again.",
        ]
    return "\n".join(lines)


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
