"""A job of a step that leaves a manifest: its settings, its time, and what it writes last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from geosd.config import load_settings
from geosd.files import write_json
from geosd.provenance.manifest import manifest


class Job:
    """A job, one run of a step, timed from here on.

    Attributes:
        settings: Exactly what the rule may read of params.yaml.
    """

    def __init__(
        self,
        rule: str,
        params: Path,
        study: str,
        model: str | None = None,
        variant: str | None = None,
    ) -> None:
        """Start the clock and load the settings; the rule bears the name of the step's module."""
        self._began = time.monotonic()
        self._rule = rule
        self.settings = load_settings(rule, params, study, model, variant)

    def write_manifest(
        self, out: Path, inputs: Iterable[Path] | Mapping[Path, str], **more: Any
    ) -> None:
        """Write the job's `manifest.json`, with further keys of the step."""
        seconds = time.monotonic() - self._began
        made = manifest(self._rule, inputs, self.settings, seconds)
        write_json(out / "manifest.json", {**made, **more})
