"""Draw ID and OOD accuracy over a ladder of models, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.scores import read
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_scale import draw
from geosd.reporting.style import save


def main(study: str, scores: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the ladder.

    Args:
        study: Name of the study; its models are the ladder, from small to large.
        scores: Tidy scores.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_scale", resolve(load(params), study))
    save(draw(read(scores), settings["models"], settings["methods"]), out, "figure_scale")


if __name__ == "__main__":
    tyro.cli(main)
