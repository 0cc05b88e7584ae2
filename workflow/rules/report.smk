"""
Make pages of what the report cannot show by itself: tables, verdicts, configuration, environment.

    <figures>/configuration.yaml    = the study as it was run, all overlays laid
    <figures>/environment.md        = code, machines and packages behind the numbers
    <study>/pages/{page}.html     = each of these as a page
    <study>/report.html           = the front page: what the study is and shows, pictures in it
    <study>/report.md             = the same, before its pictures are put in
"""

# What the report's first page says of the study; Snakemake shows its templates nothing else.
config["report"] = {
    "about": STUDY.overlay.about,
    "grid": list(STUDY.overlay.grid),
    "methods": list(STUDY.overlay.methods),
    "models": list(STUDY.models),
    "seeds": list(STUDY.seeds),
    "outputs": list(STUDY.outputs),
}
PAGES = [name for name in STUDY.outputs if not name.startswith("figure_")]
PAGES += ["configuration", "environment"]
PAGE, STYLE = "workflow/scripts/page.py", "workflow/report/page.css"
PAGE_CODE = code.code_digest({PAGE: code.code_meaning(Path(PAGE))})
TITLES = {name: spec.title for name, spec in specs.output_specs().items()} | {
    "claims": "the paper's claims",
    "configuration": "the study as it was run",
    "environment": "code, machines and packages",
}

# A study may show what no run enters; its environment must not ask for runs either.
SCORED = any(set(rules.analyse.output) & set(getattr(rules, s).input) for s in STUDY.outputs)
RUN_FOLDERS = [getattr(row, step) for step in ("base", "train", "evaluate") for row in ROWS]
MANIFESTS = [f"{folder}/manifest.json" for folder in dict.fromkeys(RUN_FOLDERS) if folder]
TIDY_READ = FOLDERS.tidy_shown()


rule page:
    input:
        source=lambda wildcards: "<figures>/{page}.".format(**wildcards)
        + ("yaml" if wildcards.page == "configuration" else "md"),
        style=STYLE,
    output:
        report(
            "<study>/pages/{page}.html",
            caption="../report/page.rst",
            category=lambda wildcards: (
                "Tables" if wildcards.page.startswith("table_") else wildcards.page.capitalize()
            ),
            labels=lambda wildcards: {"title": TITLES[wildcards.page]},
        ),
    log:
        "<logs>/page/{page}.log",
    wildcard_constraints:
        page="|".join(PAGES),
    localrule: True
    params:
        script=PAGE,
        code=PAGE_CODE,
        caption=lambda wildcards: (
            specs.output_spec_caption(wildcards.page, STUDY.models)
            if wildcards.page in specs.output_specs()
            else ""
        ),
    message:
        "Make {wildcards.page} a page of the report"
    shell:
        "python {params.script:q} {input.source:q} {output:q} ../report.html > {log:q} 2>&1"


rule front_page:
    input:
        outputs=[getattr(rules, name).output for name in STUDY.outputs],
        configuration="<figures>/configuration.yaml",
        runs=rules.runs.output.index if SCORED else [],
        style=STYLE,
        tidy=[TIDY[name] for name in TIDY_READ],
        pages=collect(
            rules.page.output,
            page=[*({"claims"} & {*STUDY.outputs}), "configuration", "environment"],
        ),
    output:
        markdown="<study>/report.md",
        page="<study>/report.html",
    log:
        "<logs>/front_page.log",
    localrule: True
    params:
        code=code_of("front_page"),
        script=PAGE,
        script_code=PAGE_CODE,
        study=STUDY.name,
        settings=settings_of("front_page"),
        figures=subpath(input.configuration, parent=True),
        runs=lambda wildcards, input: f"--runs {input.runs} " if input.runs else "",
    message:
        f"Write the front page of study {STUDY.name}"
    shell:
        "python -m geosd front-page --study {params.study:q} {params.runs}"
        "--figures {params.figures:q} --tidy {input.tidy:q} --out {output.markdown:q} > {log:q} 2>&1"
        " && python {params.script:q} {output.markdown:q} {output.page:q} >> {log:q} 2>&1"


rule configuration:
    input:
        # Written after the runs: git may keep one of earlier runs, which looks as new as any file.
        rules.runs.output.index if SCORED else [],
    output:
        "<figures>/configuration.yaml",
    log:
        "<logs>/configuration.log",
    localrule: True
    params:
        study=STUDY.name,
        settings=settings_of("configuration"),
    message:
        f"Write the configuration of study {STUDY.name}"
    shell:
        "python -m geosd.config show --study {params.study:q} --out {output:q} > {log:q} 2>&1"


rule environment:
    input:
        runs=rules.runs.output.index if SCORED else [],
        manifests=MANIFESTS if SCORED else [],
    output:
        page="<figures>/environment.md",
    log:
        "<logs>/environment.log",
    localrule: True
    params:
        code=code_of("environment"),
        study=STUDY.name,
        runs=lambda wildcards, input: f"--runs {input.runs} " if input.runs else "",
        out=subpath(output.page, parent=True),
    message:
        "Write which code, machines and packages made the numbers"
    shell:
        "python -m geosd environment --study {params.study:q} {params.runs}"
        "--out {params.out:q} > {log:q} 2>&1"


rule tables:
    """All tables of the study"""
    input:
        [getattr(rules, name).output for name in STUDY.outputs if name.startswith("table_")],
    localrule: True


rule ship:
    """What git keeps of the study: its outputs, and all that makes them again without a run"""
    input:
        outputs=[getattr(rules, name).output for name in STUDY.outputs],
        configuration=rules.configuration.output,
        runs=rules.runs.output.index if SCORED else [],
        tidy=[TIDY[name] for name in TIDY_READ],
    log:
        "<logs>/ship.log",
    localrule: True
    params:
        study=STUDY.name,
        runs=lambda wildcards, input: f"--runs {input.runs} " if input.runs else "",
    message:
        f"Ship the outputs of study {STUDY.name}"
    shell:
        "python -m geosd ship --study {params.study:q} {params.runs}"
        "--tidy {input.tidy:q} > {log:q} 2>&1"


rule figures:
    """All figures of the study"""
    input:
        [getattr(rules, name).output for name in STUDY.outputs if name.startswith("figure_")],
    localrule: True


EVERYTHING = [
    *[getattr(rules, name).output for name in STUDY.outputs],
    *collect(rules.page.output, page=PAGES),
    rules.configuration.output,
    rules.front_page.output,
    *rules.removed_weights.input,
]
