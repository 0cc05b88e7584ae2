"""
Compare the candidates of a study that selects hyperparameters (data.purpose: selection).

REQUIRED INPUTS:

    <results>/analyse/scores.csv

OUTPUTS:

    <figures>/table_selection.{csv,md,tex}  = each candidate's accuracy on the validation problems
"""


rule table_selection:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("table_selection"),
    output:
        csv="<figures>/table_selection.csv",
        md="<figures>/table_selection.md",
        tex="<figures>/table_selection.tex",
    log:
        "<logs>/table_selection.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("table_selection"),
        out=subpath(output.csv, parent=True),
    message:
        "Table: the candidates of each method"
    shell:
        "python -m geosd.steps.table_selection --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"
