"""Which weights of a study stay, for how long, and which results are made from them."""

import os

from geosd.config.run_folders import RunFolders, Snapshots, run_of
from geosd.config.study import Study, resolve
from geosd.provenance.manifest import MANIFEST
from geosd.provenance.proof import SNAPSHOTS, WEIGHTS


def wanted_snapshots(study: Study) -> Snapshots:
    """The steps after which each run (model, recipe, seed) keeps weights, ascending.

    They are the union over all studies of the file that have the run, of their `snapshots` and of
    the ends of their early stops: any of the studies may train the run.
    """
    wanted: dict[tuple[str, str, int], set[int]] = {}
    for other in (resolve(study.params, name) for name in study.params.studies):
        folders = RunFolders(other)
        for model in (model for model in other.models if model in study.models):
            for variant in other.trained:
                training = other.training(model, variant)
                longest = other.early_stops.get(variant, variant)
                steps = training["snapshots"] if longest == variant else [training["steps"]]
                for seed in other.seeds if steps else ():
                    run = (model, folders.recipe(model, longest, other.draw(seed)), seed)
                    wanted.setdefault(run, set()).update(steps)
    return {run: tuple(sorted(steps)) for run, steps in wanted.items()}


def weight_readers(study: Study) -> dict[str, list[str]]:
    """File of weights -> results made from it, after which `keep: samples` lets the weights go."""
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
    for (model, variant, seed), folder in folders.alignments().items():
        run, table = folders.train(model, variant, seed), f"{folder}/alignment.csv"
        steps = study.training(model, variant)["snapshots"]
        for file in (f"{run}/{WEIGHTS}", *(_snapshot(run, step) for step in steps)):
            readers.setdefault(file, {})[table] = None
    return {file: list(results) for file, results in readers.items()}


def kept_for(study: Study) -> dict[str, list[str]]:
    """File of weights of a study's runs -> other studies that keep it, or have yet to read it.

    Results that this study makes too are not waited for.
    """
    own = weight_readers(study)
    runs = {run_of(file) for file in own}
    kept: dict[str, list[str]] = {}
    for name in study.params.studies:
        other = resolve(study.params, name)
        if name == study.name or not set(other.models) & set(study.models):
            continue
        for file, results in weight_readers(other).items():
            keeps = other.overlay.keep == "weights"
            others = set(results) - set(own.get(file, ()))
            if run_of(file) in runs and (keeps or not all(map(os.path.exists, others))):
                kept.setdefault(file, []).append(name)
    return kept


def _snapshot(run: str, step: int | str) -> str:
    return f"{run}/{SNAPSHOTS}/step_{step}.safetensors"
