"""
What all rules of a study share: the study, and what makes a job run again.

A job runs again when one of these changes, and on nothing else:

    its input files
    its settings, the part of params.yaml that its program may read  (settings_of)
    its code, what the modules mean that its program imports, directly or not   (code_of)

Results that several studies may have lie in folders whose names are digests of the settings and of
what they are made from (geosd.config.run_folders): there other settings are another folder, and the rules
need no `settings`. The study's name is in none of their paths, inputs or params.

A job of such a folder is told by its `resources` what the study calls things: `study`, the study itself,
and `variant`, the study's name for the run. Programs need both to find their settings in params.yaml, and
a message names them. They are no params, because Snakemake runs a job again when a param changes: another
study, or the same run by another name, would make a result again that is there. Resources are read when
the job starts, and are compared with nothing.
"""

import json
import re
import sys
from functools import cache

from geosd.provenance import code
from geosd.provenance.file_times import order_times
from geosd.reporting import specs
from geosd.config import resolve_study, settings
from geosd.config.planned import edits_since_planned, planned_file_times
from geosd.config.run_folders import RunFolders, run_folder_digest
from geosd.config.kept_weights import kept_snapshots, weight_readers
from geosd.problems.sources import get_data_source

STUDY = resolve_study(PARAMS, config["study"])
TRAINED = list(STUDY.trained)
UNTRAINED = [name for name in STUDY.methods if name not in TRAINED]

FOLDERS = RunFolders(STUDY)
ROWS = FOLDERS.rows()
SNAPSHOTS = kept_snapshots(STUDY)
# What the study calls the run in a shared folder; of variants with equal settings the first.
VARIANTS = {
    Path(folder): row.variant for row in reversed(ROWS) for folder in (row.train, row.evaluate)
}
# The draw of the base model that each results/{base,pool,states}/{model}-{digest} is of.
DRAWS = {
    (model, folder(model, draw).rpartition("-")[2]): draw
    for model in STUDY.models
    for draw in {0, *STUDY.base_draws}
    for folder in (FOLDERS.base, FOLDERS.pool, FOLDERS.states)
}


wildcard_constraints:
    model="|".join(map(re.escape, STUDY.models)),
    variant="|".join(map(re.escape, TRAINED)) or "none",
    digest="[0-9a-f]+",
    recipe=r"[\w-]+-[0-9a-f]+",  # an objective, or pi_0, and a digest of how it is trained or sampled
    seed=r"\d+",
    steps=r"\d+",


def order_times_of_results():
    """Before the plan: results that were copied get times in the order in which they were made."""
    try:
        order_times(FOLDERS.manifests(), lambda text: print(text, file=sys.stderr, flush=True))
    except PermissionError as error:
        print(
            f"{error.filename}: this result is older than what it was made from, and its time may"
            " not be changed here, so it may be planned again.\nHint: its owner can run"
            f" `make plan STUDY={STUDY.name}` once.",
            file=sys.stderr,
        )


if workflow.is_main_process:
    order_times_of_results()


def read_by_jobs():
    """The files that jobs read at any time of a run, and that people may edit meanwhile."""
    raw = STUDY.section("data")["raw"]
    folders = ["workflow", "profiles", "src/geosd", *([raw] if raw else [])]
    found = [Path("Snakefile"), Path("params.yaml")]
    found += [path for folder in folders for path in Path(folder).rglob("*.*")]
    return [path for path in found if path.is_file() and path.suffix != ".pyc"]


# Of a job's own Snakemake nobody asks what was edited.
WRITTEN = planned_file_times(read_by_jobs()) if workflow.is_main_process else {}


def say_edits():
    """At the end of a run: what was edited since it was planned."""
    words = edits_since_planned(STUDY.name, WRITTEN)
    if words:
        print(words, file=sys.stderr, flush=True)


def settings_of(step):
    """Params function: what a step may read of params.yaml, for one job."""
    return lambda wildcards: settings(step, STUDY, wildcards.get("model"), wildcards.get("variant"))


def code_of_model(step, variant=lambda wildcards: None):
    """Params function: the digest of the code that a model's settings choose, or a variant's.

    So a new objective retrains no other. It is found once for all jobs of them.
    """
    found = cache(lambda *of: code_of(step, settings(step, STUDY, *of)))
    return lambda wildcards: found(wildcards.model, variant(wildcards))


