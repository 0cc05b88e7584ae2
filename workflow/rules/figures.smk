"""
Draw the paper's figures, from tidy files only.

REQUIRED INPUTS:

    <results>/analyse/scores.csv

OUTPUTS:

    <figures>/figure_frontier.{pdf,svg,png}  = accuracy in against out of distribution
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
