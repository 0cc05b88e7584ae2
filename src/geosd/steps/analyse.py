"""Score every run of a study from its samples, and read off how far training moved it.

Writes the tidy `scores.csv`, `drift.csv` and `consensus.csv`, of these the few numbers of
`metrics.json`, and, last, a manifest. No model is needed.
"""

from __future__ import annotations

import time
from pathlib import Path

from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.files import atomic_write, write_json
from geosd.provenance.manifest import manifest
from geosd.scores import consensus_table as agreement
from geosd.scores import drift_table as drift
from geosd.scores import score_table as scores
from geosd.scores.score_table import Run, read_samples
from geosd.scores.summary import summary
from geosd.steps import begin


def main(study: str, results: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Score every run of a study.

    Args:
        study: Name of the study.
        results: The study's folder, with `evaluate/` and `train/`.
        out: Folder of the tables.
        params: The configuration.
    """
    began = time.monotonic()
    resolved = resolve(load(params), study)
    settings = settings_of("analyse", resolved)
    # The study's own list, not what lies in the folder: a run that was taken out of the study
    # may have left its samples behind.
    runs = [
        Run(model, variant, seed)
        for model in settings["models"]
        for variant in settings["methods"]
        for seed in settings["seeds"]
    ]
    logs = {
        run: _of(results / "train", run) / "steps.csv"
        for run in runs
        if run.variant in resolved.trained
    }
    files = {run: _of(results / "evaluate", run) / "samples.jsonl" for run in runs}
    scored, agreed = {}, {}
    for run, file in files.items():  # one at a time: those of all would not fit into memory
        samples = read_samples(run, file)
        k = settings["samples"]
        scored[run] = scores.score([s for s in samples if s.sample < k], settings["pass_k"])
        agreed[run] = agreement.consensus_rows(samples, first=k)
    tables = {
        "scores": scores.collect(scored),
        "drift": drift.collect(logs),
        "consensus": agreement.collect(agreed),
    }
    for name, table in tables.items():
        with atomic_write(out / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)
    write_json(out / "metrics.json", summary(tables["scores"]))
    inputs = [*files.values(), *logs.values()]
    write_json(out / "manifest.json", manifest(inputs, settings, time.monotonic() - began))


def _of(folder: Path, run: Run) -> Path:
    return folder / run.model / run.variant / str(run.seed)


if __name__ == "__main__":
    begin(main)
