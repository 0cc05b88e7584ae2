"""List the results of a study whose inputs, settings or code have changed since they were made.

It reads manifests and nothing of the workflow's, so it also judges results that were copied here.
Ends with status 1 where one is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from geosd.config import Study, load, resolve
from geosd.config import settings as settings_of
from geosd.config.run_folders import RESULTS, RunFolders, read_index
from geosd.config.weight_readers import run_of, weight_readers
from geosd.files import sha256
from geosd.provenance.code import SOURCES, code_of
from geosd.provenance.staleness import Current, stale
from geosd.steps import begin

Job = tuple[Any, ...]
"""Rule, model, variant and draw, as far as there are any: what `geosd.config.settings` takes."""
STEPS = {"evaluate_pi_0": "evaluate"}
"""Rules that run a step of another name."""


def main(study: str, params: Path = Path("params.yaml")) -> None:
    """List the stale results of a study, and why each is stale.

    Args:
        study: Name of the study.
        params: The configuration.
    """
    resolved = resolve(load(params), study)
    former = _former(resolved)
    results = {
        Path(folder): _current(resolved, job, former.get(folder)) for folder, job in _jobs(resolved)
    }
    weights = weight_readers(resolved) if resolved.overlay.keep == "samples" else {}
    runs = {run_of(file) for file in weights}
    reasons = stale(results, lambda name: name.endswith(".safetensors") and run_of(name) in runs)
    if not reasons:
        raise SystemExit(
            f"Study {study} has no results with a manifest.\nHint: `make run STUDY={study}` makes"
            f" the study, `make restore STUDY={study}` fetches it."
        )
    outdated = {folder: why for folder, why in reasons.items() if why}
    for folder, why in outdated.items():
        print(folder, *why, sep="\n    ")
    print(f"{len(outdated)} of {len(reasons)} results of study {study} are out of date.")
    sys.exit(bool(outdated))


def _jobs(study: Study) -> Iterator[tuple[str, Job]]:
    """The folders of a study that have a manifest, shared ones too."""
    folders = RunFolders(study)
    yield folders.data, ("data",)
    for model, draw in product(study.models, study.base_draws):
        yield folders.base(model, draw), ("base", model, None, draw)
        yield folders.pool(model, draw), ("pool", model)
    for row in folders.rows():
        if row.train:
            rule = "early_stop" if row.variant in study.early_stops else "train"
            yield row.train, (rule, row.model, row.variant)
        rule = "evaluate" if row.train else "evaluate_pi_0"
        yield row.evaluate, (rule, row.model, row.variant)
    yield f"{RESULTS}/{study.name}/analyse", ("analyse",)


def _former(study: Study) -> dict[str, Path]:
    """Folder of a result -> another one, which the index still gives: its settings were others."""
    index = Path(RESULTS, study.name, "runs.csv")
    if not index.exists():
        return {}
    recorded = {(row.model, row.variant, row.seed): row for row in read_index(index)}
    moved = {}
    for row in RunFolders(study).rows():
        before = recorded.get((row.model, row.variant, row.seed), row)
        for step in ("base", "train", "evaluate"):
            if getattr(before, step) != getattr(row, step):
                moved[getattr(row, step)] = Path(getattr(before, step))
    return moved


def _current(study: Study, job: Job, former: Path | None) -> Current:
    rule, *of_job = job
    settings = settings_of(rule, study, *of_job)
    files = code_of(STEPS.get(rule, rule), settings)
    return Current(settings, {name: sha256(SOURCES / name) for name in files}, former)


if __name__ == "__main__":
    begin(main)
