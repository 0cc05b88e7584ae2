"""Draw the mass on the teacher's ranks, one ridge a checkpoint, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.alignment import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_alignment import draw
from geosd.reporting.style import save


def main(study: str, alignment: list[Path], out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the ridges.

    Args:
        study: Name of the study.
        alignment: The alignment of each run.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_alignment", resolve(load(params), study))
    figure = draw(read(alignment), settings["models"], settings["methods"])
    save(figure, out, "figure_alignment")


if __name__ == "__main__":
    tyro.cli(main)
