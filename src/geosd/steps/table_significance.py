"""Write the table that tests GeoSD against the strongest baseline, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_significance import build
from geosd.reporting.tables import write


def main(study: str, scores: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the significance table.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        out: Folder of the table.
        params: The configuration.
    """
    settings = settings_of("table_significance", resolve(load(params), study))
    write(build(read(scores), settings["models"], settings["methods"]), out)


if __name__ == "__main__":
    tyro.cli(main)
