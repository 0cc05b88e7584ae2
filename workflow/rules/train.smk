"""
Train every variant, once for each seed. One rule trains them all, but for those that are the
beginning of longer runs: early_stop.smk takes these from there.

REQUIRED INPUTS:

    <results>/base/{model}/
    <results>/pool/{model}/pool.jsonl
    <results>/data/train.jsonl

TAKEN IF THERE:

    results/*/train/{model}/*/{seed}/  = another study's run, if it is what would be trained here

OUTPUTS:

    <results>/train/{model}/{variant}/{seed}/  = final weights in Hugging Face format,
        steps.csv      = the step log
        settings.json  = the settings as they were resolved
        manifest.json  = code, packages, machine, time, memory, hashes of the inputs
"""


rule train:
    input:
        base=rules.base.output.weights,
        problems=rules.data.output.train,
        pool=rules.pool.output.pool,
        code=code_of_training,
    output:
        weights="<results>/train/{model}/{variant}/{seed}/model.safetensors",
        config="<results>/train/{model}/{variant}/{seed}/config.json",
        tokenizer="<results>/train/{model}/{variant}/{seed}/tokenizer.json",
        steps="<results>/train/{model}/{variant}/{seed}/steps.csv",
        settings="<results>/train/{model}/{variant}/{seed}/settings.json",
        manifest="<results>/train/{model}/{variant}/{seed}/manifest.json",
    log:
        "<logs>/train/{model}/{variant}/{seed}.log",
    wildcard_constraints:
        variant="|".join(name for name in TRAINED if name not in STUDY.early_stops) or "none",
    threads: 1
    resources:
        gpu=asked("train", "gpus"),
        gpu_model=gpu_model("train"),
        processes=asked("train", "processes"),
        placement=asked("train", "placement"),
        mem_mb=asked("train", "mem_mb", 2),
        runtime=asked("train", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("train"),
        base=subpath(input.base, parent=True),
        out=subpath(output.weights, parent=True),
        scratch=f"{SCRATCH}/train/{{model}}/{{variant}}/{{seed}}",
    message:
        "Train {wildcards.model} with {wildcards.variant}, seed {wildcards.seed}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu}"
        " --processes {resources.processes} --scratch {params.scratch} --"
        " python -m geosd.steps.train --study {params.study} --params params.yaml"
        " --model {wildcards.model} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --base {params.base} --problems {input.problems} --pool {input.pool}"
        " --out {params.out} --scratch {params.scratch} {resources.placement}"
        " --others results/*/train/{wildcards.model}/*/{wildcards.seed} > {log} 2>&1"
