"""Write the table of model architectures, as CSV, Markdown and LaTeX."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.models.architectures import names
from geosd.models.miniature import described
from geosd.problems.tokenizer import VOCABULARY
from geosd.reporting.table_architectures import build
from geosd.reporting.tables import write


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write the table of architectures.

    Args:
        study: Name of the study, whose own small models stand below the paper's.
        out: Folder of the table.
        params: The configuration.
    """
    models = settings_of("table_architectures", resolve(load(params), study))["models"]
    own = {name: described(name, len(VOCABULARY)) for name in models if name in names()}
    write(build(own), out)


if __name__ == "__main__":
    tyro.cli(main)
