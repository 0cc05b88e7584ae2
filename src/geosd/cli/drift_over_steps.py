"""Put the drift of every run at every step into one tidy table, from the step logs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from geosd.cli import begin
from geosd.cli.job import Job
from geosd.config.run_folders import read_index
from geosd.files import DamagedFileError, atomic_write, remake_hint
from geosd.provenance.manifest_file import MANIFEST
from geosd.provenance.proof import prove
from geosd.scores.drift_tables import collect_drift_over_steps
from geosd.scores.score_table import Run


def main(study: str, runs: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Collect the drift of a study's runs over their steps into one table.

    Args:
        study: Name of the study.
        runs: The study's index of runs.
        out: Folder of `drift_over_steps.csv` and of its manifest.
        params: The configuration.
    """
    job = Job("drift_over_steps", params, study)
    settings = job.settings
    rows = {(row.model, row.variant, row.seed): row for row in read_index(runs)}
    prove([runs])
    wanted = list(product(*map(settings.get, ("models", "methods", "seeds"))))
    if missing := next((run for run in wanted if run not in rows), None):
        run = "/".join(map(str, missing))
        raise DamagedFileError(f"{runs}: run {run} is missing.\n{remake_hint(runs)}")
    logs = {
        Run(row.model, row.variant, row.seed, row.draw): Path(row.train) / "steps.csv"
        for row in map(rows.__getitem__, wanted)
    }
    table = collect_drift_over_steps(logs)
    inputs = prove(logs.values())
    written = out / "drift_over_steps.csv"
    with atomic_write(written) as temporary:
        table.to_csv(temporary, index=False)
    job.write_manifest(out, inputs, [written], name=f"drift_over_steps.{MANIFEST}")


if __name__ == "__main__":
    begin(main)
