"""Standard streams that print every character, with a replacement where the terminal has none."""

import sys
from io import TextIOWrapper

BY_DEFAULT = ("strict", "surrogateescape")
"""Python's error handlers of such characters on stdout; the second where the locale is C."""


def print_with_replacements() -> None:
    """Let stdout and stderr replace what their encoding cannot hold, as latin-1 or ASCII cannot.

    Otherwise a sign in a table would end a program that has done its work. In UTF-8 it is a lone
    surrogate, as a file's name or a model's response may have. Streams that PYTHONIOENCODING tells
    what to do with such characters stay as they are.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors in BY_DEFAULT:
            stream.reconfigure(errors="replace")
