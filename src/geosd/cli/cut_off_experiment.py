"""Leftovers of a killed `make exp`, and the word on them of the programs that come after.

An experiment changes params.yaml for as long as it runs. The files as they were before lie in a
folder meanwhile, and the experiment holds a lock, which ends with its process. The folder without
the lock is a remnant: params.yaml still has the settings of an experiment that is over.
"""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(".dvc/tmp/before-experiment")
"""Where an experiment keeps the files as they were before it; DVC and git ignore it."""
LOCK = Path(".dvc/tmp/experiment.lock")
NAME = "name"
"""File of the folder: what the experiment is called. It is written last, so the rest is whole."""


@contextmanager
def cut_off_experiment_lock() -> Iterator[bool]:
    """Context of the lock of this folder's experiment; yields whether it was free."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def name_cut_off_experiment() -> None:
    """Say on standard error where params.yaml has settings of an experiment that was killed."""
    if not (FOLDER / NAME).is_file():
        return
    try:
        with cut_off_experiment_lock() as free:
            if not free:
                return
    except OSError:  # a folder that cannot be written has no experiment under way
        pass
    name = (FOLDER / NAME).read_text(encoding="utf-8").strip()
    print(
        f"params.yaml has the settings of experiment {name}, which was killed.\nHint: `python"
        " workflow/dvc/experiment.py --put-back` takes them out; so does the next `make exp`.",
        file=sys.stderr,
    )
