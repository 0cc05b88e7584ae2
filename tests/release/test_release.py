"""The release: its checks find what is wrong, and what it builds has the package and no more."""

from __future__ import annotations

import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cases import python

import geosd

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release():
    """The names of release/release.py."""
    sys.path.insert(0, str(ROOT / "release"))
    try:
        return runpy.run_path(str(ROOT / "release/release.py"))
    finally:
        sys.path.remove(str(ROOT / "release"))


@pytest.mark.slow
def test_a_dry_release_runs_the_cheap_checks_and_writes_nothing():
    before = sorted((ROOT / "dist").glob("*"))
    done = python("release/release.py", "--dry", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"geosd {geosd.__version__}"
    assert [line[:5].strip() for line in lines[1:5]] == ["yes"] * 4
    assert f"geosd-{geosd.__version__}-py3-none-any.whl" in lines[-1]
    assert sorted((ROOT / "dist").glob("*")) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Changelog\n\n## 1.2.2\n\nOld.\n", "the first section is 1.2.2, expected 1.2.3"),
        ("# Changelog\n\n## 1.2.3\n\n## 1.2.2\n\nOld.\n", "the first section is 1.2.3"),
        ("# Changelog\n", "the first section is none"),
    ],
    ids=["of another version", "empty", "none"],
)
def test_a_changelog_without_a_section_of_the_version_is_refused(release, text, said):
    with pytest.raises(release["NotReadyError"], match=said):
        release["changes"]("1.2.3", text)


def test_the_notes_are_the_section_and_their_links_lead_into_the_repository(release):
    of_version = "### A\n\n- B ([d](docs/d.md#e), [f](https://f.org)).\n"
    section = release["changes"]("1.2.3", f"# C\n\n## 1.2.3\n\n{of_version}\n## 1.2.2\n\nOld.\n")
    assert section == of_version
    assert release["notes"]("1.2.3", section, "https://h.org/o/geosd") == (
        "# geosd 1.2.3\n\n### A\n\n"
        "- B ([d](https://h.org/o/geosd/blob/v1.2.3/docs/d.md#e), [f](https://f.org)).\n"
    )


def test_a_wheel_with_a_test_or_without_a_data_file_is_refused(release, tmp_path):
    wheel = tmp_path / "geosd-1-py3-none-any.whl"

    def checked(*names: str) -> None:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in (*names, "geosd-1.dist-info/METADATA"):
                archive.writestr(name, "")
        release["check_wheel"](wheel, ["geosd/__init__.py", "geosd/VERSION"])

    checked("geosd/__init__.py", "geosd/VERSION")
    with pytest.raises(release["NotReadyError"], match=r"lacks \['geosd/VERSION'\]"):
        checked("geosd/__init__.py")
    with pytest.raises(release["NotReadyError"], match=r"has besides \['tests/cases.py'\]"):
        checked("geosd/__init__.py", "geosd/VERSION", "tests/cases.py")


@pytest.mark.slow
def test_wheel_and_sdist_of_the_commit_have_the_package_and_install(release, tmp_path):
    """The wheel has each file of the package that git keeps; the sdist makes that wheel again."""
    if subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("no clone")
    wheel, sdist = release["build"](tmp_path / "dist")
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = ["git", "ls-tree", "-r", "--name-only", "HEAD", "src/geosd"]
    tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {f"src/{name}" for name in names if name.startswith("geosd/")} == {*tracked.split()}
    assert {name.partition("/")[0] for name in names} == {
        "geosd",
        f"geosd-{geosd.__version__}.dist-info",
    }
    for name in (
        "geosd/VERSION",
        "geosd/py.typed",
        "geosd/conformance.json",
        "geosd/reporting/theme.mplstyle",
    ):
        assert name in names

    unpacked = tmp_path / "unpacked"
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    pip = ["-m", "pip", "-q", "--disable-pip-version-check"]
    again = python(
        *pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "again",
        unpacked / f"geosd-{geosd.__version__}",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    (second,) = (tmp_path / "again").glob("*.whl")
    assert set(zipfile.ZipFile(second).namelist()) == names
    site = tmp_path / "site"
    done = python(*pip, "install", "--no-deps", "--no-index", "-t", site, wheel)
    assert done.returncode == 0, done.stderr
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import geosd"
    shown = python("-I", "-c", f"{code}; print(geosd.__version__, geosd.__file__)")
    assert shown.stdout.split() == [geosd.__version__, str(site / "geosd/__init__.py")]
