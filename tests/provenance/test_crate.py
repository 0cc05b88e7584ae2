"""A zip from elsewhere: each damaged or hostile one is refused in a line, before it is unpacked."""

import io
import json
import resource
import stat
import struct
import zipfile
import zlib

import pytest
from cases import crate_entities, python, zip_crate

from geosd.files import DamagedFileError
from geosd.provenance import crate
from geosd.provenance.crate import METADATA, unpack_crate, write_crate

FILES = {"a.txt": b"one\n", "folder/b.csv": b"x,y\n1,2\n" * 40}


def graph_of(files, **changes):
    """The metadata of files by name; `changes` has further keys of an entity by its name."""
    entities = [each | changes.get(each["@id"], {}) for each in crate_entities(files)]
    root = {"@id": "./", "hasPart": [{"@id": name} for name in files]}
    return {"@graph": [root, *entities]}


def zipped(path, files, metadata=None, packed_as=None):
    """A zip of files and their metadata; `packed_as` is the ZipInfo of a file by its name."""
    return zip_crate(path, files, graph_of(files) if metadata is None else metadata, packed_as)


def refused(path, tmp_path):
    """The words in which a zip is refused: one line and a hint; nothing may be unpacked."""
    folder = tmp_path / "unpacked"
    folder.mkdir()
    with pytest.raises(DamagedFileError) as error:
        unpack_crate(path, folder)
    said, hint = str(error.value).splitlines()
    assert said.startswith(f"{path} is no whole capsule: ") and hint.startswith("Hint: ")
    assert not [*folder.iterdir()], "unpacked before it was looked at"
    return said


def test_files_come_back_from_a_crate_and_the_same_files_give_the_same_bytes(tmp_path):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    files = {name: tmp_path / name for name in FILES}
    for out in ("one.zip", "two.zip"):
        write_crate(tmp_path / out, files, {"name": "x"}, [{"@id": "#m", "value": 1}])
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    (tmp_path / "unpacked").mkdir()
    entities = unpack_crate(tmp_path / "one.zip", tmp_path / "unpacked")
    assert entities["#m"]["value"] == 1 and entities["./"]["name"] == "x"
    assert {n: (tmp_path / "unpacked" / n).read_bytes() for n in FILES} == FILES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda graph: graph["@graph"][0]["hasPart"].pop(), "described and no part"),
        (lambda graph: (graph["@graph"][0]["hasPart"].pop(), graph["@graph"].pop()), "not on its"),
        (lambda graph: graph["@graph"].append(graph["@graph"][1]), "describes a file twice"),
        (lambda graph: graph["@graph"][0]["hasPart"].append({"@id": "a.txt"}), "twice on its list"),
        (lambda graph: graph["@graph"][1].update(contentSize="5"), "another size"),
        (lambda graph: graph["@graph"].pop(0), "no entity"),
        (lambda graph: graph.pop("@graph"), "@graph"),
        (lambda graph: graph.update({"@graph": [[]]}), "list indices"),
        (lambda graph: graph.update({"@graph": 7}), "not iterable"),
    ],
)
def test_a_graph_that_does_not_list_each_file_once_is_refused(tmp_path, change, words):
    graph = graph_of(FILES)
    change(graph)
    assert words in refused(zipped(tmp_path / "c.zip", FILES, graph), tmp_path)


def test_a_file_on_the_list_that_is_not_in_the_zip_is_refused(tmp_path):
    graph = graph_of({**FILES, "figures/table.md": b"x"})
    assert "figures/table.md is on its list" in refused(
        zipped(tmp_path / "c.zip", FILES, graph), tmp_path
    )


