"""
Write the paper's tables of architectures, costs and settings, which no run enters.

REQUIRED INPUTS:

    none

OUTPUTS:

    <figures>/table_architectures.{csv,md,tex}    = dimensions and parameters of the models
    <figures>/table_flops.{csv,md,tex}            = operations of an update
    <figures>/table_memory.{csv,md,tex}           = training memory at 8B
    <figures>/table_kfac_memory.{csv,md,tex}      = memory of K-FAC over the scale ladder
    <figures>/table_hyperparameters.{csv,md,tex}  = settings of the study beside the paper's
"""


rule table_architectures:
    input:
        code=code_of("table_architectures"),
    output:
        csv="<figures>/table_architectures.csv",
        md="<figures>/table_architectures.md",
        tex="<figures>/table_architectures.tex",
    log:
        "<logs>/table_architectures.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_architectures"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: dimensions and parameters of the models"
    shell:
        "python -m geosd.steps.table_architectures --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"


rule table_flops:
    input:
        code=code_of("table_flops"),
    output:
        csv="<figures>/table_flops.csv",
        md="<figures>/table_flops.md",
        tex="<figures>/table_flops.tex",
    log:
        "<logs>/table_flops.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_flops"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: operations of an update"
    shell:
        "python -m geosd.steps.table_flops --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"


rule table_memory:
    input:
        code=code_of("table_memory"),
    output:
        csv="<figures>/table_memory.csv",
        md="<figures>/table_memory.md",
        tex="<figures>/table_memory.tex",
    log:
        "<logs>/table_memory.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_memory"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: training memory at 8B"
    shell:
        "python -m geosd.steps.table_memory --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"


rule table_kfac_memory:
    input:
        code=code_of("table_kfac_memory"),
    output:
        csv="<figures>/table_kfac_memory.csv",
        md="<figures>/table_kfac_memory.md",
        tex="<figures>/table_kfac_memory.tex",
    log:
        "<logs>/table_kfac_memory.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        out=subpath(output.csv, parent=True),
    message:
        "Table: memory of K-FAC over the scale ladder"
    shell:
        "python -m geosd.steps.table_kfac_memory --out {params.out} > {log} 2>&1"


rule table_hyperparameters:
    input:
        code=code_of("table_hyperparameters"),
    output:
        csv="<figures>/table_hyperparameters.csv",
        md="<figures>/table_hyperparameters.md",
        tex="<figures>/table_hyperparameters.tex",
    log:
        "<logs>/table_hyperparameters.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_hyperparameters"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: the settings of the study beside the paper's"
    shell:
        "python -m geosd.steps.table_hyperparameters --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"
