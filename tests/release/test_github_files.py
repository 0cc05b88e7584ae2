"""The files that GitHub and the catalogue of Snakemake workflows read are in their forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from cases import python, schema_errors

from geosd.cli.command import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_form_of_issues_is_valid(form):
    schema = "github-issue-config" if form.stem == "config" else "github-issue-forms"
    assert schema_errors(f"vendor.{schema}", form) == ""


def test_a_form_that_is_wrong_would_be_found(tmp_path):
    form = tmp_path / "bug.yml"
    form.write_text((FORMS[0].parent / "bug.yml").read_text().replace("type: input", "type: poem"))
    assert "poem" in schema_errors("vendor.github-issue-forms", form)


def test_commands_that_templates_name_are_there():
    text = "".join(path.read_text() for path in (ROOT / ".github").rglob("*.[ym][md]*"))
    targets = set(re.findall(r"`make ([a-z-]+)", text))
    makefiles = (ROOT / "Makefile").read_text() + (ROOT / "dev.mk").read_text()
    assert {"doctor", "lint", "test"} <= targets
    assert [name for name in targets if not re.search(rf"^{name}:", makefiles, re.M)] == []
    programs = set(re.findall(r"`geosd ([a-z-]+)", text))
    assert programs and programs <= PROGRAMS.keys()


def test_workflows_of_ci_are_valid():
    assert schema_errors("vendor.github-workflows", ROOT / ".github/workflows/ci.yml") == ""


def test_the_catalogue_of_workflows_finds_what_standardized_usage_wants():
    """The catalogue's page "Adding workflows": a main file, instructions, usage, and two words."""
    for name in ("workflow/Snakefile", "config/README.md", ".snakemake-workflow-catalog.yml"):
        assert (ROOT / name).is_file(), name
    readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme and "workflow" in readme
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage.keys() <= {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["mandatory-flags"].keys() == {"desc", "flags"}
    assert list((ROOT / "workflow/rules").glob("*.smk"))


@pytest.mark.slow
def test_the_main_file_of_the_catalogue_plans_the_same_jobs():
    planned = {}
    for name in ("Snakefile", "workflow/Snakefile"):
        words = ("--profile", "local", "--config", "study=quick", "--dry-run", "--forceall")
        done = python("-m", "snakemake", "-s", name, *words, cwd=ROOT)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        table = re.search(r"^job +count\n-+ +-+\n(.*?)^total", said, re.M | re.S)[1]
        planned[name] = dict(line.split() for line in table.splitlines())
    assert planned["Snakefile"].pop("all") == planned["workflow/Snakefile"].pop("default")
    assert planned["Snakefile"] == planned["workflow/Snakefile"] and planned["Snakefile"]
