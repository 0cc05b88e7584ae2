"""Write which code, machines and packages made a study's numbers, as Markdown."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from geosd.cli import begin
from geosd.config.run_folders import read_index
from geosd.files import write_text
from geosd.provenance.manifest_file import read_manifest
from geosd.provenance.proof import prove
from geosd.reporting.environment_page import StepManifest, environment_markdown


def main(study: str, out: Path, runs: Path | None = None) -> None:
    """Write `environment.md`: the code, machines and packages behind a study's numbers.

    Args:
        study: Name of the study.
        out: Folder of the page.
        runs: The study's index of runs, whose folders hold the manifests; none where no run enters
            what the study shows.

    Raises:
        DamagedManifestError: Names the manifest that is not whole.
    """
    rows = read_index(runs) if runs else []
    prove([runs] if runs else [])
    # Each folder once: two variants of the same settings are one run.
    folders = {
        folder: step
        for step in ("base", "train", "evaluate")
        for row in rows
        if (folder := getattr(row, step))
    }
    made = [StepManifest(step, read_manifest(Path(folder))) for folder, step in folders.items()]
    packages = importlib.metadata.distributions()
    installed = {package.metadata["Name"]: package.version for package in packages}
    write_text(out / "environment.md", environment_markdown(made, installed, study))


if __name__ == "__main__":
    begin(main)
