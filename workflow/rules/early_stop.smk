"""
Take a run that is the beginning of a longer one from that one, at the step at which it ends.

REQUIRED INPUTS:

    <results>/train/{model}/{longer variant}/{seed}/  = with the weights after that step

OUTPUTS:

    <results>/train/{model}/{variant}/{seed}/  = what training it would have made
"""


rule early_stop:
    input:
        longer=lambda wildcards: expand(
            rules.train.output.weights,
            **{**wildcards, "variant": STUDY.early_stops[wildcards.variant]},
        )[0],
        code=code_of("early_stop"),
    output:
        weights="<results>/train/{model}/{variant}/{seed}/model.safetensors",
        config="<results>/train/{model}/{variant}/{seed}/config.json",
        tokenizer="<results>/train/{model}/{variant}/{seed}/tokenizer.json",
        steps="<results>/train/{model}/{variant}/{seed}/steps.csv",
        settings="<results>/train/{model}/{variant}/{seed}/settings.json",
        manifest="<results>/train/{model}/{variant}/{seed}/manifest.json",
    log:
        "<logs>/early_stop/{model}/{variant}/{seed}.log",
    wildcard_constraints:
        variant="|".join(STUDY.early_stops) or "none",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(30),
    params:
        study=STUDY.name,
        settings=settings_of("early_stop"),
        longer=subpath(input.longer, parent=True),
        out=subpath(output.weights, parent=True),
    message:
        "Take {wildcards.model} with {wildcards.variant}, seed {wildcards.seed}, from a longer run"
    shell:
        "python -m geosd.steps.early_stop --study {params.study} --params params.yaml"
        " --model {wildcards.model} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --longer {params.longer} --out {params.out} > {log} 2>&1"
