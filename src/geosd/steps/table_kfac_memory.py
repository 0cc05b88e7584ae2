"""Write the table of K-FAC's memory over the scale ladder, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.reporting.table_kfac_memory import build
from geosd.reporting.tables import write


def main(out: Path) -> None:
    """Write the table of K-FAC's memory; it reads nothing but the paper's dimensions.

    Args:
        out: Folder of the table.
    """
    write(build(), out)


if __name__ == "__main__":
    tyro.cli(main)
