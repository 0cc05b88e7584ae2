"""Write the page of all results that the repository ships, docs/results.md."""

from __future__ import annotations

from pathlib import Path

from geosd.cli import begin
from geosd.files import write_text
from geosd.reporting.shipping import MANIFEST
from geosd.reporting.study_page import results_markdown


def main(figures: Path = Path("figures"), out: Path = Path("docs/results.md")) -> None:
    """Write the page of shipped results, in the alphabetical order of studies.

    Args:
        figures: Where the outputs of studies lie; those with a manifest are shipped.
        out: The page.
    """
    folders = sorted(path.parent for path in figures.glob(f"*/{MANIFEST}"))
    write_text(out, results_markdown(folders, out))


if __name__ == "__main__":
    begin(main)
