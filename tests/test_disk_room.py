"""Missing room is named, whoever writes and whatever the writer says of it."""

import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest
from cases import python

from geosd.cli import command
from geosd.disk_room import NoRoomError, no_room, refused_by_disk
from geosd.files import atomic_write, write_text

HIDDEN = RuntimeError("unexpected pos 168448 vs 168342")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_the_error_number_decides_whatever_room_there_is(tmp_path, number):
    """The free bytes of the disk say nothing of a quota, nor of a limit on files."""
    with pytest.raises(NoRoomError) as raised, atomic_write(tmp_path / "a.csv"):
        raise OSError(number, os.strerror(number), "a.csv")
    assert raised.value.errno == number
    first, hint = str(raised.value).splitlines()
    assert first.startswith(f"{tmp_path}/a.csv: [Errno {number}] ")
    assert hint.startswith("Hint: ") and ("ulimit" in hint) == (number == errno.EFBIG)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_writer_that_hides_the_number_is_not_believed_and_the_disk_is_tried(
    tmp_path, monkeypatch, number
):
    def writes_nothing(descriptor, data):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("geosd.disk_room.os.write", writes_nothing)
    with pytest.raises(NoRoomError) as raised, atomic_write(tmp_path / "state.pt") as temporary:
        temporary.write_bytes(b"half")
        raise HIDDEN
    assert raised.value.errno == number and str(HIDDEN) in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("I/O error: No space left on device (os error 28)", errno.ENOSPC),
        ("I/O error: Disk quota exceeded (os error 122)", errno.EDQUOT),
        ("I/O error: File too large (os error 27)", errno.EFBIG),
    ],
)
def test_the_words_of_a_writer_in_another_language_are_read(words, number):
    assert no_room(RuntimeError(words)).errno == number


def test_the_cause_of_an_error_is_looked_at():
    try:
        try:
            raise OSError(errno.EDQUOT, "quota")
        except OSError as error:
            raise ValueError("a wrapper") from error
    except ValueError as wrapped:
        assert no_room(wrapped).errno == errno.EDQUOT


def test_with_room_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(RuntimeError) as raised, atomic_write(tmp_path / "state.pt"):
        raise HIDDEN
    assert raised.value is HIDDEN and not refused_by_disk(tmp_path)


LIMITED = """
import json, resource, sqlite3, sys
import torch
from safetensors.torch import save_file
from geosd.disk_room import no_room
from geosd.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
zeros = {"a": torch.zeros(1 << 20)}
def rows(path):
    with sqlite3.connect(path) as base:
        base.execute("create table a (b)")
        base.execute("insert into a values (?)", ["x" * 400_000])
found = []
for write in (lambda p: torch.save(zeros, p), lambda p: save_file(zeros, p), rows):
    try:
        with atomic_write(sys.argv[1] + "/file") as path:
            write(path)
    except OSError as error:
        found.append([type(error).__name__, error.errno])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_torch_safetensors_and_sqlite_at_the_limit_of_a_file(tmp_path):
    done = python("-c", LIMITED, tmp_path, check=True)
    assert json.loads(done.stdout) == [["NoRoomError", errno.EFBIG]] * 3
    assert [path for path in tmp_path.iterdir() if "journal" not in path.name] == []


def test_a_limit_on_files_is_not_the_cause_of_every_error(monkeypatch):
    limited = (200_000, resource.RLIM_INFINITY)
    monkeypatch.setattr("geosd.disk_room.resource.getrlimit", lambda kind: limited)
    assert no_room(ValueError("another")) is None
    assert no_room(sqlite3.OperationalError("disk I/O error")).errno == errno.EFBIG


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_is_named_by_every_writer(tmp_path):
    import torch
    from safetensors.torch import save_file

    disk, zeros = tmp_path / "disk", {"a": torch.zeros(1 << 20)}
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        for write in (
            lambda path: torch.save(zeros, path),
            lambda path: save_file(zeros, path),
            lambda path: write_text(path, "x" * (4 << 20)),
        ):
            with pytest.raises(NoRoomError) as raised, atomic_write(disk / "file") as path:
                write(path)
            assert raised.value.errno == errno.ENOSPC
            assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded", "a"), "Hint: make room"),
        (PermissionError(errno.EACCES, "Permission denied", "results/a"), "Hint: this is another"),
        (OSError(errno.EROFS, "Read-only file system", "results/a"), "Hint: this is another"),
        (KeyError("a"), ""),
    ],
)
def test_programs_end_with_a_line_and_a_hint_in_place_of_a_traceback(error, said):
    words = command._in_words(error)
    assert said in words and bool(words) == bool(said)
    assert not words or words.splitlines()[-1].startswith("Hint: ")


def test_a_temporary_file_that_another_writer_takes_away_is_named(tmp_path):
    path = tmp_path / "samples.jsonl"
    taken = "(?s)another process makes .*Hint: clones that share"
    with pytest.raises(FileNotFoundError, match=taken), atomic_write(path) as temporary:
        temporary.write_text("half")
        temporary.unlink()
    assert not Path(path).exists()
