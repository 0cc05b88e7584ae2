"""Which weights of a study stay, for how long, and which results are made from them."""

import os
from collections.abc import Iterator, Sequence

from geosd.config.run_folders import RunFolders, Snapshots, run_of
from geosd.config.study import Study, resolve_study
from geosd.provenance.manifest import MANIFEST
from geosd.provenance.proof import SNAPSHOTS, WEIGHTS

Run = tuple[str, str, int]
"""Model, recipe and seed."""


def kept_snapshots(study: Study) -> Snapshots:
    """The steps after which each run (model, recipe, seed) keeps weights, ascending.

    They are the union over all studies of the file that have the run, of their `snapshots` and of
    the ends of their early stops: any of the studies may train the run.
    """
    wanted: dict[Run, set[int]] = {}
    for name in study.params.studies:
        for run, steps in _snapshots_of(resolve_study(study.params, name), study.models):
            wanted.setdefault(run, set()).update(steps)
    return {run: tuple(sorted(steps)) for run, steps in wanted.items()}


def _snapshots_of(study: Study, models: Sequence[str]) -> Iterator[tuple[Run, list[int]]]:
    """Each run of a study, of some models, after whose steps the study wants weights."""
    folders = RunFolders(study)
    for model in study.models:
        if model not in models:
            continue
        for variant in study.trained:
            training = study.training(model, variant)
            steps, trained_as = training["snapshots"], variant
            if variant in study.early_stops:
                steps, trained_as = [training["steps"]], study.early_stops[variant]
            if not steps:
                continue
            for seed in study.seeds:
                recipe = folders.recipe(model, trained_as, study.draw(seed))
                yield (model, recipe, seed), steps


def weight_readers(study: Study) -> dict[str, list[str]]:
    """File of weights -> results made from it, after which `keep: samples` lets the weights go."""
    folders = RunFolders(study)
    readers: dict[str, list[str]] = {}
    for file, result in [*_read_by_runs(study, folders), *_read_by_alignments(study, folders)]:
        results = readers.setdefault(file, [])
        if result not in results:
            results.append(result)
    return readers


def _read_by_runs(study: Study, folders: RunFolders) -> Iterator[tuple[str, str]]:
    """Files of weights that samples and early stops are made from, each with its result."""
    for row in folders.rows():
        if not row.train:
            continue
        yield f"{row.train}/{WEIGHTS}", f"{row.evaluate}/samples.jsonl"
        if row.variant in study.early_stops:
            longer, _, steps = row.train.partition("/stopped_")
            stopped = f"{row.train}/{MANIFEST}"
            yield f"{longer}/{WEIGHTS}", stopped
            yield _snapshot(longer, steps), stopped


def _read_by_alignments(study: Study, folders: RunFolders) -> Iterator[tuple[str, str]]:
    """Files of weights that are aligned with the teacher, each with its table."""
    for (model, variant, seed), folder in folders.alignments().items():
        run = folders.train(model, variant, seed)
        table = f"{folder}/alignment.csv"
        yield f"{run}/{WEIGHTS}", table
        for step in study.training(model, variant)["snapshots"]:
            yield _snapshot(run, step), table


def kept_for(study: Study) -> dict[str, list[str]]:
    """File of weights of a study's runs -> other studies that keep it, or have yet to read it.

    Results that this study makes too are not waited for. A study in stages and one that is judged
    once are two ways to one verdict, of which one is run: neither waits for the other.
    """
    own = weight_readers(study)
    runs = {run_of(file) for file in own}
    kept: dict[str, list[str]] = {}
    for name in study.params.studies:
        other = resolve_study(study.params, name)
        if name == study.name or not set(other.models) & set(study.models):
            continue
        if (other.overlay.stages is None) != (study.overlay.stages is None):
            continue
        keeps = other.overlay.keep == "weights"
        for file, results in weight_readers(other).items():
            if run_of(file) not in runs:
                continue
            awaited = set(results) - set(own.get(file, ()))
            if keeps or not all(os.path.exists(result) for result in awaited):
                kept.setdefault(file, []).append(name)
    return kept


def _snapshot(run: str, step: int | str) -> str:
    return f"{run}/{SNAPSHOTS}/step_{step}.safetensors"
