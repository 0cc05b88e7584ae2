"""
Draw the paper's figures, from tidy files only.

REQUIRED INPUTS:

    <results>/analyse/scores.csv

OUTPUTS:

    <figures>/figure_frontier.{pdf,svg,png}  = accuracy in against out of distribution
    <figures>/figure_overview.{pdf,svg,png}  = the geometry of the objective
"""


rule figure_frontier:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("figure_frontier"),
    output:
        pdf="<figures>/figure_frontier.pdf",
        svg=report(
            "<figures>/figure_frontier.svg",
            caption="../report/figure_frontier.rst",
            category="Figures",
        ),
        png="<figures>/figure_frontier.png",
    log:
        "<logs>/figure_frontier.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_frontier"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: accuracy in against out of distribution"
    shell:
        "python -m geosd.steps.figure_frontier --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule figure_overview:
    input:
        code=code_of("figure_overview"),
    output:
        pdf="<figures>/figure_overview.pdf",
        svg=report(
            "<figures>/figure_overview.svg",
            caption="../report/figure_overview.rst",
            category="Figures",
        ),
        png="<figures>/figure_overview.png",
    log:
        "<logs>/figure_overview.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_overview"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: the geometry of the objective"
    shell:
        "python -m geosd.steps.figure_overview --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"
