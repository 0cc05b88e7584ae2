"""Programs print on every terminal, and run for a user without a name or a home."""

import os

import pytest
from cases import python

from geosd.account import complete_account

PRINTS = """
from geosd.terminal import print_with_replacements
print_with_replacements()
print("accuracy of \\u03c0\\u2080: \\u22121 \\udcff")
"""


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "utf-8"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_what_a_terminal_cannot_show_is_replaced(environment):
    done = python("-c", PRINTS, environment=environment, text=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"accuracy of ") and done.stdout.endswith(b" ?\n")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_program_prints_there(root, encoding):
    words = ["-m", "geosd", "summary", "--study", "miniature"]
    done = python(*words, environment={"PYTHONIOENCODING": encoding}, cwd=root, text=False)
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout


def test_a_user_without_an_account_gets_a_name_and_a_home(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("geosd.account.os.getuid", lambda: 4242)

    def unknown(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("geosd.account.pwd.getpwuid", unknown)
    for name in ("LOGNAME", "HOME"):
        monkeypatch.setenv(name, "x")  # so that it is put back
        monkeypatch.delenv(name)
    complete_account()
    assert os.environ["LOGNAME"] == "user4242"
    assert os.environ["HOME"] == str(tmp_path / ".snakemake/home")
    monkeypatch.setenv("HOME", "/own")
    complete_account()
    assert os.environ["HOME"] == "/own"


def test_a_user_with_an_account_keeps_the_environment(monkeypatch):
    before = dict(os.environ)
    complete_account()
    assert dict(os.environ) == before
