"""
Judge each claim of the paper.

REQUIRED INPUTS:

    <results>/analyse/scores.csv
    <results>/analyse/drift.csv

OUTPUTS:

    <figures>/claims.{csv,md}  = each claim: reproduced, not reproduced or undetermined
"""


rule claims:
    input:
        scores=rules.analyse.output.scores,
        drift=rules.analyse.output.drift,
        code=code_of("claims"),
    output:
        csv="<figures>/claims.csv",
        md="<figures>/claims.md",
    log:
        "<logs>/claims.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("claims"),
        out=subpath(output.csv, parent=True),
    message:
        "Judge the claims of the paper"
    shell:
        "python -m geosd.steps.claims --study {params.study} --params params.yaml"
        " --scores {input.scores} --drift {input.drift} --out {params.out} > {log} 2>&1"
