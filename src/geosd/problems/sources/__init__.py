"""Data sets: one module each, registered by name. A study names one as `data.source`."""

from geosd.problems.sources.registry import names, register, source
from geosd.problems.sources.source import Source

__all__ = ["Source", "names", "register", "source"]
