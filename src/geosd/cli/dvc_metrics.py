"""Accuracies as DVC shows them: a small file a method, so that its table has a row a file.

DVC makes a column of each number in all files together. The accuracies of one study in one file
were two hundred columns.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from geosd.files import write_json

METRICS = Path("docs/metrics")
"""Folder that dvc.yaml names: the accuracies of shipped studies, which git keeps."""
OWN = METRICS / "own"
"""Those of studies that were run here. Git ignores them until a study is published."""


def write_metrics(folder: Path, accuracies: Mapping[str, Mapping[str, object]]) -> None:
    """Write the accuracies of a study, as `accuracies_by_variant` has them, into its folder.

    Files of methods that are no more in the study are removed.
    """
    files = {}
    for model, of_model in accuracies.items():
        for name, numbers in of_model.items():
            files[folder / model / f"{name}.json"] = numbers
    for left_over in set(folder.rglob("*.json")) - files.keys():
        left_over.unlink()
    for file, numbers in files.items():
        write_json(file, numbers)


def write_own(study: str) -> list[Path]:
    """Write the accuracies of a study that was run here; the files, none where it is a family."""
    analysed = Path("results", study, "analyse/metrics.json")
    if not analysed.exists():
        return []
    write_metrics(OWN / study, json.loads(analysed.read_text(encoding="utf-8")))
    return sorted((OWN / study).rglob("*.json"))
