"""
What a study and a family of studies share: the configuration, the paths, and the code behind a rule.
"""

import os
import sys

from geosd.config import load
from geosd.config.planned import PLAN, planned_configuration_text, keep_planned
from geosd.provenance import code


report: "../report/workflow.rst"


# As a module of another workflow: programs read from the folder that they run in. What that folder
# has itself, as a params.yaml of its own, stays.
HOME = Path(workflow.current_basedir.get_path_or_uri(False)).parents[1]
for part in ("params.yaml", "base_models", "profiles", "workflow", "envs", "src"):
    if not Path(part).exists():
        Path(part).symlink_to(HOME / part)
if not Path("workflow/scripts/launch.py").exists():
    raise ValueError(
        "The folder `workflow` here is another workflow's, and geosd's programs look for their own.\n"
        "Hint: let Snakemake run in a folder next to it: snakemake --directory FOLDER"
    )

# A job on another node is planned anew there, by the configuration that its driver kept.
if "plan" in config:
    os.environ[PLAN] = str(config["plan"])
PARAMS = load("params.yaml")  # no configfile: one reader, whose errors name key and line
CONFIGURATION = planned_configuration_text()
config.setdefault("study", PARAMS.study)


# <study>, <figures> and <logs> are the own ones of the study or family. Resume states lie in
# scratch/, outside all outputs: Snakemake deletes the declared outputs of a job that failed.
pathvars:
    study=f"results/{config['study']}",
    figures=f"figures/{config['study']}",
    logs=f"logs/{config['study']}",


# `python` is the interpreter that runs Snakemake, whether or not its venv is activated, and `sbatch`
# is ours, which calls SLURM's.
PROGRAMS = (Path("workflow/slurm/bin").resolve(), Path(sys.executable).parent)
# As many threads as the rule's `threads`, which Snakemake puts into OMP_NUM_THREADS for each job.
# A thread that waits for another sleeps: with a busy neighbour threads that spin were seven times
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


def keep_configuration():
    """Before the first job: keep the configuration, and let every job of the run read the copy."""
    os.environ.setdefault(PLAN, str(keep_planned(CONFIGURATION)))
    handed_on = workflow.config_settings
    given = (
        [handed_on.config_args] if isinstance(handed_on.config_args, str) else handed_on.config_args
    )
    handed_on.config_args = [*given, f"plan={os.environ[PLAN]}"]


def code_of(step, settings=None, modules=()):
    """The digest of the code behind one step, for the params of its rule."""
    return code.code_digest(code.code_of(step, settings, modules, Path("src")))


def scale(base):
    """Resource that doubles on each of the first three retries."""
    return lambda wildcards, attempt: base * 2 ** min(attempt - 1, 3)
