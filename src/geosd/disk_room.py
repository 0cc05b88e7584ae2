"""Whether a write failed because there was no room: a full disk, a quota, or a limit on files."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota on this disk is used up",
    errno.EFBIG: "the file would be larger than this process may write (`ulimit -f`)",
}
"""Error numbers of writes that found no room, in words."""
PROBE_BYTES = 1 << 20
"""A place that does not take so many bytes has no room."""

_IN_WORDS = {
    errno.ENOSPC: re.compile(r"No space left on device|os error 28\b|database or disk is full"),
    errno.EDQUOT: re.compile(r"Disk quota exceeded|os error 122\b"),
    errno.EFBIG: re.compile(r"File too large|os error 27\b"),
}
_HIDING = re.compile(r"disk I/O error|iostream error|unexpected pos|write failed|PytorchStream")
"""Words of writers in other languages (SQLite, torch) on a failed write, without a number."""


class NoRoomError(OSError):
    """A write found no room; `errno` says of which kind. The words end with a hint."""

    def __init__(self, number: int, place: Path | str, said: str = "") -> None:
        """Say what there was no room for, and in brackets what the writer itself `said`."""
        super().__init__(number, NO_ROOM[number], str(place))
        self.said = said

    def __str__(self) -> str:
        """Kind, place and cure."""
        said = f" ({self.said})" if self.said else ""
        named = f"{self.filename}: [Errno {self.errno}] {self.strerror}{said}."
        return f"{named}\n{disk_room_hint(self.errno or 0)}"


def disk_room_hint(number: int) -> str:
    """The last line of an error about missing room."""
    cure = "allow larger files (`ulimit -f unlimited`)" if number == errno.EFBIG else "make room"
    return (
        f"Hint: {cure}, and start the same command again: it goes on from the last state that was"
        " saved."
    )


def no_room(error: BaseException, places: Iterable[Path] = ()) -> NoRoomError | None:
    """The missing room behind an error, or None where it has another cause.

    The numbers of the error and of its causes decide, then their words. Writers that hide both, as
    those of weights, states and SQLite do, are not believed: the `places` that were written to are
    tried instead.
    """
    chain = list(_causes(error))
    for each in chain:
        if isinstance(each, NoRoomError):
            return each
    said = str(error).partition("\n")[0]
    where = str(next(iter(places), Path()))
    for each in chain:
        number = getattr(each, "errno", None)
        if isinstance(each, OSError) and number in NO_ROOM:
            return NoRoomError(number, each.filename or where, said)
    words = " ".join(map(str, chain))
    for number, pattern in _IN_WORDS.items():
        if pattern.search(words):
            return NoRoomError(number, where, said)
    for place in places:
        if number := refused_by_disk(place):
            return NoRoomError(number, place, said)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and _HIDING.search(words):
        return NoRoomError(errno.EFBIG, where, said)
    return None


def refused_by_disk(place: Path) -> int:
    """The number of the error with which a disk takes no more bytes; 0 where there is room.

    A file that exists is made longer, so it should be one that is thrown away; in a folder, or in
    the nearest one above that is there, a file without a name is written. A limit on the size of
    files says nothing here: the probe itself may be larger.
    """
    try:
        folder = next(each for each in (place, *place.absolute().parents) if each.is_dir())
        if shutil.disk_usage(folder).free < PROBE_BYTES:
            return errno.ENOSPC
        if place.is_file():
            with place.open("ab") as file:
                _write_probe(file.fileno())
        else:
            with tempfile.TemporaryFile(dir=folder) as file:
                _write_probe(file.fileno())
    except OSError as error:
        return error.errno if error.errno in (errno.ENOSPC, errno.EDQUOT) else 0
    return 0


def _write_probe(descriptor: int) -> None:
    left = PROBE_BYTES
    while left:
        left -= os.write(descriptor, b"\0" * left)
    os.fsync(descriptor)  # network file systems say so late


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it was raised from, or while handling."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
