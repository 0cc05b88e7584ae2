"""A zip of an RO-Crate (https://w3id.org/ro/crate/1.1), written, and unpacked without trust.

The graph in `ro-crate-metadata.json` lists every other file with its size and SHA-256. A file from
elsewhere may be damaged or made to do harm: what it says of itself is compared with what is there,
and how much is read is bounded before it is read.
"""

import hashlib
import json
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from geosd.files import DamagedFileError, atomic_write, sha256

METADATA = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
TERMS = {"sha256": "http://schema.org/sha256"}
"""Terms of schema.org that are younger than the context of RO-Crate 1.1."""
ROOT = "./"
HINT = "\nHint: take the capsule from its source again."
LARGEST = 2**36
"""Bytes of all files of a crate, at most: a zip can name more than a disk holds."""
LARGEST_RATIO = 200
"""Bytes of all files for each byte of the zip, at most; text of samples has some ten."""
SMALL = 2**24
"""Bytes that may be unpacked whatever the ratio is; the metadata's, at most."""
MOST_FILES = 200_000
"""Files of a crate, at most."""
LARGEST_DIRECTORY = 2**26
"""Bytes of a zip's directory of names, at most."""
BLOCK = 2**20
"""Bytes that are unpacked at once."""
METHODS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflate"}
"""Methods of compression that are read."""
ENCRYPTED = 0x1
"""Flag of an encrypted file in a zip."""
_UNREADABLE = (
    *(AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(OverflowError, struct.error, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error),
)
"""Errors of reading a damaged zip, or JSON that is no graph; too deep JSON a RuntimeError."""


def write_crate(
    out: Path,
    files: Mapping[str, Path],
    root: Mapping[str, Any],
    properties: Iterable[Mapping[str, Any]] = (),
    entities: Iterable[Mapping[str, Any]] = (),
    profiles: Iterable[str] = (),
) -> None:
    """Write files into a zip with a graph that lists them: the same bytes for the same files.

    Args:
        files: Name in the zip -> the file.
        root: What the graph says of the whole.
        properties: Further entities, which the root names.
        entities: Others; one with the `@id` of a file says more of that file.
        profiles: What the metadata conform to besides RO-Crate.
    """
    listed = {
        name: {
            "@id": name,
            "@type": "File",
            "contentSize": str(file.stat().st_size),
            "sha256": sha256(file),
        }
        for name, file in files.items()
    }
    others: dict[str, dict[str, Any]] = {}
    for entity in entities:
        of_files = listed if entity["@id"] in listed else others
        of_files[entity["@id"]] = {**of_files.get(entity["@id"], {}), **entity}
    properties = list(properties)
    whole = {
        "@id": ROOT,
        "@type": "Dataset",
        **root,
        "hasPart": [{"@id": name} for name in listed],
        "additionalProperty": [{"@id": each["@id"]} for each in properties],
    }
    described: dict[str, Any] = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": ROOT}}
    described["conformsTo"] = [{"@id": address} for address in (CRATE, *profiles)]
    graph = [described, whole, *properties, *others.values(), *listed.values()]
    metadata = {"@context": [f"{CRATE}/context", TERMS], "@graph": graph}
    with atomic_write(out) as temporary, zipfile.ZipFile(temporary, "w") as packed:
        packed.writestr(zipfile.ZipInfo(METADATA), json.dumps(metadata, indent=1))
        for name, file in files.items():
            entry = zipfile.ZipInfo(name)  # with no time: the same bytes again
            entry.compress_type = zipfile.ZIP_DEFLATED
            with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target)


