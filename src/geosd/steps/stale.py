"""List the results of a study whose inputs, parameters or code have changed since they were made.

It reads manifests and nothing of the workflow's, so it also judges results that were copied here.
Ends with status 1 where one is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import geosd
from geosd.config import ConfigError, load, resolve
from geosd.config import settings as settings_of
from geosd.provenance.staleness import stale
from geosd.steps import begin


def main(study: str, params: Path = Path("params.yaml"), results: Path = Path("results")) -> None:
    """List what is out of date.

    Args:
        study: Name of the study.
        params: The configuration.
        results: Folder of all studies' results.
    """
    resolved = resolve(load(params), study)

    def settings(folder: Path) -> Mapping[str, Any] | None:
        """The settings of <rule>/<model>/<variant>/<seed>, as far as a rule has these."""
        rule, *rest = folder.parts
        model, variant, _ = (*rest, None, None, None)[:3]
        if rule == "evaluate" and variant not in resolved.trained:
            rule, known = "evaluate_pi_0", variant in resolved.methods
        else:
            known = variant is None or variant in resolved.trained
        if not known or (model is not None and model not in resolved.models):
            return None
        try:
            return settings_of(rule, resolved, model, variant)
        except ConfigError:
            return None  # no rule of this name

    reasons = stale(results / study, Path(geosd.__file__).parent.parent, settings)
    if not reasons:
        raise SystemExit(
            f"{results / study} holds no manifest.\nHint: `make run STUDY={study}` makes the study,"
            f" `make restore STUDY={study}` fetches it."
        )
    outdated = {folder: why for folder, why in reasons.items() if why}
    for folder, why in outdated.items():
        print(folder, *why, sep="\n    ")
    print(f"{len(outdated)} of {len(reasons)} results of study {study} are out of date.")
    sys.exit(bool(outdated))


if __name__ == "__main__":
    begin(main)
