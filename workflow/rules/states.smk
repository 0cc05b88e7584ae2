"""
Look at the states that pi_0 visits, and at each checkpoint there.

REQUIRED INPUTS:

    <results>/base/{model}/
    <results>/pool/{model}/pool.jsonl
    <results>/data/train.jsonl
    <results>/train/{model}/{variant}/{seed}/  = with snapshots/ where training.snapshots lists steps

OUTPUTS:

    <results>/states/{model}/states.csv    = entropy, overlap and gradient norms at each position
    <results>/states/{model}/states.jsonl  = the rollouts, their most uncertain positions
    <results>/alignment/{model}/{variant}/{seed}/alignment.csv  = mass on the teacher's ranks
    <results>/analyse/drift_over_steps.csv = distance of each run from its base model, step by step
"""


rule states:
    input:
        base=rules.base.output.weights,
        problems=rules.data.output.train,
        pool=rules.pool.output.pool,
        code=code_of("states", SOURCE),
    output:
        table="<results>/states/{model}/states.csv",
        rollouts="<results>/states/{model}/states.jsonl",
    log:
        "<logs>/states/{model}.log",
    threads: 1
    resources:
        gpu=asked("states", "gpus"),
        gpu_model=gpu_model("states"),
        mem_mb=asked("states", "mem_mb", 2),
        runtime=asked("states", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("states"),
        base=subpath(input.base, parent=True),
        out=subpath(output.table, parent=True),
    message:
        "Look at the states that {wildcards.model} visits"
    shell:
        "python -m geosd.steps.states --study {params.study} --params params.yaml"
        " --model {wildcards.model} --base {params.base} --problems {input.problems}"
        " --pool {input.pool} --out {params.out} > {log} 2>&1"


rule alignment:
    input:
        base=rules.base.output.weights,
        checkpoint=rules.train.output.weights,
        states=rules.states.output.rollouts,
        code=code_of("alignment"),
    output:
        "<results>/alignment/{model}/{variant}/{seed}/alignment.csv",
    log:
        "<logs>/alignment/{model}/{variant}/{seed}.log",
    threads: 1
    resources:
        gpu=asked("alignment", "gpus"),
        gpu_model=gpu_model("alignment"),
        mem_mb=asked("alignment", "mem_mb", 2),
        runtime=asked("alignment", "minutes", 2),
    params:
        study=STUDY.name,
        settings=settings_of("alignment"),
        base=subpath(input.base, parent=True),
        checkpoint=subpath(input.checkpoint, parent=True),
        out=subpath(output[0], parent=True),
    message:
        "Follow {wildcards.variant} of {wildcards.model}, seed {wildcards.seed}, over its checkpoints"
    shell:
        "python -m geosd.steps.alignment --study {params.study} --params params.yaml"
        " --model {wildcards.model} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --base {params.base} --checkpoint {params.checkpoint} --states {input.states}"
        " --out {params.out} > {log} 2>&1"


rule drift_over_steps:
    input:
        steps=collect(
            rules.train.output.steps,
            model=STUDY.models,
            variant=settings("drift_over_steps", STUDY)["methods"],
            seed=STUDY.seeds,
        ),
        code=code_of("drift_over_steps"),
    output:
        drift="<results>/analyse/drift_over_steps.csv",
    log:
        "<logs>/drift_over_steps.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        study=STUDY.name,
        settings=settings_of("drift_over_steps"),
        results=subpath(output.drift, ancestor=2),
        out=subpath(output.drift, parent=True),
    message:
        "Collect the drift of every run over its steps"
    shell:
        "python -m geosd.steps.drift_over_steps --study {params.study} --params params.yaml"
        " --results {params.results} --out {params.out} > {log} 2>&1"
