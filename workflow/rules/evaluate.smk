"""
Sample every checkpoint on the test problems. All accuracies are computed from the kept samples.

REQUIRED INPUTS:

    <results>/train/{model}/{variant}/{seed}/   or, for pi_0, <results>/base/{model}/
    <results>/data/test.jsonl

TAKEN IF THERE:

    results/*/evaluate/{model}/*/{seed}/  = another run's, if they are what would be sampled here

OUTPUTS:

    <results>/evaluate/{model}/{variant}/{seed}/samples.jsonl  = every sample: text, tokens, answer, verdict
    <results>/evaluate/{model}/{variant}/{seed}/manifest.json  = code, machine, time, hashes
"""


rule evaluate:
    input:
        checkpoint=rules.train.output.weights,
        problems=rules.data.output.test,
        code=code_of("evaluate", SOURCE),
    output:
        samples="<results>/evaluate/{model}/{variant}/{seed}/samples.jsonl",
        manifest="<results>/evaluate/{model}/{variant}/{seed}/manifest.json",
    log:
        "<logs>/evaluate/{model}/{variant}/{seed}.log",
    threads: 1
    resources:
        gpu=asked("evaluate", "gpus"),
        gpu_model=gpu_model("evaluate"),
        mem_mb=asked("evaluate", "mem_mb", 2),
        runtime=asked("evaluate", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("evaluate"),
        variant="{variant}",
        checkpoint=subpath(input.checkpoint, parent=True),
        out=subpath(output.samples, parent=True),
    message:
        "Sample {wildcards.model} after {params.variant}, seed {wildcards.seed}"
    shell:
        "python -m geosd.steps.evaluate --study {params.study} --params params.yaml"
        " --model {wildcards.model} --variant {params.variant} --seed {wildcards.seed}"
        " --checkpoint {params.checkpoint} --problems {input.problems}"
        " --out {params.out}"
        " --others results/*/evaluate/{wildcards.model}/*/{wildcards.seed} > {log} 2>&1"


use rule evaluate as evaluate_pi_0 with:
    input:
        checkpoint=rules.base.output.weights,
        problems=rules.data.output.test,
        code=code_of("evaluate", SOURCE),
    output:
        samples="<results>/evaluate/{model}/pi_0/{seed}/samples.jsonl",
        manifest="<results>/evaluate/{model}/pi_0/{seed}/manifest.json",
    log:
        "<logs>/evaluate/{model}/pi_0/{seed}.log",
    params:
        study=STUDY.name,
        settings=settings_of("evaluate_pi_0"),
        variant="pi_0",
        checkpoint=subpath(input.checkpoint, parent=True),
        out=subpath(output.samples, parent=True),
