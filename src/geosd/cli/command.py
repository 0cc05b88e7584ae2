"""The command `geosd`: `geosd NAME ...` runs one program of this room; `geosd --help` lists them.

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
from pathlib import Path
from typing import Any

from geosd.cli import forkserver
from geosd.freed_memory import keep_freed_memory
from geosd.preemption import EXIT_CODE, PreemptionError

GROUPS = {
    "run": "run plan doctor select-rates evaluate-folder grade",
    "look": "summary preview figures report stale unused",
    "share": "capsule verify publish restore dvc-commit dvc-metrics redraw results-page"
    " merge-claims transfer",
    "develop": "accept base-model conformance extras",
    "the jobs of a study, which `geosd run` starts": "fetch data base pool train early-stop"
    " evaluate runs analyse states alignment claims render"
    " environment front-page ship remove-weights",
}
"""The programs of the command, as `geosd --help` lists them."""
ELSEWHERE = {
    "accept": "stale",
    "base-model": "base",
    "dvc-commit": "publish",
    "dvc-metrics": "pages",
    "environment": "pages",
    "fetch": "data",
    "figures": "run",
    "front-page": "pages",
    "merge-claims": "claims",
    "redraw": "ship",
    "report": "run",
    "restore": "publish",
    "results-page": "pages",
    "summary": "run",
    "unused": "stale",
    "verify": "capsule",
}
"""Programs that are no `main` of a module of their name, but functions in another module."""

ALONE = ("conformance",)
"""Programs that read their own arguments: no package but what they check is needed."""


def main() -> None:
    """Run the program that the command line names.

    Raises:
        SystemExit: With the program's status, or with the words of an error that has a hint.
    """
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(overview())
        return
    if name == "evaluate" and "--variant" not in " ".join(words):  # every job of a study has one
        name = "evaluate-folder"
    known = " ".join(GROUPS.values()).split()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
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
    except (OSError, ValueError) as error:
        if "\nHint: " not in str(error):
            raise
        sys.exit(str(error))


def place(name: str) -> tuple[str, str]:
    """The module and the function of a program."""
    own = name.replace("-", "_")
    return (ELSEWHERE[name], own) if name in ELSEWHERE else (own, "main")


def overview() -> str:
    """Every program with the first line of its docstring, by groups, in 80 columns."""
    lines = ["usage: geosd NAME ...     `geosd NAME --help` lists the options of NAME"]
    for group, names in GROUPS.items():
        lines += ["", group]
        for name in names.split():
            said = f"  {name:<18}{_first_line(*place(name))}"
            lines += textwrap.wrap(said, 80, subsequent_indent=" " * 20, break_on_hyphens=False)
    return "\n".join(lines)


def _first_line(module: str, function: str) -> str:
    """The first line of a function's docstring, read without an import."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    (found,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return (ast.get_docstring(found) or "").split("\n")[0]
