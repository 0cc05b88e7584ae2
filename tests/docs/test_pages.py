"""The documents: links lead somewhere, names of code exist, and the door leads to every page."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import geosd

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
FOLDERS = ("benchmarks", "config", "tests/hostile", "tests/rehearsal")
BESIDE = [ROOT / name / "README.md" for name in FOLDERS] + sorted((ROOT / "analysis").glob("*.md"))
"""Pages beside the programs whose measurements they hold."""
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")), *BESIDE, *DOCS]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name_of(page)}: {target}"
        assert not anchor or anchor in anchors(linked), f"{name_of(page)}: {target}"


def test_the_index_links_every_page_once_or_more():
    index, page = ROOT / "docs/index.md", ROOT / "benchmarks/README.md"

    def linked(page):
        targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        return {(page.parent / target.partition("#")[0]).resolve() for target in targets}

    # `make bench` writes a page for each machine, and its link into the page of benchmarks.
    benchmarks = set((ROOT / "docs/measurements").glob("bench-*.md"))
    studies = set((ROOT / "docs/results").glob("*.md"))
    assert {*DOCS, *BESIDE} - {index} - benchmarks - studies <= linked(index)
    assert benchmarks <= linked(page) and studies <= linked(ROOT / "docs/results.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_exist(page):
    folders = r"(?:src|tests|workflow|examples|analysis|envs|profiles|docs)/"
    for path in re.findall(rf"`({folders}[\w./-]+)`", prose(page)):
        assert (ROOT / path).exists(), f"{name_of(page)}: {path}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=name_of)
def test_modules_that_a_page_names_exist(page):
    for name in re.findall(r"`(geosd(?:\.\w+)+)", prose(page)):
        assert exists(name), f"{name_of(page)}: {name}"


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or the last words are defined in one."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        if spec is not None:
            source = Path(spec.origin).read_text(encoding="utf-8")
            return all(re.search(rf"\b{part}\b", source) for part in parts[size:])
    return False


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == newest[1] == geosd.__version__
    assert "version" in project["dynamic"]
    assert citation["license"] == project["license"].split(" AND ")[0], "the second is the letters'"


GIT_SHOW = re.compile(r"`git show ([0-9a-f]+):([\w./-]+)`")


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=name_of)
def test_a_commit_that_a_page_names_holds_the_file(page):
    """Preregistrations are linked by commit: `git show COMMIT:FILE`."""
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("no clone, or a shallow one, which lacks the commits")
    for commit, path in GIT_SHOW.findall(page.read_text(encoding="utf-8")):
        shown = git("show", f"{commit}:{path}")
        assert shown.returncode == 0 and shown.stdout, f"{name_of(page)}: {commit}:{path}"


def git(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True)
