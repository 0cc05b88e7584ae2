"""
Make each base model pi_0; nothing here depends on a method.

REQUIRED INPUTS:

    <results>/data/{train,select,test}.jsonl  = so that no document repeats a test question

TAKEN IF THERE:

    results/*/base/{model}/  = another study's, if it is what would be made here

OUTPUTS:

    <results>/base/{model}/  = pi_0 in Hugging Face format, and its manifest
"""


rule base:
    input:
        train=rules.data.output.train,
        select=rules.data.output.select,
        test=rules.data.output.test,
        code=code_of("base"),
    output:
        weights="<results>/base/{model}/model.safetensors",
        config="<results>/base/{model}/config.json",
        tokenizer="<results>/base/{model}/tokenizer.json",
        manifest="<results>/base/{model}/manifest.json",
    log:
        "<logs>/base/{model}.log",
    threads: 1
    resources:
        gpu=asked("base", "gpus"),
        gpu_model=gpu_model("base"),
        mem_mb=asked("base", "mem_mb", 2),
        runtime=asked("base", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("base"),
        data=subpath(input.train, parent=True),
        out=subpath(output.weights, parent=True),
        scratch=f"{SCRATCH}/base/{{model}}",
    message:
        "Make the base model {wildcards.model}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu} --scratch {params.scratch} --"
        " python -m geosd.steps.base --study {params.study} --params params.yaml"
        " --model {wildcards.model} --data {params.data}"
        " --out {params.out} --scratch {params.scratch}"
        " --others results/*/base/{wildcards.model} > {log} 2>&1"
