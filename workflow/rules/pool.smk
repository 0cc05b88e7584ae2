"""
Sample pi_0 on the training problems and keep verified solutions, the teacher's privileged context.

REQUIRED INPUTS:

    <results>/base/{model}/
    <results>/data/train.jsonl

OUTPUTS:

    <results>/pool/{model}/pool.jsonl   = verified solutions of each problem
    <results>/pool/{model}/counts.json  = how many were drawn, verified and kept
    <results>/pool/{model}/manifest.json = code, machine, time, hashes
"""


rule pool:
    input:
        base=rules.base.output.weights,
        problems=rules.data.output.train,
        code=code_of("pool", SOURCE),
    output:
        pool="<results>/pool/{model}/pool.jsonl",
        counts="<results>/pool/{model}/counts.json",
        manifest="<results>/pool/{model}/manifest.json",
    log:
        "<logs>/pool/{model}.log",
    threads: 1
    resources:
        gpu=asked("pool", "gpus"),
        gpu_model=gpu_model("pool"),
        mem_mb=asked("pool", "mem_mb", 2),
        runtime=asked("pool", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("pool"),
        base=subpath(input.base, parent=True),
        out=subpath(output.pool, parent=True),
    message:
        "Collect verified solutions of {wildcards.model}"
    shell:
        "python -m geosd.steps.pool --study {params.study} --params params.yaml"
        " --model {wildcards.model} --base {params.base} --problems {input.problems}"
        " --out {params.out} > {log} 2>&1"
