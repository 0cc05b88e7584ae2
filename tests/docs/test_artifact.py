"""ARTIFACT.md is what the shipped ledger says; each of its commands is one that make knows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from geosd.cli import pages

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "figures/miniature_all/claims_all.csv"
PAGE = (ROOT / "ARTIFACT.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {found.strip() for found in re.findall(r"^make [^#\n]+|(?<=`)make [^`]+", PAGE, re.M)}
)
HEADINGS = (
    "Abstract",
    "Checklist",
    "How to get it",
    "Installation",
    "Experiment workflow",
    "Evaluation and expected result",
    "Customisation",
    "Reproducibility checklist",
)


def test_the_page_is_that_of_what_is_shipped(tmp_path):
    pages.artifact_page_program(ROOT / "figures", LEDGER, tmp_path / "ARTIFACT.md")
    assert (tmp_path / "ARTIFACT.md").read_text(encoding="utf-8") == PAGE, "make results"


def test_it_has_the_headings_of_an_appendix():
    assert tuple(re.findall(r"^## (.+)$", PAGE, re.M)) == HEADINGS


def test_every_claim_of_the_ledger_has_a_line_with_its_word():
    ledger = pd.read_csv(LEDGER, keep_default_na=False)
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    for claim, rows in ledger.groupby("claim", sort=False):
        statement = rows["statement"].iloc[0]
        (line,) = (line for line in lines if line.split("|")[1].strip() == statement)
        pooled = rows[rows["model"] == "all models"]
        words = set((rows if pooled.empty else pooled)["word"])
        expected = words.pop() if len(words) == 1 else "by model"
        assert line.split("|")[5].strip() == expected, claim
        study = rows["study"].iloc[0]
        if (ROOT / "figures" / study / "shipped.json").is_file():
            assert f"`make figures STUDY={study}`" in line


def test_every_link_leads_to_a_file():
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE)
    assert links and all((ROOT / link).exists() for link in links)


@pytest.mark.slow
def test_make_knows_every_command():
    assert len(COMMANDS) > 10
    for command in COMMANDS:
        words = [*command.split(), "--dry-run", "--always-make"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
