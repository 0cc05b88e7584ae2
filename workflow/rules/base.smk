"""
Make each draw of each base model pi_0; nothing here depends on a method.

    results/base/{model}-{digest}/   = pi_0 in Hugging Face format, and its manifest
"""


rule base:
    input:
        checkpoint=checkpoint_files,
    output:
        weights="results/base/{model}-{digest}/model.safetensors",
        config="results/base/{model}-{digest}/config.json",
        tokenizer="results/base/{model}-{digest}/tokenizer.json",
        manifest="results/base/{model}-{digest}/manifest.json",
    log:
        "<logs>/base/{model}-{digest}.log",
    resources:
        **resources_of("base"),
        study=STUDY.name,
    params:
        code=code_of("base"),
        draw=draw_of,
        out=subpath(output.weights, parent=True),
        scratch="scratch/base/{model}-{digest}",
    message:
        "Make the base model {wildcards.model}, draw {params.draw}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd base --study {resources.study:q}"
        " --model {wildcards.model:q} --draw {params.draw:q} --out {params.out:q}"
        " --scratch {params.scratch:q} > {log:q} 2>&1"
