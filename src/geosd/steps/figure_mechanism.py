"""Draw gradient norm against overlap, and drift over steps, as PDF, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis import drift_over_steps
from geosd.analysis import states as visited
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.figure_mechanism import draw
from geosd.reporting.style import save


def main(
    study: str, states: list[Path], drift: Path, out: Path, params: Path = Path("params.yaml")
) -> None:
    """Draw the mechanism.

    Args:
        study: Name of the study.
        states: The states of each model.
        drift: Drift over steps.
        out: Folder of the figure.
        params: The configuration.
    """
    settings = settings_of("figure_mechanism", resolve(load(params), study))
    figure = draw(
        visited.read(states),
        drift_over_steps.read(drift),
        settings["models"],
        settings["methods"],
    )
    save(figure, out, "figure_mechanism")


if __name__ == "__main__":
    tyro.cli(main)
