"""
Turn samples and step logs into tidy tables of numbers.

REQUIRED INPUTS:

    <results>/evaluate/*/*/*/samples.jsonl
    <results>/train/*/*/*/steps.csv

OUTPUTS:

    <results>/analyse/scores.csv     = one row for each model, variant, seed, benchmark and metric
    <results>/analyse/drift.csv      = distance of each run from its base model
    <results>/analyse/consensus.csv  = what the OOD samples of each run agree on
    <results>/analyse/metrics.json   = accuracies of each variant, for `dvc metrics diff`
    <results>/analyse/manifest.json  = code, machine, time, hashes
"""

METHODS_AND_SEEDS = dict(model=STUDY.models, seed=STUDY.seeds)


rule analyse:
    input:
        samples=collect(rules.evaluate.output.samples, variant=TRAINED, **METHODS_AND_SEEDS),
        base=collect(rules.evaluate_pi_0.output.samples, **METHODS_AND_SEEDS) if UNTRAINED else [],
        steps=collect(rules.train.output.steps, variant=TRAINED, **METHODS_AND_SEEDS),
        code=code_of("analyse"),
    output:
        scores="<results>/analyse/scores.csv",
        drift="<results>/analyse/drift.csv",
        consensus="<results>/analyse/consensus.csv",
        metrics="<results>/analyse/metrics.json",
        manifest="<results>/analyse/manifest.json",
    log:
        "<logs>/analyse.log",
    threads: 1
    resources:
        mem_mb=scale(2000),
        runtime=scale(30),
    params:
        study=STUDY.name,
        settings=settings_of("analyse"),
        results=subpath(output.scores, ancestor=2),
        out=subpath(output.scores, parent=True),
    message:
        "Score the samples of study {params.study}"
    shell:
        "python -m geosd.steps.analyse --study {params.study} --params params.yaml"
        " --results {params.results} --out {params.out} > {log} 2>&1"
