"""A name and a home for a user who has no account here, as the user of a container often has."""

import os
import pwd
from pathlib import Path

HOME = Path(".snakemake/home")
"""Where caches of a user without a home go: in the folder that the user works in."""


def complete_account() -> None:
    """Give the environment a name and a home where the system knows none for this user.

    Snakemake, DVC and torch ask for both, and end with a bare error where there is none.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        os.environ.setdefault("LOGNAME", f"user{os.getuid()}")
        os.environ.setdefault("HOME", str(HOME.resolve()))
