"""Draw the geometry of the objective, as PDF, SVG and PNG. No run enters it."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.reporting.figure_overview import draw
from geosd.reporting.style import save


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the overview.

    Args:
        study: Name of the study; the figure is the same for each.
        out: Folder of the figure.
        params: The configuration; nothing of it is read.
    """
    save(draw(), out, "figure_overview")


if __name__ == "__main__":
    tyro.cli(main)
