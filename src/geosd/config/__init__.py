"""params.yaml: defined, documented, validated, and resolved into what each rule may read."""

from __future__ import annotations

from geosd.config.overlays import Params
from geosd.config.reading import ConfigError
from geosd.config.studies import Study, load, resolve, settings

__all__ = ["ConfigError", "Params", "Study", "load", "resolve", "settings"]
