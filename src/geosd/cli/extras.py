"""Print the extras of geosd that a study needs: what `make run` installs before it."""

import importlib.metadata
from collections.abc import Collection
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from geosd.config import load, resolve
from geosd.prerequisites.checks import locked_versions


def main(study: str, locks: Path = Path("envs")) -> None:
    """Print the extras of geosd that a study needs, each with a lock of its own."""
    resolved = resolve(load("params.yaml"), study)
    carriers: set[str] = set()
    for model in resolved.models:
        checkpoint = resolved.section("base", model)["checkpoint"]
        if checkpoint and checkpoint.get("package"):
            carriers.add(canonicalize_name(checkpoint["package"]))
        if any(resolved.training(model, variant).get("lora") for variant in resolved.trained):
            carriers.add("peft")
    for extra in importlib.metadata.metadata("geosd").get_all("Provides-Extra", []):
        lock = locks / f"{extra}.txt"
        if lock.exists() and carriers & locked_versions(lock).keys():
            print(extra)


def required_packages(extras: Collection[str], requirements: Collection[str]) -> set[str]:
    """The packages that some extras of geosd name, those of extras within extras too.

    `requirements` is what `importlib.metadata.requires("geosd")` returns.
    """
    names = set()
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if not any(marker is None or marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(requirement.name)
        if name == "geosd":
            names |= required_packages(requirement.extras, requirements)
        else:
            names.add(name)
    return names
