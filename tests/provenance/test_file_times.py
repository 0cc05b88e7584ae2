"""Results that were copied without their times: contents decide what was made from what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from geosd.files import sha256, write_text
from geosd.provenance.file_times import order_times
from geosd.provenance.manifest import MANIFEST, manifest, write_manifest

LONG_AGO = 1_700_000_000


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A chain of three results, each made from the file `out` of the one before it."""
    monkeypatch.chdir(tmp_path)
    for name, source in (("pool", None), ("train", "pool"), ("evaluate", "train")):
        folder = Path(name)
        write_text(folder / "out", f"contents of {name}")
        inputs = [Path(source, "out")] if source else []
        values = manifest("analyse", inputs, {}, 0.0, {"out": sha256(folder / "out")}, {})
        write_manifest(folder / MANIFEST, values)
    return [Path(name, MANIFEST) for name in ("pool", "train", "evaluate")]


def set_times(**seconds: int) -> None:
    """Give all files of each folder a time, in seconds after `LONG_AGO`."""
    for name, after in seconds.items():
        for file in Path(name).iterdir():
            os.utime(file, (LONG_AGO + after, LONG_AGO + after))


def time_of(name: str) -> float:
    """When `out` in a folder was written last, in seconds after `LONG_AGO`."""
    return Path(name, "out").stat().st_mtime - LONG_AGO


def would_run(made: list[Path]) -> list[str]:
    """The results that are older than an input, as Snakemake sees them."""
    chain = [path.parent.name for path in made]
    pairs = zip(chain, chain[1:], strict=False)
    return [later for earlier, later in pairs if time_of(earlier) > time_of(later)]


def test_results_in_any_order_of_times_are_brought_into_the_order_of_their_making(made):
    set_times(pool=30, train=10, evaluate=20)
    assert would_run(made) == ["train"]
    assert order_times(made) == made[1:]
    assert would_run(made) == []
    assert [time_of(name) for name in ("pool", "train", "evaluate")] == [30, 30, 30]


def test_times_in_order_are_left_and_no_contents_are_read(made, monkeypatch):
    set_times(pool=10, train=20, evaluate=30)
    monkeypatch.setattr("geosd.provenance.file_times.sha256", None)
    assert order_times(made) == []
    assert [time_of(name) for name in ("pool", "train", "evaluate")] == [10, 20, 30]


def test_an_edited_file_still_counts_as_newer(made):
    set_times(pool=10, train=20, evaluate=30)
    Path("pool/out").write_text("edited")
    assert order_times(made) == []
    assert would_run(made) == ["train"]


def test_a_pool_that_was_made_again_counts_as_newer_whatever_its_time(made):
    write_text("pool/out", "another pool")
    write_manifest(made[0], manifest("analyse", [], {}, 0.0, {"out": sha256("pool/out")}, {}))
    set_times(pool=10, train=20, evaluate=30)
    order_times(made)
    assert would_run(made) == ["train"]


def test_removed_weights_and_damaged_manifests_are_passed_over(made):
    set_times(pool=30, train=10, evaluate=20)
    Path("train/out").unlink()
    Path("pool", MANIFEST).write_text("{")
    assert order_times([*made, Path("never", MANIFEST)]) == [made[1]]


def test_a_line_names_the_file_before_a_long_comparison(made, monkeypatch):
    monkeypatch.setattr("geosd.provenance.file_times.LARGE", 1)
    set_times(pool=30, train=10, evaluate=20)
    said: list[str] = []
    order_times(made, said.append)
    assert len(said) == 2 and said[0].endswith("comparing pool/out")
