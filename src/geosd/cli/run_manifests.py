"""The manifests behind a study's runs, found by its index of runs."""

from collections.abc import Iterable
from pathlib import Path

from geosd.config.run_folders import RunFoldersRow, read_run_folders
from geosd.provenance.manifest import read_manifest
from geosd.provenance.proof import prove
from geosd.reporting.environment_page import EnvironmentStep, environment_summary
from geosd.reporting.run_summary import RunSummary


def manifests_of_runs(rows: Iterable[RunFoldersRow]) -> list[EnvironmentStep]:
    """The manifests behind a study's runs: of each base model, training and evaluation once."""
    rows = list(rows)
    steps: dict[str, str] = {}
    for step in ("base", "train", "evaluate"):
        for row in rows:
            folder = getattr(row, step)
            if folder:
                steps[folder] = step  # each once: two variants of the same settings are one run
    return [EnvironmentStep(step, read_manifest(Path(folder))) for folder, step in steps.items()]


def manifests_of_index(runs: Path | None) -> list[EnvironmentStep]:
    """The manifests behind the runs of an index, which is proved; none without an index.

    Raises:
        DamagedManifestError: Names the manifest that is not whole.
    """
    if runs is None:
        return []
    prove([runs])
    return manifests_of_runs(read_run_folders(runs))


def summary_of_run_manifests(runs: Path | None) -> RunSummary | None:
    """When, by which code and on which machine the runs of an index were made."""
    return environment_summary(manifests_of_index(runs))
