"""
Sample pi_0 on the training problems and keep verified solutions, the teacher's privileged context.

REQUIRED INPUTS:

    results/base/{model}-<digest>/
    results/data/<source>-<digest>/train.jsonl

OUTPUTS:

    results/pool/{model}-{digest}/pool.jsonl    = verified solutions of each problem
    results/pool/{model}-{digest}/counts.json   = how many were drawn, verified and kept
    results/pool/{model}-{digest}/manifest.json = code, machine, time, hashes
"""


def solutions(wildcards):
    """Input function: the verified solutions of a model."""
    return f"{FOLDERS.pool(wildcards.model)}/pool.jsonl"


rule pool:
    input:
        base=base_model,
        problems=FOLDERS.train_problems,
        code=lambda wildcards: code_of("pool", settings("pool", STUDY, wildcards.model)),
    output:
        pool="results/pool/{model}-{digest}/pool.jsonl",
        counts="results/pool/{model}-{digest}/counts.json",
        manifest="results/pool/{model}-{digest}/manifest.json",
    log:
        "<logs>/pool/{model}-{digest}.log",
    threads: 1
    resources:
        gpu=requested("pool", "gpus"),
        gpu_model=gpu_model("pool"),
        mem_mb=requested("pool", "mem_mb", 2),
        runtime=requested("pool", "minutes", 2),
    params:
        base=subpath(input.base, parent=True),
        out=subpath(output.pool, parent=True),
    message:
        "Collect verified solutions of {wildcards.model}"
    shell:
        "python -m geosd.steps.pool --study {STUDY.name} --params params.yaml"
        " --model {wildcards.model} --base {params.base} --problems {input.problems}"
        " --out {params.out} > {log} 2>&1"
