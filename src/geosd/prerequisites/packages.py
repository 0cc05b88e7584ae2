"""Whether the installed Python packages are those of a lock (envs/*.txt)."""

import importlib.metadata
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from geosd.prerequisites.machine import Check

SHOWN = 5
"""Packages that a line names; it counts the others."""


def locked_versions(lock: Path) -> dict[str, str]:
    r"""The pins of a lock: canonical name -> version, without hashes.

    A pin is a line `name==version`, in the form that pip and uv write: hashes follow on lines of
    their own, after a backslash.

    Raises:
        ValueError: A line pins no version; the message names it.
    """
    pins = {}
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition(" #")[0].rstrip("\\ ")
        if not text or text.startswith(("#", " ")):
            continue
        requirement = Requirement(text)
        [*specifiers] = requirement.specifier
        if [one.operator for one in specifiers] != ["=="]:
            raise ValueError(
                f"{lock}:{number}: {text!r} pins no version; allowed is name==version.\n"
                "Hint: `make pins` and `make pins-gpu` write the locks."
            )
        pins[canonicalize_name(requirement.name)] = specifiers[0].version
    return pins


def installed_versions() -> dict[str, str]:
    """The packages of this interpreter: canonical name -> version."""
    return {
        canonicalize_name(package.metadata["Name"]): package.version
        for package in importlib.metadata.distributions()
    }


def required_packages(extras: Iterable[str], requirements: Iterable[str]) -> set[str]:
    """The packages that some extras of geosd name, those of extras within extras too.

    `requirements` is what `importlib.metadata.requires("geosd")` returns.
    """
    declared = [Requirement(text) for text in requirements]
    left, seen, names = [*extras], set(), set()
    while left:
        extra = left.pop()
        seen.add(extra)
        for one in declared:
            if one.marker is not None and not one.marker.evaluate({"extra": extra}):
                continue
            if canonicalize_name(one.name) == "geosd":
                left += [inner for inner in one.extras if inner not in seen]
            else:
                names.add(canonicalize_name(one.name))
    return names


def check_lock(
    lock: str,
    pins: Mapping[str, str],
    installed: Mapping[str, str],
    needed: Collection[str],
    cure: str,
) -> Check:
    """Compare the installed packages with a lock.

    A local label (`2.13.0+cpu`) is the same version: it says how the package was built. The needed
    packages must be there; any other pin counts only where it is installed.
    """
    subject = f"packages of {lock}"
    absent = sorted(name for name in needed if name not in installed)
    other = sorted(
        f"{name} {installed[name]} (locked: {version})"
        for name, version in pins.items()
        if name in installed and Version(installed[name]).public != Version(version).public
    )
    if absent or other:
        faults = [f"not installed: {_some(absent)}"] if absent else []
        faults += [f"another version: {_some(other)}"] if other else []
        return Check(subject, "missing", "; ".join(faults), cure)
    return Check(subject, "ok", f"{len(pins.keys() & installed.keys())} at the locked versions")


def check_package(
    names: Collection[str], installed: Mapping[str, str], purpose: str, cure: str
) -> Check:
    """Look for a package that a study needs for a purpose; one of the names is enough."""
    usual = next(iter(names))
    found = [f"{name} {installed[name]}" for name in names if name in installed]
    if not found:
        return Check(usual, "missing", f"not installed; {purpose} needs it", cure)
    return Check(usual, "ok", f"{found[0]}, for {purpose}")


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
