"""
With `keep: samples`, remove the weights of a run once everything that is made from them is there.
Snakemake's temp() would do so for files that one study alone reads; docs/decisions.md, "Weights that go".

    <study>/removed/{model}/{recipe}/{seed}/{weights}.json = whether they went, or who else reads them
"""

READERS = weight_readers(STUDY) if STUDY.overlay.keep == "samples" else {}


rule remove_weights:
    input:
        lambda wildcards: READERS[
            "results/train/{model}/{recipe}/{seed}/{weights}.safetensors".format(**wildcards)
        ],
    output:
        "<study>/removed/{model}/{recipe}/{seed}/{weights}.json",
    log:
        "<logs>/remove_weights/{model}/{recipe}/{seed}/{weights}.log",
    wildcard_constraints:
        weights=r"(stopped_\d+/)?model|snapshots/step_\d+",
    priority: 3  # before anything that writes more
    localrule: True
    params:
        study=STUDY.name,
        weights="results/train/{model}/{recipe}/{seed}/{weights}.safetensors",
    message:
        "Remove {params.weights}, from which everything is made"
    shell:
        "python -m geosd remove-weights --study {params.study:q}"
        " --weights {params.weights:q} --out {output:q} > {log:q} 2>&1"


rule removed_weights:
    """All weights of the study that may go"""
    input:
        [
            f"<study>/removed/{Path(file).relative_to('results/train').with_suffix('.json')}"
            for file in READERS
        ],
    localrule: True
