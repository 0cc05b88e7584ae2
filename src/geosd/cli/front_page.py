"""Write the front page of a study, as Markdown with links to its files."""

from __future__ import annotations

from pathlib import Path

from geosd.cli import begin
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.files import write_text
from geosd.provenance.proof import prove
from geosd.reporting.specs import output_specs
from geosd.reporting.study_page import CLAIMS, StudyPage, caption_markdown, front_page_markdown

APPENDIX = {
    "Configuration: every value behind these results": "pages/configuration.html",
    "Environment: code, machines and packages": "pages/environment.html",
    "Snakemake's report: rules, provenance of each result, runtimes": "provenance.html",
}
"""Pages beside the front page, by what each shows."""


def main(
    study: str,
    figures: Path,
    out: Path,
    tidy: tuple[Path, ...] = (),
    params: Path = Path("params.yaml"),
) -> None:
    """Write the front page of a study.

    Args:
        study: Name of the study.
        figures: Folder of its tables, figures and claims.
        out: The page; `pages/` and Snakemake's report lie in the same folder.
        tidy: The tidy files behind its outputs, each known by its own name.
        params: The configuration.
    """
    settings = settings_of("front_page", resolve(load(params), study))
    if CLAIMS in settings["outputs"]:
        prove([figures / "claims.csv"])
    shown = [name for name in settings["outputs"] if name in output_specs()]
    sources = {
        name: [path for path in tidy if path.stem in output_specs()[name].reads] for name in shown
    }
    page = StudyPage(
        name=study,
        about=settings["about"],
        outputs=tuple(settings["outputs"]),
        folder=figures,
        captions={
            name: caption_markdown(name, settings["models"], files, out.parent)
            for name, files in sources.items()
        },
        page=out,
        claims_page=out.parent / "pages/claims.html",
    )
    pages = {words: out.parent / path for words, path in APPENDIX.items()}
    runs = (settings[key] for key in ("models", "methods", "seeds"))
    write_text(out, front_page_markdown(page, *runs, pages))


if __name__ == "__main__":
    begin(main)
