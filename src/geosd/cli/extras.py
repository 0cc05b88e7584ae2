"""Print the extras of geosd that a study needs: what `make run` installs before it."""

import importlib.metadata
import os
from collections.abc import Collection
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from geosd.config import Family, Study, load, resolve_study_or_family
from geosd.gpu_leases import cards_of_machine
from geosd.prerequisites.checks import locked_versions_to_check


def main(study: str, locks: Path = Path("envs")) -> None:
    """Print what a study needs that others do not, each with a lock of its own: extras of geosd.

    `gpu`, the lock with vLLM, comes first, and only where there is a GPU: it is several GB.
    """
    resolved = resolve_study_or_family(load("params.yaml"), study)
    studies = resolved.studies.values() if isinstance(resolved, Family) else [resolved]
    if any(map(_samples_with_vllm, studies)) and cards_of_machine(os.environ):
        print("gpu")
    carriers: set[str] = set()
    for one in studies:
        carriers |= _carriers(one)
    declared = importlib.metadata.metadata("geosd").get_all("Provides-Extra", [])
    existing = [extra for extra in declared if (locks / f"{extra}.txt").exists()]
    pins = {extra: locked_versions_to_check(locks / f"{extra}.txt").keys() for extra in existing}
    # The smallest first: what brings a package alone is taken before what brings others with it.
    for extra in sorted(existing, key=lambda extra: len(pins[extra])):
        if carriers & pins[extra]:
            print(extra)
            carriers -= pins[extra]


def _samples_with_vllm(study: Study) -> bool:
    return any(study.section("rollout", model)["engine"] == "vllm" for model in study.models)


def _carriers(study: Study) -> set[str]:
    """The packages that a study needs and other studies do not."""
    carriers: set[str] = set()
    for model in study.models:
        checkpoint = study.section("base", model)["checkpoint"]
        if checkpoint and checkpoint.get("package"):
            carriers.add(canonicalize_name(checkpoint["package"]))
        elif checkpoint and checkpoint.get("file"):
            carriers.add("gguf")
        if any(study.training(model, variant).get("lora") for variant in study.trained):
            carriers.add("peft")
    return carriers


def packages_of_extras(extras: Collection[str], requirements: Collection[str]) -> set[str]:
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
            names |= packages_of_extras(requirement.extras, requirements)
        else:
            names.add(name)
    return names
