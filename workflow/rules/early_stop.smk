"""
Take a run that is the beginning of a longer one from that one, at the step at which it ends.

    results/train/{model}/{recipe}/{seed}/stopped_{steps}/  = what training it would have made
"""


rule early_stop:
    input:
        longer=rules.train.output.weights,
    output:
        weights="results/train/{model}/{recipe}/{seed}/stopped_{steps}/model.safetensors",
        config="results/train/{model}/{recipe}/{seed}/stopped_{steps}/config.json",
        tokenizer="results/train/{model}/{recipe}/{seed}/stopped_{steps}/tokenizer.json",
        log="results/train/{model}/{recipe}/{seed}/stopped_{steps}/steps.csv",
        settings="results/train/{model}/{recipe}/{seed}/stopped_{steps}/settings.json",
        manifest="results/train/{model}/{recipe}/{seed}/stopped_{steps}/manifest.json",
    log:
        "<logs>/early_stop/{model}/{recipe}/{seed}_{steps}.log",
    priority: 2  # as the evaluation that waits for it
    resources:
        study=STUDY.name,
        mem_mb=scale(2000),
        runtime=scale(30),
        variant=variant_of("train", "{model}/{recipe}/{seed}/stopped_{steps}"),
    params:
        code=code_of("early_stop"),
        longer=subpath(input.longer, parent=True),
        out=subpath(output.weights, parent=True),
    message:
        "Take {wildcards.model} with {resources.variant}, seed {wildcards.seed}, from a longer run"
    shell:
        "python -m geosd early-stop --study {resources.study:q}"
        " --model {wildcards.model:q} --variant {resources.variant:q} --seed {wildcards.seed:q}"
        " --longer {params.longer:q} --out {params.out:q} > {log:q} 2>&1"
