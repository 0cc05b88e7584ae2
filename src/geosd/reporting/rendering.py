"""Make the files of a table or a figure, found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.reporting.specs import output_kind, rendering_modules


def render(
    name: str, tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any], folder: Path
) -> list[Path]:
    """Write a table's or a figure's files; its own module says what it shows.

    Args:
        name: That of its module in geosd.reporting, e.g. figure_frontier.
        tables: The tidy tables that it reads, by name.
        settings: Those that it declares, by the names of its arguments.
        folder: Of its files.

    Returns:
        The paths of the files.
    """
    module, writer = map(import_module, rendering_modules(name))
    made = getattr(module, output_kind(name).function)(**tables, **settings)
    return writer.save(made, folder, name)
