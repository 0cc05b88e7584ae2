"""The command geosd: what it lists, what it imports to do so, and how a program begins and ends."""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from planner import programs

from geosd.cli import command, forkserver
from geosd.cli.signatures import signature_of
from geosd.files import DamagedFileError
from geosd.provenance.code import HELD

NAMES = [*command.PROGRAMS]
SLOW_TO_IMPORT = ("torch", "transformers", "pandas", "matplotlib", "scipy", "accelerate", "numpy")
HEAVY = ("torch", "transformers", "pandas", "pydantic", "tyro", "rich")


def geosd(*words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "geosd", *words]
    return subprocess.run(program, capture_output=True, text=True)


def test_each_name_is_a_function_with_a_line_that_the_list_has():
    assert len(NAMES) == len(set(NAMES))
    listed = re.sub(r"\n {20}", " ", command.command_overview()).splitlines()
    for name in NAMES:
        module, function = command.PROGRAMS[name]
        program = getattr(importlib.import_module(f"geosd.cli.{module}"), function)
        line = program.__doc__.splitlines()[0]
        assert f"  {name:<18}{line}" in listed and line.endswith(".")
    assert max(map(len, command.command_overview().splitlines())) <= 80


def test_what_make_can_do_is_whole_in_80_columns_and_24_lines(root):
    done = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert 12 < len(lines) <= 24 and max(map(len, lines)) <= 80


def test_the_list_and_the_code_of_steps_name_the_same_modules():
    programs = {"evaluate_pi_0": "evaluate-run"}
    for step, module in HELD.items():
        name = programs.get(step, step.replace("_", "-"))
        assert command.PROGRAMS[name][0] == module
    assert forkserver.SERVED <= set(NAMES)


def test_the_list_imports_no_program():
    hidden = f"import sys\nfor name in {HEAVY}: sys.modules[name] = None\n"
    code = f"{hidden}sys.argv = ['geosd', '--help']\nfrom geosd.cli.command import main; main()"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert listed.returncode == 0 and listed.stdout == command.command_overview() + "\n"


ALL_HELPS = """
import contextlib, io, sys
from geosd.cli.command import PROGRAMS, main

for name in PROGRAMS:
    shown = io.StringIO()
    sys.argv = ["geosd", name, "--help"]
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main()
    said = " ".join(shown.getvalue().split())
    heavy = sorted(set({heavy}) & set(sys.modules))
    print(name, f"usage: geosd {name} [-h]" in said, *heavy)
"""


def test_no_help_imports_what_takes_seconds():
    """One process for all: what the first of them imports is seen at each that follows."""
    code = ALL_HELPS.replace("{heavy}", repr(SLOW_TO_IMPORT))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} True" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_takes_what_is_read_of_it_before_it_is_imported(name):
    module, function = command.PROGRAMS[name]
    program = getattr(importlib.import_module(f"geosd.cli.{module}"), function)
    read = signature_of(module, function)
    taken = inspect.signature(program, eval_str=True).parameters
    assert [*inspect.signature(read, eval_str=True).parameters.values()] == [*taken.values()]
    assert inspect.getdoc(read) == inspect.getdoc(program)


def test_an_argument_is_refused_before_anything_is_imported():
    code = f"""
import sys
from geosd.cli.command import main
sys.argv = "geosd train --study quick --no-such 3".split()
try:
    main()
except SystemExit as end:
    print(end.code, {set(SLOW_TO_IMPORT)} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "2 set()" and "--no-such" in done.stderr


def test_another_name_is_refused_with_the_nearest():
    refused = geosd("evalute")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "'evalute' is no command of geosd. Did you mean evaluate?",
        "Hint: `geosd --help` lists them.",
    ]


def test_the_garbage_collector_rests_while_a_program_is_imported_and_works_when_it_begins(
    monkeypatch,
):
    seen = []

    def main(study: str) -> int:
        """A program."""
        seen.append((study, gc.isenabled()))
        return 3

    def imported(name: str) -> SimpleNamespace:
        seen.append((name, gc.isenabled()))
        return SimpleNamespace(main=main, figures=main)

    monkeypatch.setattr(sys, "argv", ["geosd", "figures", "--study", "small"])
    monkeypatch.setattr(command.importlib, "import_module", imported)
    try:
        with pytest.raises(SystemExit) as ended:
            command.main()
    finally:
        gc.unfreeze()
    assert seen == [("geosd.cli.figures", False), ("small", True)]
    assert ended.value.code == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["doctor", "stale", "summary"])
def test_a_study_that_there_is_not_is_said_without_a_traceback(root: Path, name: str):
    words = [programs() / "python", "-m", "geosd", name, "--study", "quik"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    first, *_, last = done.stderr.strip().splitlines()
    assert first.startswith("'quik' is no study. Did you mean quick?")
    assert last.startswith("Hint: ")


@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError, DamagedFileError])
def test_an_error_with_a_hint_ends_in_its_own_words_and_another_with_its_traceback(
    kind, monkeypatch, capsys
):
    def program() -> None:
        raise kind(words)

    words = "x.csv is not whole.\nHint: `make run` makes it anew."
    assert command._called(program, {}) == 1
    assert capsys.readouterr().err == words + "\n"
    words = "nobody thought of this"
    with pytest.raises(kind):
        command._called(program, {})
    monkeypatch.setenv("RANK", "0")  # one process of several must not wait for its threads
    assert command._called(program, {}) == 1
    assert f"{kind.__name__}: {words}" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("target", ["doctor", "stale", "accept", "publish", "stop", "unused"])
def test_without_an_environment_make_says_how_to_have_one(root, tmp_path, target):
    for name in ("Makefile", "dev.mk", "envs"):
        (tmp_path / name).symlink_to(root / name)
    done = subprocess.run(["make", target], cwd=tmp_path, capture_output=True, text=True)
    there, hint, *_ = done.stderr.splitlines()
    assert done.returncode and there == "There is no .venv." and hint.startswith("Hint: make ")
