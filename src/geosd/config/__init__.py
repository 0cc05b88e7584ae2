"""params.yaml: defined, documented, validated, and resolved into what each rule may read.

The file is read by `yaml_source`, its entries are laid over those that they extend (`overlays`),
its values are checked (`protocol_schema`, `params_schema`, `clashes`), all of it by `loading`; a
study is resolved (`study`), and each rule gets exactly the values that it may read
(`rule_settings`). A family shows several studies (`family`).
"""

from geosd.config.errors import ConfigError
from geosd.config.family import Family, resolve_family, resolve_study_or_family
from geosd.config.loading import load
from geosd.config.params_schema import Params
from geosd.config.rule_settings import settings
from geosd.config.study import Study, resolve_study

__all__ = [
    "ConfigError",
    "Family",
    "Params",
    "Study",
    "load",
    "resolve_family",
    "resolve_study",
    "resolve_study_or_family",
    "settings",
]
