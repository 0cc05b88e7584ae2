"""
Show the tables and the verdicts in the report, which shows pictures and pages but no CSV.

REQUIRED INPUTS:

    <figures>/{table_*,claims}.md

OUTPUTS:

    <results>/pages/{page}.html     = the same as a page
    <figures>/configuration.yaml    = the study as it was run, all overlays laid
"""

CATEGORIES = {"table": "Tables", "figure": "Figures", "claims": "Claims"}
PAGES = [shown for shown in STUDY.shows if not shown.startswith("figure_")]


rule page:
    input:
        table="<figures>/{page}.md",
        script="workflow/scripts/page.py",
    output:
        report(
            "<results>/pages/{page}.html",
            caption="../report/page.rst",
            category=lambda wildcards: CATEGORIES[wildcards.page.partition("_")[0]],
            labels={"table": "{page}"},
        ),
    log:
        "<logs>/page/{page}.log",
    wildcard_constraints:
        page="|".join(PAGES),
    localrule: True
    message:
        "Make {wildcards.page} a page of the report"
    shell:
        "python {input.script} {input.table} {output} > {log} 2>&1"


rule configuration:
    output:
        report(
            "<figures>/configuration.yaml",
            caption="../report/configuration.rst",
            category="Configuration",
        ),
    log:
        "<logs>/configuration.log",
    localrule: True
    params:
        study=STUDY.name,
        settings=settings_of("configuration"),
    message:
        "Write the configuration of study {params.study}"
    shell:
        "python -m geosd.config show --study {params.study} --params params.yaml"
        " --out {output} > {log} 2>&1"


rule tables:
    """All tables of the study"""
    input:
        [getattr(rules, shown).output for shown in STUDY.shows if shown.startswith("table_")],
    localrule: True


rule figures:
    """All figures of the study"""
    input:
        [getattr(rules, shown).output for shown in STUDY.shows if shown.startswith("figure_")],
    localrule: True
