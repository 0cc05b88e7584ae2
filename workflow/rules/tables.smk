"""
Write the paper's tables, from tidy files only.

REQUIRED INPUTS:

    <results>/analyse/scores.csv
    <results>/analyse/drift.csv

OUTPUTS:

    <figures>/table_main.{csv,md,tex}          = accuracy in and out of distribution, each method
    <figures>/table_benchmarks.{csv,md,tex}    = accuracy on each benchmark
    <figures>/table_significance.{csv,md,tex}  = GeoSD against the best baseline, tested
    <figures>/table_ablations.{csv,md,tex}     = GeoSD without each of its parts
"""


rule table_main:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("table_main"),
    output:
        csv="<figures>/table_main.csv",
        md="<figures>/table_main.md",
        tex="<figures>/table_main.tex",
    log:
        "<logs>/table_main.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_main"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: accuracy in and out of distribution"
    shell:
        "python -m geosd.steps.table_main --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule table_benchmarks:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("table_benchmarks"),
    output:
        csv="<figures>/table_benchmarks.csv",
        md="<figures>/table_benchmarks.md",
        tex="<figures>/table_benchmarks.tex",
    log:
        "<logs>/table_benchmarks.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_benchmarks"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: accuracy on each benchmark"
    shell:
        "python -m geosd.steps.table_benchmarks --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule table_significance:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("table_significance"),
    output:
        csv="<figures>/table_significance.csv",
        md="<figures>/table_significance.md",
        tex="<figures>/table_significance.tex",
    log:
        "<logs>/table_significance.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_significance"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: GeoSD against the best baseline"
    shell:
        "python -m geosd.steps.table_significance --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule table_ablations:
    input:
        scores=rules.analyse.output.scores,
        drift=rules.analyse.output.drift,
        code=code_of("table_ablations"),
    output:
        csv="<figures>/table_ablations.csv",
        md="<figures>/table_ablations.md",
        tex="<figures>/table_ablations.tex",
    log:
        "<logs>/table_ablations.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_ablations"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: GeoSD without each of its parts"
    shell:
        "python -m geosd.steps.table_ablations --study {params.study} --params params.yaml"
        " --scores {input.scores} --drift {input.drift} --out {params.out} > {log} 2>&1"
