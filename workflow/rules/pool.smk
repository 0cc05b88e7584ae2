"""
Sample pi_0 on the training problems and keep verified solutions, the teacher's privileged context.

    results/pool/{model}-{digest}/pool.jsonl    = verified solutions of each problem
    results/pool/{model}-{digest}/counts.json   = how many were drawn, verified and kept
    results/pool/{model}-{digest}/manifest.json = code, machine, time, hashes
"""

# The data set's worked solutions, where they are used, stand in its card.
GIVEN = any(STUDY.section("pool", model)["solutions"] != "rollouts" for model in STUDY.models)


rule pool:
    input:
        base=of_base_model("base"),
        problems=FOLDERS.train_problems,
        card=f"{FOLDERS.data}/card.json" if GIVEN else [],
    output:
        pool="results/pool/{model}-{digest}/pool.jsonl",
        counts="results/pool/{model}-{digest}/counts.json",
        manifest="results/pool/{model}-{digest}/manifest.json",
    log:
        "<logs>/pool/{model}-{digest}.log",
    priority: 1  # before samples of pi_0, for which a core is left over later
    threads: share_of_cores("pool")
    resources:
        **resources_of("pool"),
        study=STUDY.name,
    params:
        code=code_of_model("pool"),
        draw=draw_of,
        base=subpath(input.base, parent=True),
        out=subpath(output.pool, parent=True),
        scratch="scratch/pool/{model}-{digest}",
    message:
        "Collect verified solutions of {wildcards.model}, draw {params.draw}"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd pool --study {resources.study:q}"
        " --model {wildcards.model:q} --draw {params.draw:q} --base {params.base:q}"
        " --problems {input.problems:q} --out {params.out:q}"
        " --scratch {params.scratch:q} > {log:q} 2>&1"
