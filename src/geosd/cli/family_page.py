"""Write the front page of a family: what it shows over its studies."""

from pathlib import Path

from geosd.config import load, resolve_family
from geosd.files import write_text
from geosd.reporting.study_page import ALL_CLAIMS, StudyPage, caption_markdown, study_markdown


def main(family: str, figures: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the front page of a family.

    Args:
        figures: Folder of its tables, figures and ledgers.
        out: The page.
    """
    resolved = resolve_family(load(params), family)
    captions = {}
    for name in resolved.outputs:
        captions[name] = caption_markdown(name, (), resolved.files_read_by(name), out.parent)
    page = StudyPage(
        name=family,
        about=resolved.overlay.about,
        outputs=resolved.outputs,
        folder=figures,
        captions=captions,
        page=out,
        claims_page=figures / f"{ALL_CLAIMS}.md",
        models=(),
        appendix={
            f"Study {name}": Path("results", name, "report.html") for name in resolved.studies
        },
        runs=f"A family of the studies {', '.join(resolved.studies)}.",
    )
    write_text(out, study_markdown(page))
