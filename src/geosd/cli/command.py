"""The command `geosd`: `geosd NAME ...` runs a program of `geosd.cli`; `geosd --help` lists them.

`python -m geosd NAME ...` is the same. Each program is a function, which is imported when it is
named and its arguments have been read: neither the list nor a help text imports any. To start, many
import torch and transformers. All that they bring stays, and yet the garbage collector looks
through it again and again, for three tenths of the start's time. So it rests until the program
begins, and never looks at what was there by then.
"""

import difflib
import errno
import gc
import importlib
import os
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geosd.account import complete_account
from geosd.cli import forkserver
from geosd.cli.freed_memory import keep_freed_memory
from geosd.cli.signatures import signature_first_line, signature_of
from geosd.disk_room import no_room
from geosd.preemption import EXIT_CODE, PreemptionError
from geosd.terminal import print_with_replacements

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "run": {
        "run": ("run", "main"),
        "plan": ("plan", "main"),
        "doctor": ("doctor", "main"),
        "select-rates": ("select_rates", "main"),
        "evaluate": ("evaluate_folder", "main"),
        "grade": ("grade", "main"),
    },
    "look": {
        "summary": ("run", "print_run_summary"),
        "preview": ("preview", "main"),
        "figures": ("figures", "main"),
        "report": ("pages", "report_page_program"),
        "samples": ("samples_page", "samples"),
        "stale": ("stale", "main"),
        "unused": ("stale", "list_stale_shared"),
    },
    "share": {
        "capsule": ("capsule", "main"),
        "export": ("export", "main"),
        "paper": ("paper", "main"),
        "verify": ("verify", "main"),
        "hub-model": ("hub_folders", "model"),
        "hub-data": ("hub_folders", "data"),
        "publish": ("publish", "main"),
        "restore": ("publish", "restore_published"),
        "dvc-commit": ("publish", "dvc_commit"),
        "dvc-metrics": ("pages", "dvc_metrics_page_program"),
        "artifact": ("pages", "artifact_page_program"),
        "redraw": ("ship", "redraw_shipped"),
        "results-page": ("pages", "results_pages_program"),
    },
    "develop": {
        "accept": ("stale", "accept_stale_results"),
        "base-model": ("base", "base_model_program"),
        "conformance": ("conformance", "main"),
        "extras": ("extras", "main"),
    },
    "the jobs of a study, which `geosd run` starts": {
        "fetch": ("data", "fetch_data_program"),
        "data": ("data", "main"),
        "base": ("base", "main"),
        "pool": ("pool", "main"),
        "train": ("train", "main"),
        "early-stop": ("early_stop", "main"),
        "evaluate-run": ("evaluate", "main"),
        "runs": ("runs", "main"),
        "analyse": ("analyse", "main"),
        "states": ("states", "main"),
        "alignment": ("alignment", "main"),
        "score-tokens": ("token_probabilities", "main"),
        "samples-page": ("samples_page", "main"),
        "claims": ("claims", "main"),
        "render": ("render", "main"),
        "render-family": ("render_family", "main"),
        "environment": ("pages", "environment_page_program"),
        "front-page": ("pages", "front_page_program"),
        "family-page": ("family_page", "main"),
        "ship": ("ship", "main"),
        "ship-family": ("ship_family", "main"),
        "remove-weights": ("remove_weights", "main"),
    },
}
"""The programs of the command by groups, as `geosd --help` lists them.

Name -> its module in `geosd.cli`, and the function there.
"""
PROGRAMS = {name: place for programs in GROUPS.values() for name, place in programs.items()}
"""The programs of all groups."""

ALONE = ("conformance",)
"""Programs that read their own arguments: no package but what they check is needed."""


def main() -> None:
    """Run the program that the command line names.

    Its arguments are read before its module is imported.

    Raises:
        SystemExit: With the program's status; 1 after an error with a hint, whose words are shown,
            and 2 where an argument is refused.
    """
    print_with_replacements()
    complete_account()
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(command_overview())
        return
    name = command_program(name, words)
    if name not in PROGRAMS:
        near = difflib.get_close_matches(name, PROGRAMS, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        sys.exit(f"{name!r} is no command of geosd.{meant}\nHint: `geosd --help` lists them.")
    forkserver.run_forked(name, __name__)
    gc.disable()
    arguments = _arguments(name, words)
    module, function = PROGRAMS[name]
    program = getattr(importlib.import_module(f"geosd.cli.{module}"), function)
    keep_freed_memory()
    gc.freeze()
    gc.enable()
    status = _called(program, arguments)
    if "RANK" in os.environ:
        from geosd.training.processes import end_training_process

        end_training_process(status or 0)
    sys.exit(status)


def _arguments(name: str, words: list[str]) -> dict[str, Any]:
    """The arguments of a program by their names, read from the command line."""
    if name in ALONE:
        return {"words": words}
    import tyro  # `ALONE` do without

    return tyro.cli(signature_of(*PROGRAMS[name]), prog=f"geosd {name}", args=words)


def _called(program: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a program returns; after an error whose cure is known, its words are shown, and 1."""
    try:
        return program(**arguments)
    except PreemptionError as preemption:
        print(preemption, file=sys.stderr)
        return EXIT_CODE
    except Exception as error:
        words = _in_words(error)
        if words:
            print(words, file=sys.stderr)
        elif "RANK" in os.environ:  # not raised: the interpreter's end would wait for all threads
            traceback.print_exc()
        else:
            raise
        return 1


def command_program(name: str, words: list[str]) -> str:
    """The program that a command line names; `evaluate-run` where the rule `evaluate` wrote it.

    The rule calls its program `evaluate`: with another text Snakemake would plan the evaluations of
    finished studies again. Its argument `--study` is none of the program for people.
    """
    named = {word.partition("=")[0] for word in words}
    of_rule = name == "evaluate" and "--study" in named
    return "evaluate-run" if of_rule else name


def _in_words(error: Exception) -> str:
    """An error whose cause and cure are known, in its words; of others nothing."""
    if isinstance(error, (OSError, ValueError)) and "\nHint: " in str(error):
        return str(error)
    missing = no_room(error, [Path(), Path(tempfile.gettempdir())])
    if missing is not None:
        return str(missing)
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"{error}\nHint: this is another user's, or protected against writing. Its owner lets"
            " a group read it by `chmod -R g+rX FOLDER`; to write, work in a clone of your own."
        )
    return ""


def command_overview() -> str:
    """What `geosd --help` prints: by groups, every program and its docstring's first line."""
    lines = ["usage: geosd NAME ...     `geosd NAME --help` lists the options of NAME"]
    for group, programs in GROUPS.items():
        lines += ["", group]
        for name, (module, function) in programs.items():
            said = f"  {name:<18}{signature_first_line(module, function)}"
            lines += textwrap.wrap(said, 80, subsequent_indent=" " * 20, break_on_hyphens=False)
    return "\n".join(lines)
