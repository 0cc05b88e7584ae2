"""Write the table of candidates of a selection, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_selection import build
from geosd.reporting.tables import write


def main(study: str, scores: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the table of candidates.

    Args:
        study: Name of the study, whose data are for selection.
        scores: Tidy scores.
        out: Folder of the table.
        params: The configuration.
    """
    settings = settings_of("table_selection", resolve(load(params), study))
    write(build(read(scores), settings["models"], settings["candidates"]), out)


if __name__ == "__main__":
    tyro.cli(main)
