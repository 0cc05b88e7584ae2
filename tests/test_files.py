import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from cases import python

from geosd.files import atomic_write, remove_leftovers, sha256, write_text
from geosd.json_lines import DamagedLineError, read_jsonl, write_jsonl
from geosd.problems.records import PooledSolutionsRecord, Problem, SampleRecord


@dataclass(frozen=True)
class Row:
    id: str
    parts: tuple[str, ...]
    count: int
    answer: str | None
    share: float
    ok: bool
    finish: Literal["stop", "length"]


ROWS = [
    Row("a", ("x", "−"), 3, None, 0.5, True, "stop"),
    Row("b", (), 0, "7", 1, False, "length"),
]
LINE = (
    '{"id": "a", "parts": [], "count": 1, "answer": null, "share": 1.5, "ok": true,'
    ' "finish": "stop"}'
)


def test_rows_come_back_as_written(tmp_path):
    write_jsonl(tmp_path / "rows.jsonl", ROWS)
    assert read_jsonl(tmp_path / "rows.jsonl", Row) == ROWS


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"count": 1', '"count": "1"', "count is '1': Input should be a valid integer"),
        ('"count": 1', '"count": true', "count is True: Input should be a valid integer"),
        ('"count": 1, ', "", "missing count"),
        ('"count": 1', '"count": 1, "more": 2', "unknown more"),
        (
            '"finish": "stop"',
            '"finish": "halt"',
            "finish is 'halt': Input should be 'stop' or 'length'",
        ),
        ('"parts": []', '"parts": "ab"', "parts is 'ab': Input should be a valid array"),
        ('"parts": []', '"parts": ["x", 7]', "parts.1 is 7: Input should be a valid string"),
        ('"id": "a"', '"id": null', "id is None: Input should be a valid string"),
        ('"share": 1.5', '"share": "1.5"', "share is '1.5': Input should be a valid number"),
        ('"ok": true', '"ok": 1', "ok is 1: Input should be a valid boolean"),
        ('"count": 1', '"count": 1.0', "count is 1.0: Input should be a valid integer"),
        ('"ok": true}', '"ok": tr', "not a Row"),
        (LINE, "[1, 2]", "Input should be an object"),
        (LINE, "", "not a Row"),
    ],
)
def test_a_damaged_line_names_file_and_line(tmp_path, old, new, expected):
    damaged = LINE.replace(old, new)
    if old == '"ok": true}':
        damaged = LINE[: LINE.index('"ok"') + 8]
    path = tmp_path / "pool.jsonl"
    path.write_text(f"{LINE}\n{damaged}\n{LINE}\n")
    with pytest.raises(DamagedLineError) as error:
        read_jsonl(path, Row)
    assert f"{path}:2: " in str(error.value)
    assert expected in str(error.value)
    assert "Hint: " in str(error.value)


def test_a_half_written_file_never_gets_the_final_name(tmp_path):
    path = tmp_path / "weights"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_after(tmp_path, monkeypatch):
    done, fsync, rename = [], os.fsync, os.replace

    def synced(descriptor):
        done.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def renamed(source, path):
        done.append("renamed")
        rename(source, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_text(tmp_path / "scores.csv", "1")
    assert done == [f".scores.csv.{os.getpid()}.tmp", "renamed", tmp_path.name]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_a_disk_that_fails_is_no_file_system_without_syncing(tmp_path, monkeypatch, number):
    def fails(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    if number == errno.EINVAL:
        write_text(tmp_path / "scores.csv", "1")
    else:
        with pytest.raises(OSError, match="Input/output"):
            write_text(tmp_path / "scores.csv", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"] * (number == errno.EINVAL)


def test_leftovers_of_killed_writers_of_one_file_are_removed(tmp_path):
    names = (".state.pt.17.tmp", ".state.pt.4711.tmp", ".other.pt.17.tmp", "state.pt")
    for name in names:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "state.pt")
    assert {path.name for path in tmp_path.iterdir()} == {".other.pt.17.tmp", "state.pt"}


def test_bytes_that_are_not_text_are_damage_too(tmp_path):
    path = tmp_path / "pool.jsonl"
    path.write_bytes(LINE.encode() + b"\n\xff\xfe\x00\n")
    with pytest.raises(DamagedLineError, match="pool.jsonl:2"):
        read_jsonl(path, Row)


def test_a_field_with_a_default_may_be_missing(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_jsonl(path, [SampleRecord("id", "id-0", 0, "A: 7", 4, "7", True, "stop", "correct")])
    path.write_text(path.read_text().replace(', "reason": "correct"', ""))
    assert read_jsonl(path, SampleRecord)[0].reason is None


def test_only_a_reader_of_records_imports_pydantic():
    program = "import sys, geosd.files; sys.exit('pydantic' in sys.modules)"
    assert python("-c", program).returncode == 0


def test_records_survive_their_files(tmp_path):
    rows = {
        Problem: [Problem("id-00000", "id", "1 + 1", "2")],
        PooledSolutionsRecord: [
            PooledSolutionsRecord("train-00000", ("A: 2", "1 + 1 = 2 ; A: 2"), 16, 3)
        ],
        SampleRecord: [SampleRecord("id", "id-00000", 0, "1 +", 52, None, False, "length")],
    }
    for cls, written in rows.items():
        write_jsonl(tmp_path / "rows.jsonl", written)
        assert read_jsonl(tmp_path / "rows.jsonl", cls) == written


def test_what_a_killed_writer_left_is_no_part_of_a_folder(tmp_path):
    (tmp_path / "samples.jsonl").write_text("whole")
    before = sha256(tmp_path)
    (tmp_path / ".samples.jsonl.4711.tmp").write_text("half")
    assert sha256(tmp_path) == before
    (tmp_path / ".hidden").write_text("a file of its own")
    assert sha256(tmp_path) != before


def test_a_full_disk_is_called_full(tmp_path, monkeypatch):
    def write(error):
        with pytest.raises(type(error)) as raised, atomic_write(tmp_path / "state.pt"):
            raise error
        return raised.value

    assert write(RuntimeError("unexpected pos 168448 vs 168342")).args[0].startswith("unexpected")
    room = shutil.disk_usage(tmp_path)._replace(free=4096)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room)
    with (
        pytest.raises(OSError, match="the disk is full .unexpected pos(.|\\n)*Hint: ") as raised,
        atomic_write(tmp_path / "state.pt"),
    ):
        raise RuntimeError("unexpected pos 168448 vs 168342")
    assert raised.value.errno == errno.ENOSPC
    assert raised.value.filename == str(tmp_path / "state.pt")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_a_file_has_the_permissions_of_any_new_one_whoever_wrote_it(tmp_path, umask):
    before = os.umask(umask)
    try:
        with atomic_write(tmp_path / "out") as temporary:
            os.close(os.open(temporary, os.O_CREAT, 0o600))  # as safetensors and tempfile do
        write_text(tmp_path / "text", "")
        (tmp_path / "new").touch()
        with atomic_write(tmp_path / "program") as temporary:
            temporary.touch()
            temporary.chmod(0o755)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    usual = 0o666 & ~umask
    assert modes == {"out": usual, "text": usual, "new": usual, "program": 0o755}
