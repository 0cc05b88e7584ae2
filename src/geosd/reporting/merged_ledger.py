"""The files of a ledger over several studies: its table, its page and its forest plot."""

from collections.abc import Sequence
from pathlib import Path

from geosd.claims.finding import Finding
from geosd.reporting import figures
from geosd.reporting.claims_forest import plot_forest
from geosd.reporting.claims_page import claims_page_frame, write_claims_page


def save(findings: Sequence[Finding], folder: Path, name: str) -> list[Path]:
    """Write findings as a table, a page and a forest plot; return the files."""
    written = write_claims_page(findings, None, folder, name=name)
    forest = plot_forest(claims_page_frame(findings))
    return [*written, *figures.save(forest, folder, name)]
