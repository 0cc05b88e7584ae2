"""
What all rules share: the study, the paths, and what makes a job run again.

A job runs again when one of these changes, and on nothing else:

    its input files
    its settings, the part of params.yaml that its program may read  (settings_of)
    its code, the modules that its program imports, directly or not   (code_of)
"""

import ast
import os
import sys
from functools import cache

from snakemake.utils import min_version
from yaml import safe_load

from geosd.reporting import specs
from geosd.config import resolve, settings

min_version("9.20")  # pathvars, subpath

STUDY = resolve(PARAMS, config["study"])
TRAINED = list(STUDY.trained)
UNTRAINED = [name for name in STUDY.methods if name not in TRAINED]
# The module of the study's data set, which its steps find by name.
SOURCE = f"geosd.problems.sources.{STUDY.section('data')['source'].replace('-', '_')}"

# The one place of paths: <results>, <figures> and <logs> in every rule. Resume states lie in
# SCRATCH, outside all outputs: Snakemake deletes the declared outputs of a job that failed.
SCRATCH = f"scratch/{STUDY.name}"


pathvars:
    results=f"results/{STUDY.name}",
    figures=f"figures/{STUDY.name}",
    logs=f"logs/{STUDY.name}",


wildcard_constraints:
    model="|".join(STUDY.models),
    variant="|".join(TRAINED) or "none",
    seed=r"\d+",


# One thread a process and as many processes as cores: two threads beside a busy neighbour were seven
# times slower. glibc must keep large buffers: giving them back on each free doubled a training step.
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483648",
    # `python` is the interpreter that runs Snakemake, whether or not its venv is activated.
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.getenv("PATH", os.defpath)]),
}

if {**config, "study": None} != {**safe_load(Path("params.yaml").read_text()), "study": None}:
    raise ValueError(
        "--config and --configfile may only name the study: --config study=NAME.\n"
        "Hint: set everything else in params.yaml, so that each result can be traced to it."
    )


def settings_of(step):
    """Params function: what a step may read of params.yaml, for one job."""
    return lambda wildcards: settings(step, STUDY, wildcards.get("model"), wildcards.get("variant"))


@cache
def imported_by(path):
    """Names of the modules, and of what may be modules, that a Python file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == "geosd"]


@cache
def data_beside(path):
    """Data files that lie beside a module and are named in it."""
    text = path.read_text(encoding="utf-8")
    beside = [file for kind in ("yaml", "jinja") for file in path.parent.glob(f"*.{kind}")]
    return [file for file in beside if file.name in text]


@cache
def code_of(step, *modules):
    """Files behind one step: its module, all that it imports of this package, and the data files
    that lie beside these modules and are named in them.

    geosd.config is left out: what it decides reaches a job through its settings.

    Args:
        step: The rule, which is also the name of its module in geosd.steps.
        modules: Modules that the step finds by name and does not import.
    """
    source, found = Path("src"), set()
    queue = [f"geosd.steps.{step}", *modules]
    while queue:
        name = queue.pop()
        path = source.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if path in found or not path.exists() or name.startswith("geosd.config"):
            continue
        found |= {path, *data_beside(path)}
        queue += [name.rpartition(".")[0], *imported_by(path)]
    return sorted(str(path) for path in found)


def code_of_training(wildcards):
    """Input function: the code of one variant's training. A new objective retrains no other."""
    objective = settings("train", STUDY, wildcards.model, wildcards.variant)["objective"]["name"]
    return code_of("train", f"geosd.objectives.{objective}", SOURCE)


def asked(rule, amount, factor=1):
    """Resource function: what params.yaml asks for a job of a rule and its model.

    Args:
        rule: A rule of section `resources`.
        amount: gpus, mem_mb or minutes; of a training, also processes and placement.
        factor: By which each retry asks for more.
    """
    return lambda wildcards, attempt: getattr(
        PARAMS.needs(wildcards.model).of(rule), amount
    ) * factor ** (attempt - 1)


def code_of_output(name):
    """Files behind one table or figure: the program that writes all of them, and its own."""
    return code_of("render", *specs.modules(name))


def caption_of(name):
    """What the report says beside a table or figure; claims have a text of their own."""
    declared = specs.output_specs()
    return declared[name].caption if name in declared else ""


def gpu_model(rule):
    """Resource function: the site's type of GPU, where a rule's job asks for a GPU."""
    site = safe_load(Path("profiles/slurm/site.yaml").read_text())
    return lambda wildcards: (
        site["gpu_model"] if PARAMS.needs(wildcards.model).of(rule).gpus else None
    )


def scale(base, factor=2):
    """Resource that grows on each retry: base, base * factor, ..."""
    return lambda wildcards, attempt: base * factor ** (attempt - 1)
