"""Draw OOD accuracy against how much of the solution the teacher sees, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_privilege import draw
from geosd.reporting.style import save


def main(study: str, scores: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the privilege sweep.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_privilege", resolve(load(params), study))
    figure = draw(read(scores), settings["models"], settings["points"])
    save(figure, out, "figure_privilege")


if __name__ == "__main__":
    tyro.cli(main)
