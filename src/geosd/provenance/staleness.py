"""Which results are no longer what today's inputs, parameters and code would make.

A manifest says what a result was made from. This compares it with what there is now, and follows
the results into which a stale one went.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from geosd.config.study import flat
from geosd.provenance.manifest import sha256

NAMES = ("model", "variant", "seed")
"""What a step may add to its settings to say which run it was; the folder says it too."""

Settings = Callable[[Path], Mapping[str, Any] | None]


def stale(results: Path, sources: Path, settings: Settings) -> dict[Path, list[str]]:
    """Compare every manifest below a folder with its inputs, parameters and code as they are now.

    Args:
        results: Folder of a study's results. Inputs are looked for as the manifests name them.
        sources: The folder that holds the package, with which recorded code is compared.
        settings: From a result's folder, relative to `results`, to the settings that it would be
            made with now; None where the study does not make it any more.

    Returns:
        Each folder that has a manifest -> why it is stale, one reason a line; none: it is current.
    """
    told = {path.parent: json.loads(path.read_text()) for path in _manifests(results)}
    reasons = {
        folder: [
            *_inputs(manifest["inputs"]),
            *_parameters(manifest["settings"], settings(folder.relative_to(results))),
            *_code(manifest["code"].get("files"), sources),
        ]
        for folder, manifest in told.items()
    }
    # Until nothing is added: what was made from something stale is stale, however far away.
    added = True
    while added:
        added = False
        for folder, manifest in told.items():
            for source in {_owner(Path(name), told) for name in manifest["inputs"]} - {
                None,
                folder,
            }:
                reason = f"made from {source}, which is out of date"
                if reasons[source] and reason not in reasons[folder]:
                    reasons[folder].append(reason)
                    added = True
    return reasons


def _manifests(results: Path) -> list[Path]:
    return sorted(results.rglob("manifest.json"))


def _owner(path: Path, folders: Mapping[Path, Any]) -> Path | None:
    """The result that a file belongs to."""
    return next((parent for parent in (path, *path.parents) if parent in folders), None)


def _inputs(recorded: Mapping[str, str]) -> list[str]:
    reasons = []
    for name, digest in recorded.items():
        if not Path(name).exists():
            reasons.append(f"input {name} is not here")
        elif sha256(name) != digest:
            reasons.append(f"input {name} has changed")
    return reasons


def _parameters(recorded: Mapping[str, Any], now: Mapping[str, Any] | None) -> list[str]:
    if now is None:
        return ["the study does not make it any more"]
    before, after = flat(dict(recorded)), flat(json.loads(json.dumps(dict(now))))
    absent = "(absent)"
    return [
        f"parameter {key} was {before.get(key, absent)}, is {after.get(key, absent)}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key, absent) != after.get(key, absent)
        and not (key in NAMES and key not in after)
    ]


def _code(recorded: Mapping[str, str | None] | None, sources: Path) -> list[str]:
    if recorded is None:
        return ["its manifest does not say which files of code made it"]
    reasons = []
    for name, digest in recorded.items():
        if digest is None:
            reasons.append(f"code {name} was edited while it ran")
        elif not (sources / name).exists():
            reasons.append(f"code {name} is gone")
        elif sha256(sources / name) != digest:
            reasons.append(f"code {name} has changed")
    return reasons
