"""Write the index of a study: which folders belong to each variant and seed.

Writes `runs.csv`, which programs read, its manifest, and links by which people find a run:
`runs/<model>/<variant>/<seed>/{train,evaluate}`.
"""

import os
import shutil
from pathlib import Path

from geosd.cli.job import StepJob
from geosd.config.run_folders import RunFolders, write_run_folders
from geosd.provenance.manifest import MANIFEST


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the index of a study's runs, and links by which people find a run."""
    job = StepJob("runs", params, study)
    rows = RunFolders(job.study).rows()
    links = out / "runs"
    index = out / "runs.csv"
    shutil.rmtree(links, ignore_errors=True)
    for row in rows:
        names = links / row.model / row.variant / str(row.seed)
        names.mkdir(parents=True)
        for step in ("train", "evaluate"):
            target = getattr(row, step)
            if target:
                (names / step).symlink_to(os.path.relpath(target, names))
    write_run_folders(index, rows)
    job.write_manifest(out, [], [index], name=f"runs.{MANIFEST}")
