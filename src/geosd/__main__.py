"""The command `geosd`: `geosd NAME ...` runs a program of `geosd.cli`; `geosd --help` lists them.

`python -m geosd NAME ...` is the same. Each program is a function, which is imported when it is
named: the list imports none. To start, many import torch and transformers. All that they bring
stays, and yet the garbage collector looks through it again and again, for three tenths of the
start's time. So it rests until the program begins, and never looks at what was there by then.
"""

import ast
import difflib
import gc
import importlib
import os
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

from geosd.cli import forkserver
from geosd.freed_memory import keep_freed_memory
from geosd.preemption import EXIT_CODE, PreemptionError

GROUPS = {
    "run": "run plan doctor select-rates evaluate-folder grade",
    "look": "summary@run preview figures report@pages stale unused@stale",
    "share": "capsule verify@capsule publish restore@publish dvc-commit@publish dvc-metrics@pages"
    " redraw@ship results-page@pages merge-claims@claims transfer",
    "develop": "accept@stale base-model@base conformance extras",
    "the jobs of a study, which `geosd run` starts": "fetch@data data base pool train early-stop"
    " evaluate runs analyse states alignment claims render"
    " environment@pages front-page@pages ship remove-weights",
}
"""The programs of the command, as `geosd --help` lists them.

`verify@capsule` is a function of module `capsule`; one by itself is `main` of the module of its
name.
"""
PROGRAMS = dict(word.partition("@")[::2] for words in GROUPS.values() for word in words.split())
"""Name of each program -> the module that holds it among others; empty: its own."""

ALONE = ("conformance",)
"""Programs that read their own arguments: no package but what they check is needed."""


def main() -> None:
    """Run the program that the command line names.

    Raises:
        SystemExit: With the program's status; 1 after an error with a hint, whose words are shown.
    """
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(overview())
        return
    if name == "evaluate" and "--variant" not in " ".join(words):  # every job of a study has one
        name = "evaluate-folder"
    if name not in PROGRAMS:
        near = difflib.get_close_matches(name, PROGRAMS, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        sys.exit(f"{name!r} is no command of geosd.{meant}\nHint: `geosd --help` lists them.")
    forkserver.run_forked(name)
    gc.disable()
    module, function = place(name)
    program = getattr(importlib.import_module(f"geosd.cli.{module}"), function)
    keep_freed_memory()
    gc.freeze()
    gc.enable()
    status = program(words) if name in ALONE else _called(program, name, words)
    if "RANK" in os.environ:
        from geosd.training.processes import end_process

        end_process(status or 0)
    sys.exit(status)


def _called(program: Any, name: str, words: list[str]) -> Any:
    """What a program returns, called with the arguments of the command line."""
    import tyro  # `ALONE` do without

    try:
        return tyro.cli(program, prog=f"geosd {name}", args=words)
    except PreemptionError as preemption:
        print(preemption, file=sys.stderr)
        return EXIT_CODE
    except Exception as error:
        if isinstance(error, (OSError, ValueError)) and "\nHint: " in str(error):
            print(error, file=sys.stderr)
        elif "RANK" in os.environ:  # not raised: the interpreter's end would wait for all threads
            traceback.print_exc()
        else:
            raise
        return 1


def place(name: str) -> tuple[str, str]:
    """The module and the function behind a NAME of the command `geosd NAME`."""
    own, module = name.replace("-", "_"), PROGRAMS[name]
    return (module, own) if module else (own, "main")


def overview() -> str:
    """What `geosd --help` prints: by groups, every program and its docstring's first line."""
    lines = ["usage: geosd NAME ...     `geosd NAME --help` lists the options of NAME"]
    for group, words in GROUPS.items():
        lines += ["", group]
        for name in (word.partition("@")[0] for word in words.split()):
            said = f"  {name:<18}{_first_line(*place(name))}"
            lines += textwrap.wrap(said, 80, subsequent_indent=" " * 20, break_on_hyphens=False)
    return "\n".join(lines)


def _first_line(module: str, function: str) -> str:
    """The first line of a function's docstring, read without an import."""
    tree = ast.parse(
        Path(__file__).with_name("cli").joinpath(f"{module}.py").read_text(encoding="utf-8")
    )
    (found,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return (ast.get_docstring(found) or "").split("\n")[0]


if __name__ == "__main__":
    main()
