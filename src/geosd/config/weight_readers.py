"""Which results are made from a run's weights; with `keep: samples` these go once all are there."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

from geosd.config.job_counts import ALIGNMENT
from geosd.config.rule_settings import settings
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.config.study import Study, resolve
from geosd.provenance.checkpoint_files import WEIGHTS
from geosd.provenance.manifest_file import MANIFEST
from geosd.provenance.proof import SNAPSHOTS


def weight_readers(study: Study) -> dict[str, list[str]]:
    """The results that a study makes from the weights of its runs.

    Returns:
        File of weights (a run's, an early stop's, a snapshot) -> one file of each result that a
        step of the study makes from it, as paths from the root of the project.
    """
    folders = RunFolders(study)
    readers: dict[str, dict[str, None]] = {}
    for row in folders.rows():
        if not row.train:
            continue
        read = {f"{row.train}/{WEIGHTS}": f"{row.evaluate}/samples.jsonl"}
        if row.variant in study.early_stops:
            longer, _, steps = row.train.partition("/stopped_")
            files = (f"{longer}/{WEIGHTS}", _snapshot(longer, steps))
            read |= dict.fromkeys(files, f"{row.train}/{MANIFEST}")
        for file, result in read.items():
            readers.setdefault(file, {})[result] = None
    methods = settings(ALIGNMENT, study)["methods"] if ALIGNMENT in study.outputs else ()
    for model, variant, seed in product(study.models, methods, study.seeds):
        run = folders.train(model, variant, seed)
        steps = study.training(model, variant)["snapshots"]
        table = f"{RESULTS}/{study.name}/alignment/{model}/{variant}/{seed}/alignment.csv"
        for file in (f"{run}/{WEIGHTS}", *(_snapshot(run, step) for step in steps)):
            readers.setdefault(file, {})[table] = None
    return {file: list(results) for file, results in readers.items()}


def run_of(file: str) -> tuple[str, ...]:
    """The parts of the folder results/train/<model>/<recipe>/<seed> that a file lies in."""
    return Path(file).parts[:5]


def kept_for(study: Study) -> dict[str, list[str]]:
    """The weights of a study's runs that other studies of the file have yet to read.

    Returns:
        File of weights -> the studies: those that keep weights, and those whose results made from
        it are not there.
    """
    runs = {run_of(file) for file in weight_readers(study)}
    kept: dict[str, list[str]] = {}
    for name in study.params.studies:
        other = resolve(study.params, name)
        if name == study.name or not set(other.models) & set(study.models):
            continue
        for file, results in weight_readers(other).items():
            keeps = other.overlay.keep == "weights"
            if run_of(file) in runs and (keeps or not all(map(os.path.exists, results))):
                kept.setdefault(file, []).append(name)
    return kept


def _snapshot(run: str, step: int | str) -> str:
    return f"{run}/{SNAPSHOTS}/step_{step}.safetensors"
