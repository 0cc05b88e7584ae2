"""Take the results of a study as made by the code of today: after an edit that changes no number.

Each manifest says so under `accepted`, and Snakemake's records follow, so `make stale` and the next
plan have nothing to say of that code. Changed settings and inputs stay what they are. Tables,
figures and pages have no manifest in which to say so; they are drawn anew.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from geosd.cli import begin
from geosd.cli.stale import current_results
from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders
from geosd.provenance.code import code_of, digest
from geosd.provenance.manifest_file import MANIFEST, read_manifest, write_manifest
from geosd.provenance.staleness import accept, recorded_code
from geosd.provenance.workflow_records import record_code


def main(study: str, params: Path = Path("params.yaml"), figures: Path = Path("figures")) -> None:
    """Take the results of a study as made by today's code.

    Args:
        study: Name of the study.
        params: The configuration.
        figures: Where the outputs of studies lie, each study in its own folder.
    """
    resolved = resolve(load(params), study)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = accepted = 0
    for result, current in current_results(resolved, figures).items():
        file = result if result.name.endswith(MANIFEST) else result / MANIFEST
        if not file.is_file():
            continue
        found += 1
        manifest = read_manifest(file.parent, file.name)
        if accept(manifest, current.code, today):
            accepted += 1
            write_manifest(file, manifest)
        if recorded_code(manifest) == current.code:  # so is a call that was killed made good
            for name in (*manifest["outputs"], file.name):
                record_code((file.parent / name).as_posix(), digest(current.code))
    # What was fetched has no manifest: its hashes were checked, whatever code did so.
    record_code(f"{RunFolders(resolved).data}/raw.json", digest(code_of("fetch")))
    print(f"{accepted} of {found} results of study {study} are taken as made by today's code.")


if __name__ == "__main__":
    begin(main)