def unpack_crate(crate: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Unpack every file of a crate into a folder; the entities of its graph by `@id`.

    Nothing is unpacked unless the graph and the zip have the same files, each once, with the same
    sizes, none of them a link, encrypted or outside of the folder.

    Raises:
        DamagedFileError: The file is no such crate, or a file in it has not the hash that is
            listed; one line and a hint.
    """
    try:
        _check_directory(crate)
        with zipfile.ZipFile(crate) as packed:
            files = _checked_files(packed)
            entities = _graph(packed, files)
            listed = _listed_files(entities)
            _compare(files, listed)
            _check_sizes(files, crate, folder)
            for name, entity in listed.items():
                if _unpack(packed, files[name], folder / name) != entity["sha256"]:
                    raise ValueError(f"{_shown(name)} has another hash than the capsule lists")
            return entities
    except _UNREADABLE as error:
        words = " ".join(str(error).split())[:300] or type(error).__name__
        raise DamagedFileError(f"{crate} is no whole capsule: {words}.{HINT}") from error


def _check_directory(crate: Path) -> None:
    """Refuse a directory of names that would fill the memory before it can be looked at."""
    with crate.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2**16 - 22))
        end = file.read()
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise ValueError("it is no zip, or it was cut short")
    (directory,) = struct.unpack("<L", end[at + 12 : at + 16])
    if directory > LARGEST_DIRECTORY:
        raise ValueError(f"its list of names is larger than {LARGEST_DIRECTORY >> 20} MiB")


def _checked_files(packed: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by name, each of which may be unpacked as far as the zip says."""
    entries = packed.infolist()
    if len(entries) > MOST_FILES:
        raise ValueError(f"it has more than {MOST_FILES:,} files")
    twice = [name for name, count in Counter(e.filename for e in entries).items() if count > 1]
    if twice:
        raise ValueError(f"{_shown(twice[0])} is in it twice")
    for entry in entries:
        problem = _problem_of(entry)
        if problem:
            raise ValueError(f"{_shown(entry.filename)} {problem}")
    return {entry.filename: entry for entry in entries if not entry.is_dir()}


def _problem_of(entry: zipfile.ZipInfo) -> str:
    """Why a file of a zip is not unpacked, in words; empty where it may be."""
    name = entry.filename.removesuffix("/")
    path = PurePosixPath(name)
    inside = path.as_posix() == name and not path.is_absolute() and ".." not in path.parts
    if not inside or name in ("", ".") or entry.orig_filename != entry.filename or "\\" in name:
        return "is no file in the capsule's folder"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device, and no file"
    if (kind == stat.S_IFDIR) != entry.is_dir() and kind:
        return "is a folder by one of its marks and a file by another"
    if entry.is_dir() and entry.file_size:
        return "is a folder with contents of its own"
    if entry.flag_bits & ENCRYPTED:
        return "is encrypted"
    if entry.compress_type not in METHODS:
        return f"is compressed by method {entry.compress_type}; read are stored and deflate"
    return ""


def _graph(
    packed: zipfile.ZipFile, files: Mapping[str, zipfile.ZipInfo]
) -> dict[str, dict[str, Any]]:
    """The entities of the metadata by `@id`."""
    if METADATA not in files:
        raise ValueError(f"it has no {METADATA}")
    if files[METADATA].file_size > SMALL:
        raise ValueError(f"its {METADATA} is larger than {SMALL >> 20} MiB")
    with packed.open(files[METADATA]) as file:
        text = file.read(SMALL + 1)
    graph = json.loads(text)["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    if len(entities) != len(graph):
        raise ValueError(f"its {METADATA} describes a file twice")
    if ROOT not in entities:
        raise ValueError(f"its {METADATA} has no entity {ROOT}")
    return entities


def _listed_files(entities: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The files that a graph lists as parts of the whole, each once."""
    names = [part["@id"] for part in entities[ROOT]["hasPart"]]
    if len(names) != len(set(names)):
        raise ValueError("a file is twice on its list of parts")
    described = {name for name, entity in entities.items() if _is_file(entity)}
    others = sorted(described ^ set(names))
    if others:
        raise ValueError(f"{_shown(others[0])} is described and no part of it, or the reverse")
    return {name: entities[name] for name in names}


def _is_file(entity: Mapping[str, Any]) -> bool:
    """Whether an entity is a file, by its only type or by one of several."""
    types = entity.get("@type")
    return "File" in (types if isinstance(types, list) else [types])


def _compare(files: Mapping[str, zipfile.ZipInfo], listed: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse files that are in the zip and not listed, or the reverse, or of another size."""
    there = files.keys() - {METADATA}
    unlisted = sorted(there - listed.keys())
    if unlisted:
        raise ValueError(f"{_shown(unlisted[0])} is in it, and not on its list of parts")
    absent = sorted(listed.keys() - there)
    if absent:
        raise ValueError(f"{_shown(absent[0])} is on its list of parts, and not in it")
    for name, entity in listed.items():
        if str(files[name].file_size) != entity["contentSize"]:
            raise ValueError(f"{_shown(name)} has another size than the capsule lists")


def _check_sizes(files: Mapping[str, zipfile.ZipInfo], crate: Path, folder: Path) -> None:
    """Refuse what is too large to be unpacked here, or for a zip of this size."""
    total = sum(entry.file_size for entry in files.values())
    if total > LARGEST:
        raise ValueError(f"its files are larger than {LARGEST >> 30} GiB")
    packed = crate.stat().st_size
    if total > max(SMALL, LARGEST_RATIO * packed):
        raise ValueError(
            f"its files are more than {LARGEST_RATIO} times as large as it is"
            f" ({total / 1e6:.0f} MB in {packed / 1e6:.1f} MB)"
        )
    free = shutil.disk_usage(folder).free
    if total > free:
        raise ValueError(f"its files need {total / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f}")


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> str:
    """Unpack one file, no more of it than the zip says; its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hashed, written = hashlib.sha256(), 0
    with packed.open(entry) as source, path.open("xb") as target:
        while block := source.read(BLOCK):
            written += len(block)
            if written > entry.file_size:
                break
            hashed.update(block)
            target.write(block)
    if written != entry.file_size:
        raise ValueError(f"{_shown(entry.filename)} has another size than the zip says")
    return hashed.hexdigest()


def _shown(name: object) -> str:
    """A name as it may be printed: one from elsewhere may hold escapes of a terminal."""
    text = str(name)
    return text if text.isprintable() and len(text) < 200 else ascii(text[:200])
