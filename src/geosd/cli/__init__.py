"""The programs that the workflow runs: one per rule, each parses, calls and writes.

To start, a program imports torch and transformers. All that they bring stays, and yet the garbage
collector looks through it again and again: for three tenths of the start's time. So it rests until
`begin`, and never looks at what was there by then.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import TypeVar

from geosd.allocator import keep_freed_memory
from geosd.cli import forkserver

Returned = TypeVar("Returned")

if sys.argv[:1] == ["-m"]:  # `python -m geosd.cli.NAME`: the program's own imports come next
    forkserver.run_forked()
    gc.disable()


def begin(main: Callable[..., Returned]) -> Returned:
    """Begin a step: what its `main` returns, called with the arguments of the command line.

    Raises:
        SystemExit: The configuration is wrong, or does not know a name; says so, and no more.
    """
    import tyro  # gpu_check does without

    keep_freed_memory()
    gc.freeze()
    gc.enable()
    try:
        return tyro.cli(main)
    except ValueError as error:
        if type(error).__name__ != "ConfigError":  # some programs do without geosd.config
            raise
        sys.exit(str(error))
