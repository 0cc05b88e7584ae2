"""One style, held by the formatters; test_plan.py has what Snakemake's own finds."""

from __future__ import annotations

import os
import re

import pytest
from cases import python

PYTHON = ("src", "tests", "examples", "analysis", "workflow", "release")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache", *PYTHON],
        ["ruff", "format", "--no-cache", "--check", *PYTHON],
        ["snakefmt", "--check", "Snakefile", "workflow"],
        ["mypy", "--cache-dir", os.devnull],
    ],
    ids=["ruff check", "ruff format", "snakefmt", "mypy"],
)
def test_the_formatter_has_nothing_to_say(root, command):
    done = python("-m", *command, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr + "\nHint: make lint"


def test_the_snakefile_is_a_table_of_contents(root):
    assert len((root / "Snakefile").read_text().splitlines()) <= 45


def test_no_module_is_longer_than_four_hundred_lines(root):
    files = [*(root / "src").rglob("*.py"), *(root / "workflow").rglob("*.smk")]
    long = {str(p): n for p in files if (n := len(p.read_text().splitlines())) > 400}
    assert not long


def test_no_pattern_repeats_a_group_possessively(root):
    r"""Python before 3.11.5 matches `(?:a|b)*+` wrongly (gh-106052); `(?>(?:a|b)*)` is right."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+[^\"' ]*[\"']")
    for path in (root / "src").rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not possessive.search(line), f"{path}:{number}: {line}"
