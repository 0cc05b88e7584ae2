"""
Look at the states that pi_0 visits, and at each checkpoint there.

    results/states/{model}-{digest}/states.csv    = entropy, overlap and gradient norms at each position
    results/states/{model}-{digest}/states.jsonl  = the rollouts, their most uncertain positions
    <study>/alignment/{model}/{variant}/{seed}/alignment.csv  = mass on the teacher's ranks
    Next to each of them a manifest: code, machine, time, hashes.
"""


rule states:
    input:
        base=of_base_model("base"),
        problems=FOLDERS.train_problems,
        pool=of_base_model("pool", "pool.jsonl"),
    output:
        table="results/states/{model}-{digest}/states.csv",
        rollouts="results/states/{model}-{digest}/states.jsonl",
        manifest="results/states/{model}-{digest}/manifest.json",
    log:
        "<logs>/states/{model}-{digest}.log",
    priority: 2  # alignment waits for it, and weights for alignment
    threads: share_of_cores("states")
    resources:
        **resources_of("states"),
        study=STUDY.name,
    params:
        code=code_of_model("states"),
        base=subpath(input.base, parent=True),
        out=subpath(output.table, parent=True),
        scratch="scratch/states/{model}-{digest}",
    message:
        "Look at the states that {wildcards.model} visits"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd states --study {resources.study:q}"
        " --model {wildcards.model:q} --base {params.base:q} --problems {input.problems:q}"
        " --pool {input.pool:q} --out {params.out:q} --scratch {params.scratch:q} > {log:q} 2>&1"


rule alignment:
    input:
        base=of_base_model("base"),
        checkpoint=student,
        states=of_base_model("states", "states.jsonl"),
    output:
        table="<study>/alignment/{model}/{variant}/{seed}/alignment.csv",
        manifest="<study>/alignment/{model}/{variant}/{seed}/manifest.json",
    log:
        "<logs>/alignment/{model}/{variant}/{seed}.log",
    priority: 2  # as evaluate
    resources:
        **resources_of("alignment"),
    params:
        code=code_of("alignment"),
        study=STUDY.name,
        settings=settings_of("alignment"),
        base=subpath(input.base, parent=True),
        checkpoint=subpath(input.checkpoint, parent=True),
        out=subpath(output.table, parent=True),
        scratch=f"scratch/alignment/{STUDY.name}/{{model}}/{{variant}}/{{seed}}",
    message:
        "Follow {wildcards.variant} of {wildcards.model}, seed {wildcards.seed}, over its checkpoints"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd alignment --study {params.study:q}"
        " --model {wildcards.model:q} --variant {wildcards.variant:q} --seed {wildcards.seed:q}"
        " --base {params.base:q} --checkpoint {params.checkpoint:q} --states {input.states:q}"
        " --out {params.out:q} --scratch {params.scratch:q} > {log:q} 2>&1"
