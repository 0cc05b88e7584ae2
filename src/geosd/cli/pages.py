"""The pages that a study, and all shipped studies, are read from."""

import importlib.metadata
from pathlib import Path

import pandas as pd

from geosd.cli.dvc_metrics import METRICS, write_metrics
from geosd.cli.run_manifests import manifests_of_index, summary_of_run_manifests
from geosd.cli.snakemake_runs import snakemake, write_snakemake_report
from geosd.config import load, resolve_study
from geosd.config import settings as settings_of
from geosd.files import write_text
from geosd.provenance.proof import prove
from geosd.reporting.artifact_page import artifact_markdown
from geosd.reporting.environment_page import environment_markdown
from geosd.reporting.method_style import method_style
from geosd.reporting.shipping import CLAIMS, MANIFEST, read_shipped, shipped_source_tables
from geosd.reporting.specs import output_specs
from geosd.reporting.study_page import (
    ENVIRONMENT,
    StudyPage,
    caption_markdown,
    study_markdown,
    study_pages,
)
from geosd.scores.score_table import score_table_by_variant
from geosd.scores.tidy import read_tidy

APPENDIX = {
    "Configuration: every value behind these results": "pages/configuration.html",
    "Environment: code, machines and packages": "pages/environment.html",
    "Snakemake's report: rules, provenance of each result, runtimes": "provenance.html",
}
"""All pages but the front page, by what each shows."""


def environment_page_program(study: str, out: Path, runs: Path | None = None) -> None:
    """Write the page of the code, machines and packages behind a study's numbers.

    Args:
        runs: The study's index of runs, whose folders hold the manifests; none where no run enters
            what the study shows.

    Raises:
        DamagedManifestError: Names the manifest that is not whole.
    """
    made = manifests_of_index(runs)
    packages = importlib.metadata.distributions()
    installed = {package.metadata["Name"]: package.version for package in packages}
    write_text(out / ENVIRONMENT, environment_markdown(made, installed, study))


def front_page_program(
    study: str,
    figures: Path,
    out: Path,
    tidy: tuple[Path, ...] = (),
    params: Path = Path("params.yaml"),
    runs: Path | None = None,
) -> None:
    """Write the front page of a study.

    Args:
        figures: Folder of its tables, figures and claims.
        out: The page; `pages/` and Snakemake's report lie in the same folder.
        tidy: The tidy files behind its outputs, each known by its own name.
        runs: Its index of runs; none where no run enters what it shows.
    """
    settings = settings_of("front_page", resolve_study(load(params), study))
    if CLAIMS in settings["outputs"]:
        prove([figures / "claims.csv"])
    captions = {}
    for name in settings["outputs"]:
        if name in output_specs():
            sources = [path for path in tidy if path.stem in output_specs()[name].reads]
            captions[name] = caption_markdown(name, settings["models"], sources, out.parent)
    methods = ", ".join(method_style(name).label for name in settings["methods"])
    models = ", ".join(settings["models"])
    seeds = ", ".join(str(seed) for seed in settings["seeds"])
    page = StudyPage(
        name=study,
        about=settings["about"],
        outputs=tuple(settings["outputs"]),
        folder=figures,
        captions=captions,
        page=out,
        claims_page=out.parent / "pages/claims.html",
        models=tuple(settings["models"]),
        made=summary_of_run_manifests(runs),
        appendix={words: out.parent / path for words, path in APPENDIX.items()},
        runs=f"{methods} on {models}, seeds {seeds}.",
    )
    write_text(out, study_markdown(page))


def results_pages_program(
    figures: Path = Path("figures"), out: Path = Path("docs/results.md")
) -> None:
    """Write the index of shipped results and a page for each study.

    Args:
        figures: Where the outputs of studies lie; those with a manifest are shipped.
        out: The index; the pages lie in the folder of its name.
    """
    pages = study_pages(_shipped(figures), out)
    for left_over in set(out.with_suffix("").glob("*.md")) - pages.keys():
        left_over.unlink()
    for page, text in pages.items():
        write_text(page, text)


def artifact_page_program(
    figures: Path = Path("figures"),
    ledger: Path = Path("figures/miniature_all/claims_all.csv"),
    out: Path = Path("ARTIFACT.md"),
) -> None:
    """Write ARTIFACT.md: each claim of the paper with its command, file and verdict.

    Args:
        figures: Where the outputs of studies lie; those with a manifest are shipped.
        ledger: That over several studies, in which each claim is judged once.
        out: The page, in the folder above `figures`.
    """
    findings = pd.read_csv(ledger, keep_default_na=False)
    studies = {folder.name: read_shipped(folder) for folder in _shipped(figures)}
    write_text(out, artifact_markdown(findings, studies, Path("figures")))


def dvc_metrics_page_program(figures: Path = Path("figures"), out: Path = METRICS) -> None:
    """Write the accuracies of shipped studies, which git keeps, for `dvc metrics show`.

    A folder for each that shows the main table.

    Args:
        figures: Where the outputs of studies lie; those with a manifest are shipped.
    """
    for folder in _shipped(figures):
        if "table_main" in read_shipped(folder).outputs:
            scores = read_tidy("scores", shipped_source_tables(folder)["scores"])
            write_metrics(out / folder.name, score_table_by_variant(scores))


def _shipped(figures: Path) -> list[Path]:
    """The folders of the shipped studies, in alphabetical order."""
    return sorted(path.parent for path in figures.glob(f"*/{MANIFEST}"))


def report_page_program(study: str = "quick") -> None:
    """Write the page of a study or family, and Snakemake's report of how it was made."""
    snakemake(study, "--", "front_page")
    print(f"Report   results/{study}/report.html")
    write_snakemake_report(study)
