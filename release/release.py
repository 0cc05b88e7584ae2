"""Check the project, build what a release has, and write its notes (`make release`).

    python release/release.py          all checks, then dist/ with wheel, sdist and notes
    python release/release.py --dry    the cheap checks alone; says what else would be done

The files are built of the commit, in a folder of their own: nothing that git does not know gets in.
A tag and an upload are left to people; the last lines say how.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml
from metadata import ROOT, differing, project, repository

from geosd.files import copy_file, write_text

DIST = ROOT / "dist"
PLACEHOLDER = "/OWNER/"
"""Stands in the repository's address for its owner until somebody knows it."""
OF_SDIST = ("LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg")
"""What a source distribution has besides the package and setuptools' own notes on it."""
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)


class NotReadyError(Exception):
    """Something that a release must not have."""


def output_of(*command: str | Path) -> str:
    """What a command prints; NotReadyError with its words where it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise NotReadyError(f"{done.stdout}{done.stderr}".strip())
    return done.stdout


def changes(version: str, text: str) -> str:
    """The section of a version in the changelog, without its heading.

    Raises:
        NotReadyError: The version is not the changelog's first, or its section is empty.
    """
    found = re.search(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None or found[1] != version or not found[2].strip():
        first = "none" if found is None else found[1]
        raise NotReadyError(
            f"CHANGELOG.md: the first section is {first}, expected {version}, with text.\n"
            f"Hint: what a user must change in {version} stands below `## {version}`."
        )
    return found[2].strip() + "\n"


def notes(version: str, section: str, address: str) -> str:
    """The notes of a release: the section of the changelog, with links that lead to its files."""
    place = f"{address}/blob/v{version}/"
    return f"# geosd {version}\n\n" + re.sub(r"\]\((?!\w+://|#)", f"]({place}", section)


def check_changelog() -> None:
    """CHANGELOG.md begins with a section of this version."""
    changes(project()["version"], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def check_metadata() -> None:
    """CITATION.cff, codemeta.json, .zenodo.json and pages say what pyproject.toml says."""
    if names := differing():
        raise NotReadyError(f"{', '.join(names)}: not as pyproject.toml says.\nHint: make metadata")


def check_citation() -> None:
    """CITATION.cff is valid under CFF 1.2.0."""
    schema = ("--builtin-schema", "vendor.citation-file-format")
    output_of(sys.executable, "-m", "check_jsonschema", *schema, "CITATION.cff")


def check_cards() -> None:
    """Cards of models and data are what huggingface_hub reads."""
    output_of(sys.executable, "-m", "pytest", "-q", "-n", "0", "tests/models/test_model_card.py")


def check_address() -> None:
    """The repository's address is known."""
    address = repository(project())
    if PLACEHOLDER in f"{address}/":
        raise NotReadyError(
            f"{address} is a placeholder.\n"
            "Hint: write the address into [project.urls] of pyproject.toml, then make metadata."
        )


