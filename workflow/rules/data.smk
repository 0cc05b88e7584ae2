"""
Fetch the raw files of a published data set, then draw the problems and split them. A source with a
catalogue (src/geosd/problems/sources/<source>.yaml) is fetched from the hub into the folder data.raw,
unless its files lie there already.

    results/data/<source>-<digest>/raw.json      = hash and origin of each raw file, where there are any
    results/data/<source>-<digest>/train.jsonl   = problems to train on
    results/data/<source>-<digest>/test.jsonl    = the in-distribution test and the other benchmarks
    results/data/<source>-<digest>/select_{train,validation}.jsonl = in their place, for a selection
    results/data/<source>-<digest>/card.json     = what was drawn, from where, and the hash of each split
    results/data/<source>-<digest>/manifest.json = code, machine, time, hashes
"""

SOURCE = code.code_module("source", STUDY.section("data")["source"])
CATALOGUE = Path("src", *SOURCE.split(".")).with_suffix(".yaml")


rule fetch:
    input:
        catalogue=str(CATALOGUE),
    output:
        raw=f"{FOLDERS.data}/raw.json",
    log:
        "<logs>/fetch.log",
    localrule: True  # compute nodes rarely have a network
    resources:
        study=STUDY.name,
    params:
        code=code_of("fetch"),
        out=subpath(output.raw, parent=True),
    message:
        f"Fetch and check the raw files of study {STUDY.name}"
    shell:
        "python -m geosd fetch --study {resources.study:q} --out {params.out:q} > {log:q} 2>&1"


rule data:
    input:
        raw=rules.fetch.output.raw if CATALOGUE.exists() else raw_files(CATALOGUE),
    output:
        train=f"{FOLDERS.data}/train.jsonl",
        select_train=f"{FOLDERS.data}/select_train.jsonl",
        select_validation=f"{FOLDERS.data}/select_validation.jsonl",
        test=f"{FOLDERS.data}/test.jsonl",
        card=f"{FOLDERS.data}/card.json",
        manifest=f"{FOLDERS.data}/manifest.json",
    log:
        "<logs>/data.log",
    resources:
        study=STUDY.name,
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        code=code_of("data", settings("data", STUDY)),
        out=subpath(output.train, parent=True),
    message:
        f"Draw the problems of study {STUDY.name}"
    shell:
        "python -m geosd data --study {resources.study:q} --out {params.out:q} > {log:q} 2>&1"