@pytest.mark.parametrize(
    "name", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", "a//b", "./a", "a\\b", "..", "a/./b"]
)
def test_a_name_outside_of_the_folder_or_in_two_spellings_is_refused(tmp_path, name):
    assert "is no file in" in refused(zipped(tmp_path / "c.zip", {name: b"x"}), tmp_path)
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_a_link_or_a_device_is_refused(tmp_path, kind):
    entry = zipfile.ZipInfo("a.txt")
    entry.external_attr = (kind | 0o777) << 16
    path = zipped(tmp_path / "c.zip", {"a.txt": b"/etc/passwd"}, packed_as={"a.txt": entry})
    assert "a.txt is a link or a device" in refused(path, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("twice", ["a.txt", METADATA])
def test_a_name_that_is_twice_in_the_zip_is_refused(tmp_path, twice):
    path = zipped(tmp_path / "c.zip", FILES)
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr(twice, b"another")
    assert f"{twice} is in it twice" in refused(path, tmp_path)


def places(data, name):
    """Where the local header and the entry in the directory of a file of a zip begin."""
    local = data.find(name.encode()) - 30
    return local, data.rfind(name.encode()) - 46


def test_an_encrypted_file_an_unknown_method_and_a_damaged_one_are_refused(tmp_path):
    whole = zipped(tmp_path / "c.zip", FILES).read_bytes()
    local, entry = places(whole, "folder/b.csv")
    for offset, value, words in (
        ((6, 8), b"\x01\x00", "encrypted"),
        ((8, 10), struct.pack("<H", 99), "method 99"),
        ((8, 10), struct.pack("<H", zipfile.ZIP_LZMA), "method 14"),
    ):
        data = bytearray(whole)
        for at, begin in zip((local, entry), offset, strict=True):
            data[at + begin : at + begin + 2] = value
        path = tmp_path / "changed.zip"
        path.write_bytes(data)
        assert words in refused(path, tmp_path)
        (tmp_path / "unpacked").rmdir()
    data = bytearray(zipped(tmp_path / "m.zip", {}).read_bytes())
    data[30 + len(METADATA) : 38 + len(METADATA)] = b"\xff" * 8
    path.write_bytes(data)
    assert "is no whole capsule" in refused(path, tmp_path)


def test_a_file_cut_short_and_one_that_is_no_zip_are_refused(tmp_path):
    whole = zipped(tmp_path / "c.zip", FILES).read_bytes()
    for data in (whole[:-30], whole[: len(whole) // 2], b"", b"PK\x05\x06", b"text\n" * 9):
        path = tmp_path / "cut.zip"
        path.write_bytes(data)
        refused(path, tmp_path)
        (tmp_path / "unpacked").rmdir()
    assert "No such file" in refused(tmp_path / "nosuch.zip", tmp_path)


def test_sizes_that_lie_are_refused(tmp_path):
    files = {"a.txt": b"0" * 5000}
    whole = zipped(tmp_path / "c.zip", files).read_bytes()
    local, entry = places(whole, "a.txt")
    for said in (100, 6000):  # fewer and more bytes than there are, listed so too
        data = bytearray(whole)
        for at in (local + 22, entry + 24):
            data[at : at + 4] = struct.pack("<L", said)
        changed = graph_of(files, **{"a.txt": {"contentSize": str(said)}})
        path = tmp_path / "lies.zip"
        with zipfile.ZipFile(zipped(tmp_path / "m.zip", files, changed)) as honest:
            body = honest.read(METADATA)
        path.write_bytes(replaced_metadata(bytes(data), body))
        folder = tmp_path / f"unpacked{said}"
        folder.mkdir()
        with pytest.raises(DamagedFileError, match="is no whole capsule"):
            unpack_crate(path, folder)


def replaced_metadata(data, metadata):
    """The zip with other metadata, and the sizes that its directory has of the other files."""
    source = zipfile.ZipFile(io.BytesIO(data))
    (entry,) = (each for each in source.infolist() if each.filename != METADATA)
    begin = entry.header_offset
    local = data[begin : begin + 30 + len(entry.filename) + entry.compress_size]
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packed.compress(metadata) + packed.flush()
    name = METADATA.encode()
    sizes = struct.pack("<LLL", zlib.crc32(metadata), len(body), len(metadata))
    head = struct.pack("<4sHHHHH", b"PK\x03\x04", 20, 0, 8, 0, 0x21) + sizes
    first = head + struct.pack("<HH", len(name), 0) + name + body
    out = first + local
    directory = b""
    for filename, at, values in (
        (name, 0, sizes),
        (
            entry.filename.encode(),
            len(first),
            struct.pack("<LLL", entry.CRC, entry.compress_size, entry.file_size),
        ),
    ):
        directory += struct.pack("<4sHHHHHH", b"PK\x01\x02", 20, 20, 0, 8, 0, 0x21) + values
        directory += struct.pack("<HHHHHLL", len(filename), 0, 0, 0, 0, 0, at) + filename
    end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 2, 2, len(directory), len(out), 0)
    return out + directory + end


@pytest.mark.parametrize("name", [METADATA, "a.txt"])
def test_a_file_of_blanks_is_refused_before_it_is_unpacked(tmp_path, name):
    path = tmp_path / "bomb.zip"
    size = 1 << 28
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        with packed.open(name, "w", force_zip64=True) as file:
            for _ in range(size >> 20):
                file.write(b" " * (1 << 20))
        if name != METADATA:
            graph = graph_of({name: b""}, **{name: {"contentSize": str(size)}})
            packed.writestr(METADATA, json.dumps(graph))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = refused(path, tmp_path)
    assert ("larger than 16 MiB" if name == METADATA else "times as large") in words
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_more_than_the_disk_or_the_limit_holds_is_refused(tmp_path, monkeypatch):
    path = zipped(tmp_path / "c.zip", FILES)
    monkeypatch.setattr(crate, "LARGEST", 10)
    assert "larger than 0 GiB" in refused(path, tmp_path)
    monkeypatch.setattr(crate, "LARGEST", 2**36)
    monkeypatch.setattr(crate, "MOST_FILES", 2)
    (tmp_path / "unpacked").rmdir()
    assert "more than 2 files" in refused(path, tmp_path)


@pytest.mark.parametrize("text", [b"[" * 200_000 + b"]" * 200_000, b'{"@graph": ', b"\xff", b"7"])
def test_metadata_that_is_no_graph_is_refused_without_a_traceback(tmp_path, text):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(METADATA, text)
    refused(path, tmp_path)


@pytest.mark.slow
def test_the_command_says_so_in_two_lines(tmp_path):
    path = tmp_path / "c.zip"
    path.write_bytes(b"no zip")
    done = python("-m", "geosd", "verify", path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_zip_without_metadata_and_names_of_control_characters_are_said_in_a_line(tmp_path):
    path = tmp_path / "c.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("inner.zip", b"PK")
    assert f"no {METADATA}" in refused(path, tmp_path)
    (tmp_path / "unpacked").rmdir()
    path = zipped(tmp_path / "d.zip", {"a\x1b]0;title\x07/../b": b"x"})
    assert "\x1b" not in refused(path, tmp_path)
