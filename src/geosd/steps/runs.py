"""Write the index of a study: which folders belong to each variant and seed.

Writes `runs.csv`, which programs read, and links `runs/<model>/<variant>/<seed>/{train,evaluate}`,
by which people find a run.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders, RunRow, write_index
from geosd.steps import begin


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the index of a study's runs, and links by which people find a run.

    Args:
        study: Name of the study.
        out: Folder of the index.
        params: The configuration.
    """
    rows = RunFolders(resolve(load(params), study)).rows()
    _link(rows, out / "runs")
    write_index(out / "runs.csv", rows)


def _link(rows: list[RunRow], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for row in rows:
        names = folder / row.model / row.variant / str(row.seed)
        names.mkdir(parents=True)
        for step in ("train", "evaluate"):
            if target := getattr(row, step):
                (names / step).symlink_to(os.path.relpath(target, names))


if __name__ == "__main__":
    begin(main)
