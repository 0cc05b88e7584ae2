"""Which results are no longer what today's inputs, settings and code would make.

A manifest says what a result was made from, and which bytes it has. This compares both with what
there is now, and follows the results into which a stale one went.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from geosd.dotted_keys import dotted_items
from geosd.files import sha256
from geosd.provenance.code import code_digest
from geosd.provenance.manifest import MANIFEST, DamagedManifestError, read_manifest
from geosd.provenance.proof import proven_hash

ABSENT = "(absent)"


@dataclass(frozen=True)
class Current:
    """Settings and code (`code_of`) of today, against which a result's staleness is judged."""

    settings: Mapping[str, Any]
    code: Mapping[str, str]
    former: Path | None = None
    """Where the result was before its settings changed; None: where it is now."""


def stale_results(
    results: Mapping[Path, Current], may_be_gone: Callable[[str], bool] = lambda name: False
) -> dict[Path, list[str]]:
    """Which results are stale, and why: compared with files, settings and code of today.

    Results are folders, or manifests where several share one, each with what would make it now. A
    file that `may_be_gone` on purpose counts by the hash that the manifest of its step lists.

    Returns:
        Result -> why it is stale, one reason a line; none: it is current. Results that were never
            made,
        under no address, are left out. A damaged manifest is a reason, too.
    """
    manifests: dict[Path, dict[str, Any] | None] = {}

    @cache  # many results share an input
    def hashed(name: str) -> str | None:
        if Path(name).exists():
            return sha256(name)
        with suppress(DamagedManifestError):
            return proven_hash(Path(name)) if may_be_gone(name) else None
        return None

    reasons: dict[Path, list[str]] = {}
    makers: dict[Path, Path] = {}  # file -> the result that lists it
    for result, current in results.items():
        try:
            manifest = manifests[result] = _read(result)
            former = _read(current.former) if current.former and manifest is None else None
        except DamagedManifestError as error:
            manifests[result], reasons[result] = None, [str(error).partition("\n")[0]]
            continue
        if manifest is not None:
            folder = _manifest_file(result).parent
            outputs = {folder / name: digest for name, digest in manifest["outputs"].items()}
            makers |= dict.fromkeys(outputs, result)
            reasons[result] = [
                *_files("output", outputs, hashed),
                *_files("input", manifest["inputs"], hashed),
                *stale_settings(manifest["settings"], current.settings),
                *_code(manifest, current.code),
            ]
        elif former is not None:
            reasons[result] = [f"not made yet; {current.former} follows from other settings"]
            reasons[result] += stale_settings(former["settings"], current.settings)
    # Until nothing is added: what was made from something stale is stale, however far away.
    added = True
    while added:
        added = False
        for result in reasons:
            for source in _sources(manifests[result], makers, reasons) - {result}:
                reason = f"made from {source}, which is out of date"
                if reasons[source] and reason not in reasons[result]:
                    reasons[result].append(reason)
                    added = True
    return reasons


def _manifest_file(result: Path) -> Path:
    return result if result.name.endswith(MANIFEST) else result / MANIFEST


def _read(result: Path) -> dict[str, Any] | None:
    file = _manifest_file(result)
    return read_manifest(file.parent, file.name) if file.is_file() else None


def _sources(
    manifest: Mapping[str, Any] | None, makers: Mapping[Path, Path], results: Mapping[Path, Any]
) -> set[Path]:
    """The results that a result was made from: that which lists an input, or holds it."""
    found = set()
    inputs = manifest["inputs"] if manifest else ()
    for path in map(Path, inputs):
        holders = [folder for folder in (path, *path.parents) if folder in results]
        if path in makers:
            found.add(makers[path])
        elif holders:
            found.add(holders[0])
    return found


def _files(kind: str, recorded: Mapping[Any, str], hashed: Any) -> Iterator[str]:
    for name, listed in recorded.items():
        found = hashed(str(name))
        if found is None:
            yield f"{kind} {name} is not here"
        elif found != listed:
            yield f"{kind} {name} has changed"


def stale_settings(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Each setting that is not the recorded one, in words."""
    before = dict(dotted_items(recorded))
    as_recorded = json.loads(json.dumps(now))
    after = dict(dotted_items(as_recorded))
    for key in sorted(before.keys() | after.keys()):
        old = before.get(key, ABSENT)
        new = after.get(key, ABSENT)
        if old != new:
            yield f"parameter {key} was {old}, is {new}"


def code_for_staleness(manifest: Mapping[str, Any]) -> dict[str, str | None] | None:
    """File -> hash of code that a result is taken as made by; None: not said by meaning."""
    if "digest" not in manifest["code"]:
        return None
    files = dict(manifest["code"]["files"])
    for acceptance in manifest.get("accepted", ()):
        files |= {name: now for name, (_, now) in acceptance["files"].items()}
    return {name: hashed for name, hashed in files.items() if hashed != ABSENT}


def accept_staleness(manifest: dict[str, Any], now: Mapping[str, str], date: str) -> bool:
    """Take a result as made by today's code, and say so in its manifest under `accepted`.

    The record has the date, the digest before and after, and of each file that differs both hashes.
    The result is whether its code differed, and the manifest says by meaning what it was.
    """
    before = code_for_staleness(manifest)
    if before in (None, now):
        return False
    changed = {}
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, ABSENT), now.get(name, ABSENT)
        if old != new:
            changed[name] = [old, new]
    record = {
        "date": date,
        "before": code_digest(before),
        "after": code_digest(now),
        "files": changed,
    }
    manifest["accepted"] = [*manifest.get("accepted", ()), record]
    return True


def _code(manifest: Mapping[str, Any], now: Mapping[str, str]) -> Iterator[str]:
    recorded = code_for_staleness(manifest)
    if recorded is None:
        yield "its manifest does not say what the code meant that made it"
        return
    for name in sorted(recorded.keys() | now.keys()):
        if name not in now:
            yield f"code {name} is not part of the step any more"
        elif name not in recorded:
            yield f"code {name} was not part of the step"
        elif recorded[name] is None:
            yield f"code {name} was edited while the step ran"
        elif recorded[name] != now[name]:
            yield f"code {name} has changed"
