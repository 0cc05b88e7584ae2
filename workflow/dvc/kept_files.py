"""Files that an experiment changes for a while, kept as they were, and put back at its end.

What somebody wrote into params.yaml meanwhile survives: the experiment's own settings are taken out
of the text as it is now. Where both changed the same lines, the text of now is kept next to it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from geosd.cli.cut_off_experiment import FOLDER, NAME
from geosd.files import atomic_write, copy_file, write_text

BEFORE, WRITTEN, ABSENT = FOLDER / "before", FOLDER / "written", FOLDER / "absent"
"""The files as they were; params.yaml as the experiment wrote it; names of files that were not."""


def keep(name: str, params: Path, text: str, others: Iterable[Path]) -> None:
    """Keep files as they are, before experiment `name` writes `text` into params.yaml.

    From here on `put_back` brings them back, in this process or in a later one.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    absent = []
    for file in (params, *others):
        kept = BEFORE / file
        kept.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            shutil.copy2(file, kept)
        else:
            absent.append(str(file))
    ABSENT.write_text("".join(f"{file}\n" for file in absent), encoding="utf-8")
    WRITTEN.write_text(text, encoding="utf-8")
    write_text(FOLDER / NAME, name)  # last: now all is there


def put_back(params: Path) -> str:
    """Put every file back as it was, and forget what was kept; returns what there is to say.

    An edit of params.yaml that was made meanwhile stays in it, or is kept in a file next to it.
    """
    said = _put_params_back(params)
    for kept in (path for path in BEFORE.rglob("*") if path.is_file()):
        file = kept.relative_to(BEFORE)
        if file != params:
            copy_file(kept, file)
    for name in ABSENT.read_text(encoding="utf-8").splitlines():
        Path(name).unlink(missing_ok=True)
    shutil.rmtree(FOLDER)
    return said


def _put_params_back(params: Path) -> str:
    """Take the experiment's settings out of params.yaml; returns what there is to say."""
    place, before = params.resolve(), (BEFORE / params).read_bytes()
    now = place.read_bytes() if place.exists() else None
    if now == before:
        return ""
    if now in (None, WRITTEN.read_bytes()):
        _write(place, before)
        return ""
    merged = _without_settings(now, before)
    if merged is not None:
        _write(place, merged)
        return f"{params} was edited meanwhile: the edits stay, the experiment's settings are out."
    mine = params.with_name(f"{params.name}.edited")
    _write(mine, now)
    _write(place, before)
    return (
        f"{params} was edited meanwhile, on lines that the experiment changed too. It is as before"
        f" the experiment, and your text is kept in {mine}.\nHint: diff {params} {mine}"
    )


def _without_settings(now: bytes, before: bytes) -> bytes | None:
    """The text of now without what the experiment changed; None where edits touch its lines."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("now", "written", "before")]
        for file, content in zip(files, (now, WRITTEN.read_bytes(), before), strict=True):
            file.write_bytes(content)
        merge = subprocess.run(["git", "merge-file", "-p", *map(str, files)], capture_output=True)
    return None if merge.returncode else merge.stdout


def _write(place: Path, content: bytes) -> None:
    """Write a file whole or not at all, with the access rights that it has."""
    with atomic_write(place) as temporary:
        temporary.write_bytes(content)
        if place.exists():
            shutil.copymode(place, temporary)
