"""The garbage collector rests while a program imports, and at no other time."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from geosd import cli

PROGRAMS = [
    path
    for path in sorted(Path(cli.__file__).parent.glob("*.py"))
    if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize(("first", "works"), [("-m", "False"), ("pytest", "True"), ("-c", "True")])
def test_the_collector_rests_for_a_program_only(first, works):
    code = f"import sys, gc; sys.argv = [{first!r}]; import geosd.cli; print(gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == works


def test_it_works_again_when_a_program_begins(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--number", "3"])
    seen = []

    def main(number: int) -> None:
        seen.extend([number, gc.isenabled()])

    gc.disable()
    try:
        cli.begin(main)
    finally:
        gc.enable()
        gc.unfreeze()
    assert seen == [3, True]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_lets_it_work_again(path):
    last = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
    assert "begin(main)" in last or "gc.enable()" in last


@pytest.mark.slow
@pytest.mark.parametrize("program", ["doctor", "stale", "summary"])
def test_a_study_that_there_is_not_is_said_without_a_traceback(root, program):
    done = subprocess.run(
        [sys.executable, "-m", f"geosd.cli.{program}", "--study", "quik"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    first, *_, last = done.stderr.strip().splitlines()
    assert first.startswith("'quik' is no study. Did you mean quick?")
    assert last.startswith("Hint: ")