def variant_of(step, folder="{model}/{recipe}/{seed}"):
    """Resource function: what the study calls the run in a shared folder.

    It is no param, because studies differ in it, and another name must rerun nothing.
    """

    def named(wildcards):
        path = Path("results", step, folder.format(**wildcards))
        if path not in VARIANTS:
            raise not_of_the_study(path)
        return VARIANTS[path]

    return named


def draw_of(wildcards):
    """Params function: the draw of the base model that a job is of, by its seed or its digest."""
    if "seed" in wildcards.keys():
        return STUDY.draw(int(wildcards.seed))
    if (wildcards.model, wildcards.digest) not in DRAWS:
        raise not_of_the_study(f"{wildcards.model}-{wildcards.digest}")
    return DRAWS[wildcards.model, wildcards.digest]


def not_of_the_study(folder):
    """The error that a shared folder was asked for which is not one of the study's."""
    return ValueError(
        f"{folder} is no result of study {STUDY.name}, with params.yaml as it stands.\n"
        f"Hint: results/{STUDY.name}/runs.csv lists its folders; the rule `runs` writes it."
    )


def snapshots(wildcards):
    """Params function: the option that says which weights on the way a run keeps.

    A run that has kept what is wanted of it, and more, is not made again.
    """
    run = (wildcards.model, wildcards.recipe, int(wildcards.seed))
    manifest = Path("results/train", *map(str, run), "manifest.json")
    try:
        recorded = json.loads(manifest.read_text(encoding="utf-8"))["snapshots"]
        recorded = list(map(int, recorded))  # they reach the shell
    except (OSError, ValueError, KeyError, TypeError):  # not made yet, or not whole
        recorded = []
    steps = sorted({*SNAPSHOTS.get(run, ()), *recorded})
    return " ".join(["--snapshots", *map(str, steps)]) if steps else ""


def checkpoint_files(wildcards):
    """Input function: the files of a base model that is taken from a folder; of others none.

    Its address has their hashes, so their time says nothing.
    """
    taken = settings("base", STUDY, wildcards.model, draw=draw_of(wildcards))["checkpoint"] or {}
    return [ancient(f"{taken['folder']}/{name}") for name in taken.get("files", ())]


def raw_files(catalogue):
    """Files in data.raw, of a source that reads them and has no catalogue: an edit draws anew."""
    data = STUDY.section("data")
    raw = data["raw"]
    if raw is None or catalogue.exists() or not get_data_source(data["source"]).reads_raw:
        return []
    found = [Path(raw), *sorted(Path(raw).rglob("*"))]
    return [str(path) for path in found if path.is_file()]


def of_base_model(kind, file="model.safetensors"):
    """Input function: a file of the base model that a job is of, of its pool or its states."""
    folder = getattr(FOLDERS, kind)
    return lambda wildcards: f"{folder(wildcards.model, draw_of(wildcards))}/{file}"


def student(wildcards):
    """Input function: the weights of a variant's student, by its name or by its samples' folder."""
    variant = wildcards.get("variant") or variant_of("evaluate")(wildcards)
    return f"{FOLDERS.train(wildcards.model, variant, int(wildcards.seed))}/model.safetensors"


def scored_checkpoints(wildcards):
    """Input function: the weights of each method's student, by the seed that the page shows."""
    asked = settings("token_probabilities", STUDY, wildcards.model)
    seed = asked["run_seed"]
    base = FOLDERS.base(wildcards.model, STUDY.draw(seed))
    folders = [
        FOLDERS.train(wildcards.model, name, seed) if name in TRAINED else base
        for name in asked["methods"]
    ]
    return [f"{folder}/model.safetensors" for folder in folders]


def pool_of_scored(wildcards):
    """Input function: the verified solutions that the teacher reads."""
    return f"{FOLDERS.pool(wildcards.model, STUDY.draw(STUDY.seeds[0]))}/pool.jsonl"


def code_of_scored(wildcards):
    """Params function: the digest of the code, with the data source's module."""
    asked = settings("token_probabilities", STUDY, wildcards.model)
    source = code.code_module("source", asked["source"])
    return code_of("token_probabilities", asked, (source,))
