"""Files that are either whole or absent."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from geosd.disk_room import NoRoomError, no_room

WEIGHTS = "model.safetensors"
LOADED = (".json", ".jinja", ".safetensors")
"""Endings of the files of a checkpoint that transformers may open."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Permissions of everyone but the owner."""


class DamagedFileError(ValueError):
    """A file that is not what the step wrote that makes it; names file, place, and what to do."""


def remake_file_hint(path: Path | str) -> str:
    """The last line of an error about a damaged result: the command that makes it anew."""
    remove = "rm -r" if Path(path).is_dir() else "rm"
    return (
        f"Hint: `{remove} {shlex.quote(str(path))}`, then `make run` for the study that has it: the"
        " rule that writes it makes it anew."
    )


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Write a file atomically: under a temporary name until it is whole and on the disk.

    Yields the temporary name, which is in the same folder, so that the renaming cannot be half
    done. A missing folder is made.

    Raises:
        NoRoomError: The disk is full, or a quota or the limit on files is reached; says so,
            whatever the writer said.
        FileNotFoundError: Another process has taken the temporary file away.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        replace_file(temporary, path)
    except FileNotFoundError as error:
        if error.filename != str(temporary) or not path.parent.is_dir():
            raise
        raise FileNotFoundError(
            f"{temporary} was taken away while it was written: another process makes {path}, too.\n"
            "Hint: clones that share a folder by a link may not run at the same time; start again"
            " when the other one has ended."
        ) from error
    except Exception as error:
        # Writers of weights and states say of a full disk only that a position is unexpected.
        cause = no_room(error, [temporary, path.parent])
        if cause is not None:
            raise NoRoomError(cause.errno or 0, path, cause.said) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def replace_file(source: Path | str, path: Path | str) -> None:
    """Rename a file, so that also after a power cut the new name is that of the whole file.

    The file gets the permissions of any new file there, whoever wrote it.
    """
    _share(Path(source), Path(path).parent)
    sync_file(source)
    os.replace(source, path)
    sync_file(Path(path).parent)


def _share(file: Path, folder: Path) -> None:
    """Add the permissions that a new file of the folder has, by umask and by the folder's list.

    safetensors and temporary files keep all but the owner out, whatever the umask allows.
    """
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & OTHERS:
        return  # its writer left it to the umask
    example = folder / f".{file.name}.{os.getpid()}.mode.tmp"
    try:
        example.touch()
        usual = stat.S_IMODE(example.stat().st_mode)
    finally:
        example.unlink(missing_ok=True)
    if usual & ~mode:
        file.chmod(mode | usual)


def sync_file(path: Path | str) -> None:
    """Wait until what was written to a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems have nothing to wait for in a folder, and say so.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path | str) -> None:
    """Remove temporary files of killed writers, unless the file is being written."""
    path = Path(path)
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        temporary.unlink()


def copy_file(source: Path | str, path: Path | str) -> None:
    """Copy a file, whole or not at all."""
    with atomic_write(path) as temporary:
        shutil.copyfile(source, temporary)


def link_or_copy_file(source: Path, path: Path) -> None:
    """Give a file a second name, or copy the file where the file system has no second names.

    For weights, which may be large. Whole or not at all.
    """
    try:
        with atomic_write(path) as temporary:
            os.link(source, temporary)
    except OSError:
        copy_file(source, path)


def write_text(path: Path | str, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write a file of indented JSON with sorted keys, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def sha256(path: Path | str) -> str:
    """The hex SHA-256 of a file, or of a folder: of its sorted (relative name, file hash) lines.

    What a killed `atomic_write` left in a folder does not count.

    Raises:
        FileNotFoundError: There is neither a file nor a folder at `path`.
    """
    path = Path(path)
    if path.is_dir():
        written = (
            m for m in path.rglob("*") if not (m.name.startswith(".") and m.suffix == ".tmp")
        )
        members = sorted(m for m in written if m.is_file())
        lines = (f"{member.relative_to(path).as_posix()}\t{sha256(member)}\n" for member in members)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: an input of this step is missing.\nHint: let the workflow run the step; it"
            " makes inputs first."
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_of_files(folders: Iterable[Path]) -> int:
    """Bytes of all files below some folders, those that do not exist left out."""
    paths = (path for folder in folders for path in folder.rglob("*"))
    return sum(path.lstat().st_size for path in paths if path.is_symlink() or not path.is_dir())
