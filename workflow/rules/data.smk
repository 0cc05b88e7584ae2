"""
Fetch the raw files of a published data set, then draw the problems and split them.

REQUIRED INPUTS:

    none; a source with a catalogue (src/geosd/problems/sources/<source>.yaml) is fetched from the hub
    into the folder data.raw, unless its files lie there already

OUTPUTS:

    <results>/data/raw.json      = hash and origin of each raw file, where the source has any
    <results>/data/train.jsonl   = problems to train on
    <results>/data/select.jsonl  = problems to select hyperparameters on; a selection swaps them in
    <results>/data/test.jsonl    = the in-distribution test and the four other benchmarks
    <results>/data/card.json     = what was drawn, from where, and the hash of each split
    <results>/data/manifest.json = code, machine, time, hashes
"""

CATALOGUE = Path("src", *SOURCE.split(".")).with_suffix(".yaml")


rule fetch:
    input:
        catalogue=str(CATALOGUE),
        code=code_of("fetch"),
    output:
        raw="<results>/data/raw.json",
    log:
        "<logs>/fetch.log",
    localrule: True  # compute nodes rarely have a network
    params:
        study=STUDY.name,
        settings=settings_of("fetch"),
        out=subpath(output.raw, parent=True),
    message:
        "Fetch and check the raw files of study {params.study}"
    shell:
        "python -m geosd.steps.fetch --study {params.study} --params params.yaml"
        " --out {params.out} > {log} 2>&1"


rule data:
    input:
        raw=rules.fetch.output.raw if CATALOGUE.exists() else [],
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
