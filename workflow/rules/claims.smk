"""
Judge each claim of the paper.

    <figures>/claims.{csv,md}  = each claim: agrees, opposite, too small to tell or not exercised
    <figures>/claims.manifest.json  = code, machine, time, hashes
"""

# What the study's figures read, its claims read too.
MECHANISM = "figure_mechanism" in STUDY.outputs
STATES = MECHANISM or "figure_density" in STUDY.outputs
ALIGNED = settings("figure_alignment", STUDY) if "figure_alignment" in STUDY.outputs else {}


rule claims:
    input:
        scores=rules.analyse.output.scores,
        drift=rules.analyse.output.drift,
        consensus=rules.analyse.output.consensus,
        drift_over_steps=rules.drift_over_steps.output.drift if MECHANISM else [],
        states=TIDY["states"] if STATES else [],
        alignment=collect(
            rules.alignment.output.table,
            model=STUDY.models,
            variant=ALIGNED.get("methods", []),
            seed=STUDY.seeds,
        ),
    output:
        csv="<figures>/claims.csv",
        md="<figures>/claims.md",
        manifest="<figures>/claims.manifest.json",
    log:
        "<logs>/claims.log",
    resources:
        mem_mb=scale(2000),
        runtime=scale(10),
    params:
        code=code_of("claims"),
        study=STUDY.name,
        settings=settings_of("claims"),
        out=subpath(output.csv, parent=True),
        more=lambda wildcards, input: "".join(
            f" --{name.replace('_', '-')} {input[name]}"
            for name in ("drift_over_steps", "states", "alignment")
            if input[name]
        ),
    message:
        "Judge the claims of the paper"
    shell:
        "python -m geosd claims --study {params.study:q}"
        " --scores {input.scores:q} --drift {input.drift:q} --consensus {input.consensus:q}"
        "{params.more} --out {params.out:q} > {log:q} 2>&1"
