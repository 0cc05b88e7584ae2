"""
Draw the paper's figures, from tidy files only.

REQUIRED INPUTS:

    <results>/analyse/scores.csv
    <results>/analyse/consensus.csv

OUTPUTS:

    <figures>/figure_frontier.{pdf,svg,png}  = accuracy in against out of distribution
    <figures>/figure_overview.{pdf,svg,png}  = the geometry of the objective
    <figures>/figure_consensus.{pdf,svg,png} = coverage, false consensus, and whether agreement is right
    <figures>/figure_privilege.{pdf,svg,png} = OOD change against what the teacher sees
    <figures>/figure_scale.{pdf,svg,png}     = accuracy over the sizes of a model
    <figures>/figure_stepsize.{pdf,svg,png}  = learning rates and stopping steps
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


rule figure_consensus:
    input:
        consensus=rules.analyse.output.consensus,
        code=code_of("figure_consensus"),
    output:
        pdf="<figures>/figure_consensus.pdf",
        svg=report(
            "<figures>/figure_consensus.svg",
            caption="../report/figure_consensus.rst",
            category="Figures",
        ),
        png="<figures>/figure_consensus.png",
    log:
        "<logs>/figure_consensus.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_consensus"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: what the samples agree on"
    shell:
        "python -m geosd.steps.figure_consensus --study {params.study} --params params.yaml"
        " --consensus {input.consensus} --out {params.out} > {log} 2>&1"


rule figure_privilege:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("figure_privilege"),
    output:
        pdf="<figures>/figure_privilege.pdf",
        svg=report(
            "<figures>/figure_privilege.svg",
            caption="../report/figure_privilege.rst",
            category="Figures",
        ),
        png="<figures>/figure_privilege.png",
    log:
        "<logs>/figure_privilege.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_privilege"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: accuracy against what the teacher sees"
    shell:
        "python -m geosd.steps.figure_privilege --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule figure_scale:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("figure_scale"),
    output:
        pdf="<figures>/figure_scale.pdf",
        svg=report(
            "<figures>/figure_scale.svg",
            caption="../report/figure_scale.rst",
            category="Figures",
        ),
        png="<figures>/figure_scale.png",
    log:
        "<logs>/figure_scale.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_scale"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: accuracy over the sizes of a model"
    shell:
        "python -m geosd.steps.figure_scale --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"


rule figure_stepsize:
    input:
        scores=rules.analyse.output.scores,
        code=code_of("figure_stepsize"),
    output:
        pdf="<figures>/figure_stepsize.pdf",
        svg=report(
            "<figures>/figure_stepsize.svg",
            caption="../report/figure_stepsize.rst",
            category="Figures",
        ),
        png="<figures>/figure_stepsize.png",
    log:
        "<logs>/figure_stepsize.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("figure_stepsize"),
        out=subpath(output.pdf, parent=True),
    message:
        "Figure: learning rates and stopping steps"
    shell:
        "python -m geosd.steps.figure_stepsize --study {params.study} --params params.yaml"
        " --scores {input.scores} --out {params.out} > {log} 2>&1"
