"""params.yaml: defined, documented, validated, and resolved into what each rule may read.

The file is read (`yaml_source`), its entries are laid over those that they extend (`inheritance`),
its values are checked (`protocol_schema`, `params_schema`, `validate`), a study is resolved
(`study`), and each rule of the workflow gets exactly the values that it may read (`rule_settings`).
"""

from __future__ import annotations

from geosd.config.errors import ConfigError
from geosd.config.params_schema import Params
from geosd.config.rule_settings import settings
from geosd.config.study import Study, resolve
from geosd.config.validate import load, load_settings

__all__ = ["ConfigError", "Params", "Study", "load", "load_settings", "resolve", "settings"]
