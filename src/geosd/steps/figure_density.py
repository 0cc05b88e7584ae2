"""Draw the teacher's top mass against the student's, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.states import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_density import draw
from geosd.reporting.style import save


def main(study: str, states: list[Path], out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the density.

    Args:
        study: Name of the study.
        states: The states of each model.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_density", resolve(load(params), study))
    save(draw(read(states), settings["models"]), out, "figure_density")


if __name__ == "__main__":
    tyro.cli(main)
