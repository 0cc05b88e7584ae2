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
    checkpoints = [resolved.section("base", model)["checkpoint"] for model in resolved.models]
    carriers = {canonicalize_name(c["package"]) for c in checkpoints if c and c.get("package")}
    trainings = (resolved.training(m, v) for m in resolved.models for v in resolved.trained)
    if any(training.get("lora") for training in trainings):
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
    for each in map(Requirement, requirements):
        if any(not each.marker or each.marker.evaluate({"extra": extra}) for extra in extras):
            name = canonicalize_name(each.name)
            inner = required_packages(each.extras, requirements) if name == "geosd" else {name}
            names |= inner
    return names
