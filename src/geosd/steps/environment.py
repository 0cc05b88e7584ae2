"""Write which code, machines and packages made a study's numbers, as Markdown."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

from geosd.config import load, resolve
from geosd.files import write_text
from geosd.reporting.environment import Ran, to_markdown
from geosd.steps import begin


def main(
    study: str, out: Path, results: Path | None = None, params: Path = Path("params.yaml")
) -> None:
    """Write `environment.md`.

    Args:
        study: Name of the study.
        out: Folder of the page.
        results: The study's folder, with the manifests of its runs; none where no run enters what
            the study shows.
        params: The configuration.
    """
    resolved = resolve(load(params), study)

    def runs_of(step: str, variants: list[str]) -> list[str]:
        return [
            f"{step}/{model}/{variant}/{seed}"
            for model in resolved.models
            for variant in variants
            for seed in resolved.seeds
        ]

    # The study's own list, as in analyse: a run that was taken out of the study does not count.
    folders = [f"base/{model}" for model in resolved.models]
    folders += runs_of("train", list(resolved.trained))
    folders += runs_of("evaluate", list(resolved.methods))
    runs = [
        Ran(folder.partition("/")[0], json.loads((results / folder / "manifest.json").read_text()))
        for folder in (folders if results else [])
    ]
    packages = importlib.metadata.distributions()
    installed = {package.metadata["Name"]: package.version for package in packages}
    write_text(out / "environment.md", to_markdown(runs, installed, study))


if __name__ == "__main__":
    begin(main)
