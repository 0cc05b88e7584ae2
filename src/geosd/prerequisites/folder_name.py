"""Characters in a folder's path that programs of the workflow cannot bear."""

import re
from pathlib import Path

from geosd.prerequisites.checks import PrerequisiteCheck

BRACES = re.compile(r"[{}]")
"""DVC's bars of progress take a path for a format string, and it ends with an AttributeError."""
NO_WILDCARD = re.compile(r"\{(?![A-Za-z_]\w*\})[^{}]+\}")
"""Snakemake takes braces for a wildcard, and a pair of them without a name for an error."""
OF_PATH = ":"
"""It ends a folder in PATH, so make finds no program of .venv."""
CURE = "move or rename the folder: letters, digits, '-', '_', '.' and blanks are right"


def check_folder(folder: Path) -> PrerequisiteCheck:
    """Whether DVC, Snakemake and make can work in a folder, by its path; DVC is optional."""
    path, name = str(folder), ascii(str(folder))
    faults = []
    if OF_PATH in path:
        faults.append("make, which takes the colon for the end of a folder in PATH")
    if NO_WILDCARD.search(path):
        faults.append("Snakemake, which takes the braces for a wildcard")
    if faults:
        return PrerequisiteCheck(
            "folder", "missing", f"{name} is no path for {' and '.join(faults)}", CURE
        )
    if BRACES.search(path):
        words = "DVC, which takes the braces for its own format; `make run` needs no DVC"
        return PrerequisiteCheck("folder", "note", f"{name} is no path for {words}", CURE)
    return PrerequisiteCheck("folder", "ok", "its path has no character that a program cannot bear")


def refuse_folder(folder: Path) -> None:
    """Refuse to start a program of DVC in a folder that it cannot bear.

    Raises:
        SystemExit: The folder's path has such a character; names it.
    """
    check = check_folder(folder)
    if check.state != "ok":
        raise SystemExit(f"{check.found}.\nHint: {check.cure}.")