def check_date() -> None:
    """CITATION.cff has the day of today."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["date-released"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    if str(cited) != today:
        raise NotReadyError(
            f"CITATION.cff: date-released is {cited}, expected {today}.\n"
            "Hint: edit it there, then make metadata."
        )


def check_lint() -> None:
    """`make lint` finds nothing."""
    output_of("make", "lint")


def check_tests() -> None:
    """`make test-all` passes."""
    output_of("make", "test-all")


def check_clean() -> None:
    """Git has all, and no release of this version."""
    if changed := output_of("git", "status", "--porcelain"):
        raise NotReadyError(f"not committed:\n{changed}Hint: commit or remove it.")
    tag = f"v{project()['version']}"
    if output_of("git", "tag", "--list", tag).strip():
        raise NotReadyError(f"{tag} is a tag already.\nHint: src/geosd/VERSION has the version.")


CHEAP = (check_changelog, check_metadata, check_citation, check_cards)
AT_THE_RELEASE = (check_address, check_date, check_lint, check_tests, check_clean)
"""Checks that take long, or that only the release itself can pass."""


def check_wheel(wheel: Path, files: Iterable[str]) -> None:
    """A wheel has these files of the package, its own notes, and nothing else.

    Raises:
        NotReadyError: It lacks a file or has another one.
    """
    names = set(zipfile.ZipFile(wheel).namelist())
    _compare(wheel, {name for name in names if ".dist-info/" not in name}, set(files))


def check_sdist(sdist: Path, files: Iterable[str]) -> None:
    """A source distribution has the package, `OF_SDIST`, setuptools' notes, and nothing else.

    Raises:
        NotReadyError: It lacks a file or has another one.
    """
    with tarfile.open(sdist) as archive:
        members = [member.name for member in archive.getmembers() if member.isfile()]
    names = {name.partition("/")[2] for name in members}
    kept = {name for name in names if not name.startswith("src/geosd.egg-info/")}
    _compare(sdist, kept, {*(f"src/{name}" for name in files), *OF_SDIST})


def _compare(file: Path, found: set[str], expected: set[str]) -> None:
    if found != expected:
        raise NotReadyError(
            f"{file.name}: lacks {sorted(expected - found) or 'nothing'},"
            f" has besides {sorted(found - expected) or 'nothing'}.\n"
            "Hint: [tool.setuptools.package-data] of pyproject.toml lists what is no module."
        )


def build(out: Path, commit: str = "HEAD") -> tuple[Path, Path]:
    """Build wheel and source distribution of a commit into a folder; both are checked.

    Raises:
        NotReadyError: A build fails, or has other files than the package of the commit.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        archive = Path(folder, "source.tar")
        output_of("git", "archive", "--output", archive, commit)
        with tarfile.open(archive) as packed:
            packed.extractall(source, filter="data")
        out.mkdir(parents=True, exist_ok=True)
        for hook in ("build_sdist", "build_wheel"):
            command = [sys.executable, "-c", BUILD, hook, str(out.resolve())]
            # Dates of the commit, so that the same commit gives the same archives.
            when = output_of("git", "log", "-1", "--format=%ct", commit).strip()
            environment = {**os.environ, "SOURCE_DATE_EPOCH": when}
            done = subprocess.run(
                command, cwd=source, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                raise NotReadyError(f"{hook}: {done.stderr[-2000:]}")
    listed = output_of("git", "ls-tree", "-r", "--name-only", commit, "src/geosd").splitlines()
    files = [name.removeprefix("src/") for name in listed]
    version = project()["version"]
    wheel, sdist = out / f"geosd-{version}-py3-none-any.whl", out / f"geosd-{version}.tar.gz"
    check_wheel(wheel, files)
    check_sdist(sdist, files)
    return wheel, sdist


def checked(check: Callable[[], None]) -> bool:
    """Run a check and say what it found; whether it passed."""
    words = (check.__doc__ or "").splitlines()[0]
    try:
        check()
    except NotReadyError as error:
        print(f"  no   {words}\n       " + str(error).replace("\n", "\n       "), flush=True)
        return False
    print(f"  yes  {words}", flush=True)
    return True


def main() -> None:
    """Check, and unless it is a dry run build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="cheap checks; build nothing")
    dry = parser.parse_args().dry
    version = project()["version"]
    print(f"geosd {version}")
    ready = all([checked(check) for check in CHEAP])
    if dry:
        print("A release checks these, too:")
        for check in AT_THE_RELEASE:
            print(f"  -    {(check.__doc__ or '').splitlines()[0]}")
        names = (f"geosd-{version}-py3-none-any.whl", f"geosd-{version}.tar.gz")
        print(f"and writes into dist/: {', '.join(names)}, RELEASE_NOTES.md")
        sys.exit(0 if ready else 1)
    # One after another: a test of an hour tells nothing where the address is wrong.
    if not (ready and all(checked(check) for check in AT_THE_RELEASE)):
        sys.exit("Nothing is built.")
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = build(Path(folder))
        except NotReadyError as error:
            sys.exit(str(error))
        for file in built:
            copy_file(file, DIST / file.name)
    section = changes(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    write_text(DIST / "RELEASE_NOTES.md", notes(version, section, repository(project())))
    print(f"Written  dist/: {', '.join(file.name for file in built)}, RELEASE_NOTES.md")
    print(f"Tag      git tag -a v{version} -m 'geosd {version}' && git push origin v{version}")
    print(f"Release  gh release create v{version} --notes-file dist/RELEASE_NOTES.md dist/geosd-*")


if __name__ == "__main__":
    main()
