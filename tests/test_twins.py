"""A result is taken only from one that is what would be made now."""

import json
from pathlib import Path

import pytest

from geosd.provenance.manifest import manifest
from geosd.provenance.reuse import hashes, take, twin

MADE_OF = {"settings": {"steps": 3, "seed": None}, "held_out": "abc"}
MINE = Path("mine")


@pytest.fixture
def result(tmp_path):
    """A finished result of two files."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "weights").write_bytes(b"weights")
    (folder / "words").write_bytes(b"words")
    told = {**manifest([], {}, 1.0), "made_of": MADE_OF, "files": hashes(folder)}
    (folder / "manifest.json").write_text(json.dumps(told))
    return folder


@pytest.fixture
def retold(result):
    """Changes what the result's manifest says."""

    def change(*keys, to):
        path = result / "manifest.json"
        told = at = json.loads(path.read_text())
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to
        path.write_text(json.dumps(told))

    return change


def test_a_twin_is_found_and_its_files_are_copied(result, tmp_path):
    assert twin([tmp_path / "absent", tmp_path, result], MINE, MADE_OF) == result
    assert twin([result], result, MADE_OF) is None
    take(result, tmp_path / "mine")
    assert hashes(tmp_path / "mine") == hashes(result)
    assert set(hashes(result)) == {"weights", "words"}


def test_of_several_the_first_is_taken(result, tmp_path):
    result.rename(tmp_path / "first")
    take(tmp_path / "first", tmp_path / "second")
    (tmp_path / "second/manifest.json").write_bytes((tmp_path / "first/manifest.json").read_bytes())
    both = [tmp_path / "second", tmp_path / "first"]
    assert twin(both, MINE, MADE_OF) == tmp_path / "second"


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (["made_of", "held_out"], "abd"),
        (["made_of", "settings", "steps"], 4),
        (["made_of", "settings", "more"], 1),
        (["packages", "python"], "2.7.18"),
        (["packages", "torch"], "1.0"),
        (["code", "files", "geosd/files.py"], "0" * 64),
        (["code", "files", "geosd/files.py"], None),
        (["code", "files", "geosd/gone.py"], "0" * 64),
        (["files", "weights"], "0" * 64),
        (["files", "absent"], "0" * 64),
    ],
)
def test_whatever_else_it_was_made_of_it_is_no_twin(result, retold, keys, to):
    retold(*keys, to=to)
    assert twin([result], MINE, MADE_OF) is None


def test_a_result_that_has_changed_since_is_none(result):
    (result / "weights").write_bytes(b"heights")
    assert twin([result], MINE, MADE_OF) is None


def test_nothing_is_followed_out_of_its_folder(result, retold, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (result / "weights").rename(outside / "weights")
    digest = hashes(outside)["weights"]
    (result / "weights").symlink_to(outside / "weights")
    assert twin([result], MINE, MADE_OF) is None
    (result / "weights").unlink()
    retold("files", to={"../outside/weights": digest})
    assert twin([result], MINE, MADE_OF) is None


def test_an_older_manifest_names_no_files_and_has_no_twin(result):
    (result / "manifest.json").write_text(json.dumps(manifest([], {}, 1.0)))
    assert twin([result], MINE, MADE_OF) is None
