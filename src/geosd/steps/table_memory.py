"""Write the table of training memory, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis.cost import Update
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_memory import build
from geosd.reporting.tables import write


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the table of training memory.

    Args:
        study: Name of the study.
        out: Folder of the table.
        params: The configuration, whose protocol is counted.
    """
    settings = settings_of("table_memory", resolve(load(params), study))
    update = Update(settings["problems"], settings["response_tokens"])
    write(build(update, settings["top_k"]), out)


if __name__ == "__main__":
    tyro.cli(main)
