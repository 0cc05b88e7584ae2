"""Data sets: one module each, registered by name. A study names one as `data.source`."""

from geosd.problems.sources.source import Source, names, register, source

__all__ = ["Source", "names", "register", "source"]
