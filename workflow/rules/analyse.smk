"""
Write the index of the study, and turn samples and step logs into tidy tables of numbers.

    <study>/runs.csv               = model, variant and seed of each run, and its folders
    <study>/runs.manifest.json     = code, machine, time, hashes
    <study>/runs/{model}/{variant}/{seed}/{train,evaluate}  = links to these, for people
    <study>/analyse/*.csv          = the tidy tables; docs/reference.md says what they hold
    <study>/analyse/metrics.json   = accuracies of each variant, for `dvc metrics diff`
    <study>/analyse/manifest.json  = code, machine, time, hashes
"""


rule runs:
    output:
        index="<study>/runs.csv",
        manifest="<study>/runs.manifest.json",
    log:
        "<logs>/runs.log",
    localrule: True
    params:
        code=code_of("runs"),
        study=STUDY.name,
        rows=lambda wildcards: run_folder_digest([list(vars(row).values()) for row in ROWS]),
        out=subpath(output.index, parent=True),
    message:
        f"Write which folders are the runs of study {STUDY.name}"
    shell:
        "python -m geosd runs --study {params.study:q} --out {params.out:q} > {log:q} 2>&1"


rule analyse:
    input:
        runs=rules.runs.output.index,
        samples=[f"{row.evaluate}/samples.jsonl" for row in ROWS],
        steps=[f"{row.train}/steps.csv" for row in ROWS if row.train],
        pools=sorted({f"{row.pool}/counts.json" for row in ROWS if row.pool}),
    output:
        scores="<study>/analyse/scores.csv",
        shares="<study>/analyse/shares.csv",
        drift="<study>/analyse/drift.csv",
        consensus="<study>/analyse/consensus.csv",
        habits="<study>/analyse/habits.csv",
        curves="<study>/analyse/training_curves.csv",
        drift_over_steps="<study>/analyse/drift_over_steps.csv",
        metrics="<study>/analyse/metrics.json",
        manifest="<study>/analyse/manifest.json",
    log:
        "<logs>/analyse.log",
    resources:
        mem_mb=scale(2000),
        runtime=scale(30),
    params:
        code=code_of("analyse"),
        study=STUDY.name,
        settings=settings_of("analyse"),
        out=subpath(output.scores, parent=True),
    message:
        f"Score the samples of study {STUDY.name}"
    shell:
        "python -m geosd analyse --study {params.study:q}"
        " --runs {input.runs:q} --out {params.out:q} > {log:q} 2>&1"
