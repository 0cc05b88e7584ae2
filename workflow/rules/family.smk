"""
A family: tables, figures and ledgers over several studies. It runs nothing, and reads the tidy files
of its studies: those of results/, or of a study that has none here the shipped ones.

    <figures>/table_*.{csv,md,tex}
    <figures>/figure_*.{pdf,svg,png}
    <figures>/claims_*.{csv,md,pdf,svg,png}
    <study>/report.{md,html}  = what the family shows on one page
"""

from geosd.config import resolve_family
from geosd.reporting import specs

FAMILY = resolve_family(PARAMS, config["study"])
PAGE, STYLE = "workflow/scripts/page.py", "workflow/report/page.css"
PAGE_CODE = code.code_digest({PAGE: code.code_meaning(Path(PAGE))})

# What the report's first page says; Snakemake shows its templates nothing else.
config["report"] = {
    "about": FAMILY.overlay.about,
    "studies": list(FAMILY.studies),
    "outputs": list(FAMILY.outputs),
}

for name in FAMILY.outputs:
    spec, kind = specs.output_spec_declarations()[name], specs.output_kind(name)
    files = {ending: f"<figures>/{name}.{ending}" for ending in kind.extensions}
    if "svg" in files:
        files["svg"] = report(
            files["svg"],
            caption="../report/output.rst",
            category="Figures",
            labels={"title": spec.title},
        )

    rule:
        name:
            name
        input:
            tidy=[str(file) for file in FAMILY.files_read_by(name)],
        output:
            **files,
        log:
            f"<logs>/{name}.log",
        resources:
            mem_mb=scale(2000),
            runtime=scale(10),
        params:
            code=code_of("render_family", modules=specs.output_spec_modules(name)),
            name=name,
            family=FAMILY.name,
            settings=FAMILY.settings(name),
            title=spec.title,
            caption=specs.output_spec_caption(name, ()),
            out=subpath(output[0], parent=True),
        message:
            f"{kind.label}: {spec.title}"
        shell:
            "python -m geosd render-family {params.name:q} --family {params.family:q}"
            " --tidy {input.tidy:q} --out {params.out:q} > {log:q} 2>&1"


rule front_page:
    input:
        outputs=[getattr(rules, name).output for name in FAMILY.outputs],
        style=STYLE,
    output:
        markdown="<study>/report.md",
        page="<study>/report.html",
    log:
        "<logs>/front_page.log",
    localrule: True
    params:
        code=code_of("family_page"),
        script=PAGE,
        script_code=PAGE_CODE,
        family=FAMILY.name,
        about=FAMILY.overlay.about,
        figures=f"figures/{FAMILY.name}",
    message:
        f"Write the front page of family {FAMILY.name}"
    shell:
        "python -m geosd family-page --family {params.family:q}"
        " --figures {params.figures:q} --out {output.markdown:q} > {log:q} 2>&1"
        " && python {params.script:q} {output.markdown:q} {output.page:q} >> {log:q} 2>&1"


rule tables:
    """All tables and ledgers of the family"""
    input:
        [getattr(rules, n).output for n in FAMILY.outputs if not n.startswith("figure_")],
    localrule: True


rule figures:
    """All figures of the family"""
    input:
        [getattr(rules, name).output for name in FAMILY.outputs if name.startswith("figure_")],
    localrule: True


rule ship:
    """What git keeps of the family: its outputs, drawn of what is shipped of its studies"""
    log:
        "<logs>/ship.log",
    localrule: True
    params:
        family=FAMILY.name,
    message:
        f"Ship the outputs of family {FAMILY.name}"
    shell:
        "python -m geosd ship-family --family {params.family:q} > {log:q} 2>&1"


onstart:
    shell("python workflow/slurm/orphaned_jobs.py")
    keep_configuration()


EVERYTHING = [
    *[getattr(rules, name).output for name in FAMILY.outputs],
    rules.front_page.output,
]
