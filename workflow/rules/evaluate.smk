"""
Sample every checkpoint on the test problems. All accuracies are computed from the kept samples.

    results/evaluate/{model}/{recipe}/{seed}/samples.jsonl  = every sample: text, tokens, answer, verdict
    results/evaluate/{model}/{recipe}/{seed}/manifest.json  = code, machine, time, hashes
"""


rule evaluate:
    input:
        checkpoint=student,
        problems=FOLDERS.test_problems,
    output:
        samples="results/evaluate/{model}/{recipe}/{seed}/samples.jsonl",
        manifest="results/evaluate/{model}/{recipe}/{seed}/manifest.json",
    log:
        "<logs>/evaluate/{model}/{recipe}/{seed}.log",
    wildcard_constraints:
        recipe="(?!pi_0-).+",
    priority: 2  # before new trainings: weights that are evaluated may go
    threads: share_of_cores("evaluate")
    resources:
        **resources_of("evaluate"),
        study=STUDY.name,
        variant=variant_of("evaluate"),
    params:
        code=code_of_model("evaluate"),
        checkpoint=subpath(input.checkpoint, parent=True),
        out=subpath(output.samples, parent=True),
        scratch="scratch/evaluate/{model}/{recipe}/{seed}",
    message:
        "Sample {wildcards.model} after {resources.variant}, seed {wildcards.seed}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd evaluate --study {resources.study:q}"
        " --model {wildcards.model:q} --variant {resources.variant:q} --seed {wildcards.seed:q}"
        " --checkpoint {params.checkpoint:q} --problems {input.problems:q}"
        " --out {params.out:q} --scratch {params.scratch:q} > {log:q} 2>&1"


use rule evaluate as evaluate_pi_0 with:
    input:
        checkpoint=of_base_model("base"),
        problems=FOLDERS.test_problems,
    wildcard_constraints:
        recipe="pi_0-[0-9a-f]+",
    priority: 0
