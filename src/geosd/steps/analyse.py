"""Score every run of a study from its samples, and read off how far training moved it.

Writes the tidy `scores.csv`, `drift.csv` and `consensus.csv`, of these the few numbers of
`metrics.json`, and, last, a manifest. No model is needed.
"""

from __future__ import annotations

from pathlib import Path

from geosd.config.run_folders import read_index
from geosd.files import atomic_write, write_json
from geosd.scores import consensus_table, drift_tables, score_table
from geosd.scores.dvc_metrics import dvc_metrics
from geosd.scores.score_table import Run, read_samples
from geosd.steps import begin
from geosd.steps.job import Job


def main(study: str, runs: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Analyse a study: score every run from its samples, and read off its drift.

    Args:
        study: Name of the study.
        runs: The study's index of runs.
        out: Folder of the tables.
        params: The configuration.
    """
    job = Job("analyse", params, study)
    settings = job.settings
    rows = {Run(row.model, row.variant, row.seed, row.draw): row for row in read_index(runs)}
    logs = {run: Path(row.train) / "steps.csv" for run, row in rows.items() if row.train}
    files = {run: Path(row.evaluate) / "samples.jsonl" for run, row in rows.items()}
    scored, consensus = {}, {}
    for run, file in files.items():  # one at a time: those of all would not fit into memory
        samples = read_samples(run, file)
        k = settings["samples"]
        scored[run] = score_table.score_run(
            [s for s in samples if s.sample < k], settings["pass_k"]
        )
        consensus[run] = consensus_table.consensus_rows(samples, first=k)
    tables = {
        "scores": score_table.collect_scores(scored),
        "drift": drift_tables.collect_drift(logs),
        "consensus": consensus_table.collect_consensus(consensus),
    }
    for name, table in tables.items():
        with atomic_write(out / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)
    write_json(out / "metrics.json", dvc_metrics(tables["scores"]))
    job.write_manifest(out, [*files.values(), *logs.values()])


if __name__ == "__main__":
    begin(main)
