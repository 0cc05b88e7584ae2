"""Draw what the OOD samples of every method agree on, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.agreement import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_consensus import draw
from geosd.reporting.style import save


def main(study: str, consensus: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the consensus figure.

    Args:
        study: Name of the study.
        consensus: Tidy table of agreement.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_consensus", resolve(load(params), study))
    figure = draw(read(consensus), settings["models"], settings["methods"])
    save(figure, out, "figure_consensus")


if __name__ == "__main__":
    tyro.cli(main)
