"""Write the table of hyperparameters, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_hyperparameters import build
from geosd.reporting.tables import write


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the table of hyperparameters.

    Args:
        study: Name of the study.
        out: Folder of the table.
        params: The configuration.
    """
    write(build(settings_of("table_hyperparameters", resolve(load(params), study))), out)


if __name__ == "__main__":
    tyro.cli(main)
