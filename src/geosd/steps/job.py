"""A job of a step that leaves a manifest: its settings, its time, and what it writes last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from geosd.config import load, resolve, settings
from geosd.files import write_json
from geosd.provenance.manifest import manifest


class Job:
    """A job, one run of a step, timed from here on.

    Attributes:
        settings: Exactly what the rule may read of params.yaml.
        draw: The draw of the base model that the job's run starts from.
    """

    def __init__(
        self,
        rule: str,
        params: Path,
        study: str,
        model: str | None = None,
        variant: str | None = None,
        *,
        seed: int | None = None,
        draw: int = 0,
    ) -> None:
        """Start the clock and load the settings; the rule bears the name of the step's module.

        The draw follows from the seed where there is one.
        """
        self._began = time.monotonic()
        self._rule = rule
        resolved = resolve(load(params), study)
        self.draw = draw if seed is None else resolved.draw(seed)
        self.settings = settings(rule, resolved, model, variant, self.draw)

    def write_manifest(
        self, out: Path, inputs: Iterable[Path] | Mapping[Path, str], **more: Any
    ) -> None:
        """Write the job's `manifest.json`, with further keys of the step."""
        seconds = time.monotonic() - self._began
        made = manifest(self._rule, inputs, self.settings, seconds)
        write_json(out / "manifest.json", {**made, **more})
