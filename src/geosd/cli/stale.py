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

from geosd.cli import begin
from geosd.config import Study, load, resolve
from geosd.config import settings as settings_of
from geosd.config.job_counts import ALIGNMENT
from geosd.config.run_folders import RESULTS, RunFolders, read_index, run_of, weight_readers
from geosd.files import DamagedFileError
from geosd.provenance.code import code_of
from geosd.provenance.manifest_file import MANIFEST
from geosd.provenance.staleness import Current, stale

SettingsKey = tuple[Any, ...]
"""Rule, model, variant and draw, as far as there are any: what `geosd.config.settings` takes."""
STEPS = {"evaluate_pi_0": "evaluate"}
"""Rules that run a step of another name."""


def main(study: str, params: Path = Path("params.yaml"), figures: Path = Path("figures")) -> None:
    """List the stale results of a study, and why each is stale.

    Args:
        study: Name of the study.
        params: The configuration.
        figures: Where the outputs of studies lie, each study in its own folder.
    """
    resolved = resolve(load(params), study)
    results = current_results(resolved, figures)
    weights = weight_readers(resolved) if resolved.overlay.keep == "samples" else {}
    runs = {run_of(file) for file in weights}
    reasons = stale(results, lambda name: name.endswith(".safetensors") and run_of(name) in runs)
    if not reasons:
        raise SystemExit(
            f"Study {study} has no results with a manifest.\nHint: `make run STUDY={study}` makes"
            f" the study, `make restore STUDY={study}` fetches it."
        )
    outdated = {result: why for result, why in reasons.items() if why}
    for result, why in outdated.items():
        print(result, *why, sep="\n    ")
    print(f"{len(outdated)} of {len(reasons)} results of study {study} are out of date.")
    sys.exit(bool(outdated))


def current_results(study: Study, figures: Path) -> dict[Path, Current]:
    """The results of a study, shared ones too, and what would make each of them now."""
    former = _former(study)
    return {
        Path(result): _current(study, key, former.get(result))
        for result, key in _results(study, figures)
    }


def _results(study: Study, figures: Path) -> Iterator[tuple[str, SettingsKey]]:
    """Each result, a folder or a manifest that shares one, and what its settings depend on."""
    folders, own = RunFolders(study), f"{RESULTS}/{study.name}"
    yield folders.data, ("data",)
    for model, draw in product(study.models, study.base_draws):
        yield folders.base(model, draw), ("base", model, None, draw)
        yield folders.pool(model, draw), ("pool", model)
        yield folders.states(model, draw), ("states", model)
    for row in folders.rows():
        if row.train:
            rule = "early_stop" if row.variant in study.early_stops else "train"
            yield row.train, (rule, row.model, row.variant)
        rule = "evaluate" if row.train else "evaluate_pi_0"
        yield row.evaluate, (rule, row.model, row.variant)
    if ALIGNMENT in study.outputs:
        followed = settings_of(ALIGNMENT, study)["methods"]
        for model, variant, seed in product(study.models, followed, study.seeds):
            folder = f"{own}/alignment/{model}/{variant}/{seed}"
            yield folder, ("alignment", model, variant)
    yield f"{own}/runs.{MANIFEST}", ("runs",)
    yield f"{own}/analyse", ("analyse",)
    yield f"{own}/analyse/drift_over_steps.{MANIFEST}", ("drift_over_steps",)
    yield f"{figures}/{study.name}/claims.{MANIFEST}", ("claims",)


def _former(study: Study) -> dict[str, Path]:
    """Folder of a result -> another one, which the index still gives: its settings were others."""
    index = Path(RESULTS, study.name, "runs.csv")
    if not index.exists():
        return {}
    try:
        recorded = {(row.model, row.variant, row.seed): row for row in read_index(index)}
    except DamagedFileError:  # or of a version with other columns: the rule `runs` writes it anew
        return {}
    moved = {}
    for row in RunFolders(study).rows():
        before = recorded.get((row.model, row.variant, row.seed), row)
        for step in ("base", "train", "evaluate"):
            if getattr(before, step) != getattr(row, step):
                moved[getattr(row, step)] = Path(getattr(before, step))
    return moved


def _current(study: Study, key: SettingsKey, former: Path | None) -> Current:
    rule, *of_rule = key
    settings = settings_of(rule, study, *of_rule)
    return Current(settings, code_of(STEPS.get(rule, rule), settings), former)


if __name__ == "__main__":
    begin(main)
