"""Data sets: one module each, registered by name. A study names one as `data.source`."""

from geosd.problems.sources.data_source import (
    DataSource,
    get_data_source,
    names,
    reads_raw,
    register,
)

__all__ = ["DataSource", "get_data_source", "names", "reads_raw", "register"]
