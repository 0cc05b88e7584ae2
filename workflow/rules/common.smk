"""
What all rules share: the study, the paths, and what makes a job run again.

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
import os
import re
import sys
from functools import cache

from geosd.provenance import code
from geosd.provenance.file_times import order_times
from geosd.reporting import specs
from geosd.config import load, resolve, settings
from geosd.config.planned import PLAN, configuration_texts, edits_in_words, keep, times
from geosd.config.run_folders import RunFolders, folder_digest
from geosd.config.kept_weights import wanted_snapshots, weight_readers
from geosd.problems.sources import get_data_source

# As a module of another workflow: programs read from the folder that they run in. What that folder
# has itself, as a params.yaml of its own, stays.
HOME = Path(workflow.current_basedir.get_path_or_uri(False)).parents[1]
for part in ("params.yaml", "selected", "base_models", "profiles", "workflow", "envs", "src"):
    if not Path(part).exists():
        Path(part).symlink_to(HOME / part)
if not Path("workflow/scripts/launch.py").exists():
    raise ValueError(
        "The folder `workflow` here is another workflow's, and geosd's programs look for their own.\n"
        "Hint: let Snakemake run in a folder beside it: snakemake --directory FOLDER"
    )

# A job on another node is planned anew there, by the configuration that its driver kept.
if "plan" in config:
    os.environ[PLAN] = str(config["plan"])
PARAMS = load("params.yaml")  # no configfile: one reader, whose errors name key and line
CONFIGURATION = configuration_texts(PARAMS)
config.setdefault("study", PARAMS.study)

STUDY = resolve(PARAMS, config["study"])
TRAINED = list(STUDY.trained)
UNTRAINED = [name for name in STUDY.methods if name not in TRAINED]

FOLDERS = RunFolders(STUDY)
ROWS = FOLDERS.rows()
SNAPSHOTS = wanted_snapshots(STUDY)
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


# <study>, <figures> and <logs> are the study's own. Resume states lie in scratch/, outside all
# outputs: Snakemake deletes the declared outputs of a job that failed.
pathvars:
    study=f"results/{STUDY.name}",
    figures=f"figures/{STUDY.name}",
    logs=f"logs/{STUDY.name}",


wildcard_constraints:
    model="|".join(map(re.escape, STUDY.models)),
    variant="|".join(map(re.escape, TRAINED)) or "none",
    digest="[0-9a-f]+",
    recipe=r"\w+-[0-9a-f]+",  # an objective, or pi_0, and a digest of how it is trained or sampled
    seed=r"\d+",
    steps=r"\d+",


# `python` is the interpreter that runs Snakemake, whether or not its venv is activated, and `sbatch`
# is ours, which calls SLURM's.
PROGRAMS = (Path("workflow/slurm/bin").resolve(), Path(sys.executable).parent)
# As many threads as the rule's `threads`, which Snakemake puts into OMP_NUM_THREADS for each job.
# A thread that waits for another sleeps: beside a busy neighbour threads that spin were seven times
# slower than one.
os.environ |= {
    "OMP_WAIT_POLICY": "passive",
    "PATH": os.pathsep.join([*map(str, PROGRAMS), os.getenv("PATH", os.defpath)]),
}

if not {"study"} <= config.keys() <= {"study", "allow_missing", "plan"}:
    raise ValueError(
        "--config and --configfile may only name the study, and allow jobs to start without what they"
        " need: --config study=NAME allow_missing=true.\n"
        "Hint: set everything else in params.yaml, so that each result can be traced to it."
    )
# Snakemake hands on `true` of the command line as text.
ALLOW_MISSING = {"true": True, "false": False}.get(str(config.get("allow_missing", False)).lower())
if ALLOW_MISSING is None:
    raise ValueError(
        f"allow_missing is {config['allow_missing']!r}; allowed are true and false.\n"
        "Hint: --config study=NAME allow_missing=true"
    )


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


def keep_configuration():
    """Before the first job: keep the configuration, and let every job of the run read the copy."""
    os.environ.setdefault(PLAN, str(keep(CONFIGURATION)))
    handed_on = workflow.config_settings
    given = (
        [handed_on.config_args] if isinstance(handed_on.config_args, str) else handed_on.config_args
    )
    handed_on.config_args = [*given, f"plan={os.environ[PLAN]}"]


def read_by_jobs():
    """The files that jobs read at any time of a run, and that people may edit meanwhile."""
    raw = STUDY.section("data")["raw"]
    folders = ["workflow", "profiles", "src/geosd", *([raw] if raw else [])]
    found = [Path("Snakefile"), *map(Path, CONFIGURATION)]
    found += [path for folder in folders for path in Path(folder).rglob("*.*")]
    return [path for path in found if path.is_file() and path.suffix != ".pyc"]


WRITTEN = times(read_by_jobs())


def say_edits():
    """At the end of a run: what was edited since it was planned."""
    words = edits_in_words(STUDY.name, WRITTEN)
    if words:
        print(words, file=sys.stderr, flush=True)


def settings_of(step):
    """Params function: what a step may read of params.yaml, for one job."""
    return lambda wildcards: settings(step, STUDY, wildcards.get("model"), wildcards.get("variant"))


def code_of(step, settings=None, modules=()):
    """The digest of the code behind one step, for the params of its rule."""
    return code.digest(code.code_of(step, settings, modules, Path("src")))


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
