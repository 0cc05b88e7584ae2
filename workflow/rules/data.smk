"""
Draw the problems and split them.

REQUIRED INPUTS:

    none

OUTPUTS:

    <results>/data/train.jsonl   = problems to train on
    <results>/data/select.jsonl  = problems to select hyperparameters on; a selection swaps them in
    <results>/data/test.jsonl    = the in-distribution test and the four other benchmarks
    <results>/data/card.json     = what was drawn, from where, and the hash of each split
    <results>/data/manifest.json = code, machine, time, hashes
"""


rule data:
    input:
        code=code_of("data", SOURCE),
    output:
        train="<results>/data/train.jsonl",
        select="<results>/data/select.jsonl",
        test="<results>/data/test.jsonl",
        card="<results>/data/card.json",
        manifest="<results>/data/manifest.json",
    log:
        "<logs>/data.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("data"),
        out=subpath(output.train, parent=True),
    message:
        "Draw the problems of study {params.study}"
    shell:
        "python -m geosd.steps.data --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"
