"""The sentences of claims.md, environment.md, results.md and the pages of studies, by name."""

from collections.abc import Mapping
from pathlib import Path

import yaml

_FILE = Path(__file__).with_name("sentences.yaml")
SENTENCES: Mapping[str, str] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
