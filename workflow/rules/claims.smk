"""
Judge each claim of the paper.

    <figures>/claims.{csv,md}  = each claim: agrees, opposite, too small to tell or not exercised
    <figures>/claims.{pdf,svg,png} = a forest plot of them
    <figures>/claims.manifest.json  = code, machine, time, hashes
"""


rule claims:
    input:
        tidy=[TIDY[name] for name in FOLDERS.claims_read()],
    output:
        csv="<figures>/claims.csv",
        md="<figures>/claims.md",
        forest=[f"<figures>/claims.{ending}" for ending in ("pdf", "svg", "png")],
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
    message:
        "Judge the claims of the paper"
    shell:
        "python -m geosd claims --study {params.study:q} --tidy {input.tidy:q}"
        " --out {params.out:q} > {log:q} 2>&1"
