"""
Look into the responses of a study's methods, token by token: a page for people, by `make samples`.

    <study>/token_probabilities/{model}/token_probabilities.jsonl = a row a response, see
        geosd.scores.scored_responses
    <study>/samples.html = responses of two methods to a problem, side by side
    Next to the first a manifest: code, machine, time, hashes.

No other rule reads these, and `make run` does not make them: a study whose weights are gone stays whole.
"""


rule token_probabilities:
    input:
        checkpoints=scored_checkpoints,
        problems=FOLDERS.train_problems,
        pool=pool_of_scored,
    output:
        table="<study>/token_probabilities/{model}/token_probabilities.jsonl",
        manifest="<study>/token_probabilities/{model}/manifest.json",
    log:
        "<logs>/token_probabilities/{model}.log",
    threads: share_of_cores("states")
    resources:
        **resources_of("states"),
    params:
        code=code_of_scored,
        study=STUDY.name,
        settings=settings_of("token_probabilities"),
        checkpoints=lambda wildcards, input: [str(Path(file).parent) for file in input.checkpoints],
        out=subpath(output.table, parent=True),
        scratch=f"scratch/token_probabilities/{STUDY.name}/{{model}}",
    message:
        "Score responses of {wildcards.model} token by token"
    shell:
        "exec python workflow/scripts/launch.py --gpus {resources.gpu:q}"
        " --scratch {params.scratch:q} --"
        " python -m geosd score-tokens --study {params.study:q}"
        " --model {wildcards.model:q} --checkpoints {params.checkpoints:q}"
        " --problems {input.problems:q} --pool {input.pool:q}"
        " --out {params.out:q} --scratch {params.scratch:q} > {log:q} 2>&1"


rule samples_page:
    input:
        tables=collect(rules.token_probabilities.output.table, model=STUDY.models),
    output:
        page="<study>/samples.html",
    log:
        "<logs>/samples_page.log",
    localrule: True
    params:
        code=code_of("samples_page"),
        study=STUDY.name,
    message:
        f"Write the page of responses of study {STUDY.name}"
    shell:
        "python -m geosd samples-page --study {params.study:q} --tables {input.tables:q}"
        " --out {output.page:q} > {log:q} 2>&1"
