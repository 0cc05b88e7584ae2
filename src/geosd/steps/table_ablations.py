"""Write GeoSD and its ablations as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis import drift as drifts
from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_ablations import build
from geosd.reporting.tables import write


def main(
    study: str, scores: Path, drift: Path, out: Path, params: Path = Path("params.yaml")
) -> None:
    """Write the table of ablations.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        drift: Tidy drift.
        out: Folder of the table.
        params: The configuration.
    """
    settings = settings_of("table_ablations", resolve(load(params), study))
    table = build(read(scores), drifts.read(drift), settings["models"], settings["methods"])
    write(table, out)


if __name__ == "__main__":
    tyro.cli(main)
