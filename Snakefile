"""Geometric Self-Distillation; the order of the includes is the order of the data."""

from snakemake.utils import min_version

from geosd.config import load

min_version("9.20")

# Before configfile: a mistake is then named with its key, its line, and what is allowed.
PARAMS = load("params.yaml")


configfile: "params.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/base.smk"
include: "workflow/rules/pool.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/claims.smk"


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.claims.output,
        rules.configuration.output,
    localrule: True
    message:
        f"Study {STUDY.name} is complete"
