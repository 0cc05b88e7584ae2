"""
Train every run, once for each seed. One rule trains them all, but for those that are the beginning
of longer runs: early_stop.smk takes these from there.

    results/train/{model}/{recipe}/{seed}/  = final weights in Hugging Face format,
        steps.csv      = the step log
        settings.json  = the settings as they were resolved
        manifest.json  = code, packages, machine, time, memory, hashes of the inputs
        snapshots/     = weights on the way, where a study wants any
"""


rule train:
    input:
        base=of_base_model("base"),
        problems=FOLDERS.train_problems,
        pool=of_base_model("pool", "pool.jsonl"),
    output:
        weights="results/train/{model}/{recipe}/{seed}/model.safetensors",
        config="results/train/{model}/{recipe}/{seed}/config.json",
        tokenizer="results/train/{model}/{recipe}/{seed}/tokenizer.json",
        steps="results/train/{model}/{recipe}/{seed}/steps.csv",
        settings="results/train/{model}/{recipe}/{seed}/settings.json",
        manifest="results/train/{model}/{recipe}/{seed}/manifest.json",
    log:
        "<logs>/train/{model}/{recipe}/{seed}.log",
    priority: 1  # before samples of pi_0, for which a core is left over later
    threads: share_of_cores("train")
    resources:
        study=STUDY.name,
        gpu=on_one_node(requested("train", "gpus")),
        gpu_model=on_one_node(gpu_model("train")),
        gpus_per_node=requested("train", "gpus_per_node"),
        nodes=requested("train", "nodes"),
        gres=on_several_nodes(gpus_of_each_node),
        mpi=on_several_nodes(lambda wildcards: "srun"),  # the job's own, in launch.py
        tasks_per_node=on_several_nodes(lambda wildcards: 2),  # room for it: one is refused
        processes=requested("train", "processes"),
        placement=requested("train", "placement"),
        trainings=1,  # as many side by side as `--resources trainings=` allows
        mem_mb=requested("train", "mem_mb", 2),
        runtime=requested("train", "minutes", 2),
        variant=variant_of("train"),
    params:
        code=code_of_model("train", variant_of("train")),
        base=subpath(input.base, parent=True),
        out=subpath(output.weights, parent=True),
        scratch="scratch/train/{model}/{recipe}/{seed}",
        snapshots=snapshots,
    message:
        "Train {wildcards.model} with {resources.variant}, seed {wildcards.seed}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpus_per_node:q}"
        " --nodes {resources.nodes:q} --processes {resources.processes:q} --scratch {params.scratch:q} --"
        " python -m geosd train --study {resources.study:q}"
        " --model {wildcards.model:q} --variant {resources.variant:q} --seed {wildcards.seed:q}"
        " --base {params.base:q} --problems {input.problems:q} --pool {input.pool:q}"
        " --out {params.out:q} --scratch {params.scratch:q} {resources.placement}"
        " {params.snapshots} > {log:q} 2>&1"
