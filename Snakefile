"""Geometric Self-Distillation; the order of the includes is the order of the data."""


# With --sdm apptainer all jobs run in it; `make container` builds it of envs/geosd.def.
container: "envs/geosd.sif"


include: "workflow/rules/start.smk"


if config["study"] in PARAMS.families:

    include: "workflow/rules/family.smk"

else:

    include: "workflow/rules/common.smk"
    include: "workflow/rules/resources.smk"
    include: "workflow/rules/data.smk"
    include: "workflow/rules/base.smk"
    include: "workflow/rules/pool.smk"
    include: "workflow/rules/train.smk"
    include: "workflow/rules/early_stop.smk"
    include: "workflow/rules/evaluate.smk"
    include: "workflow/rules/analyse.smk"
    include: "workflow/rules/states.smk"
    include: "workflow/rules/remove_weights.smk"
    include: "workflow/rules/outputs.smk"
    include: "workflow/rules/claims.smk"
    include: "workflow/rules/report.smk"
    include: "workflow/rules/samples.smk"
    include: "workflow/slurm/driver.smk"


rule all:
    default_target: True
    input:
        EVERYTHING,
    localrule: True
    message:
        f"Everything of {config['study']} is there"
