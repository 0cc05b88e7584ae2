"""Draw sweeps of learning rate and stopping step on the ID-OOD plane, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_stepsize import draw
from geosd.reporting.style import save


def main(study: str, scores: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the sweeps.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_stepsize", resolve(load(params), study))
    save(draw(read(scores), settings["models"], settings["points"]), out, "figure_stepsize")


if __name__ == "__main__":
    tyro.cli(main)
