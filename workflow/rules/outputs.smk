"""
Write the tables and draw the figures, one rule for each declaration table_*.yaml and figure_*.yaml of
geosd.reporting. A rule reads what the arguments of the output's function name.

    <figures>/table_*.{csv,md,tex}
    <figures>/figure_*.{pdf,svg,png}
"""

TIDY = FOLDERS.tidy_files()

for name, spec in specs.output_specs().items():
    kind = specs.output_kind(name)
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
            tidy=[TIDY[tidy] for tidy in spec.reads],
        output:
            **files,
        log:
            f"<logs>/{name}.log",
        resources:
            mem_mb=scale(2000),
            runtime=scale(10),
        params:
            code=code_of("render", modules=specs.output_spec_modules(name)),
            name=name,
            study=STUDY.name,
            settings=settings_of(name),
            title=spec.title,
            caption=specs.output_spec_caption(name, STUDY.models),
            out=subpath(output[0], parent=True),
        message:
            f"{kind.label}: {spec.title}"
        shell:
            "python -m geosd render {params.name:q} --study {params.study:q}"
            " --tidy {input.tidy:q} --out {params.out:q} > {log:q} 2>&1"
