"""Raw files are the pinned ones, or refused; only absent files are fetched from the network."""

import hashlib
import json
from dataclasses import replace

import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from geosd.problems.dapo.raw_files import BENCHMARKS, TRAINING, read_raw_files
from geosd.problems.dataset_download import (
    DatasetCatalogueEntry,
    DownloadError,
    WrongFileError,
    downloaded_answers_sha256,
    fetch_dataset_file,
    load_dataset_catalogue,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = [
    {"number": 1, "question": "One?", "answer": "070"},
    {"number": 2, "question": "Two?", "answer": "27.0"},
    {"number": 3, "question": "Three?", "answer": r"336^\circ"},
]
ENTRY = DatasetCatalogueEntry(
    name="bench/small.jsonl",
    repo="owner/small",
    revision=COMMIT,
    file="test.parquet",
    sha256=None,
    columns={"id": "number", "problem": "question", "answer": "answer"},
    integers=True,
    rows=3,
    answers=downloaded_answers_sha256(["27", "70", "336"]),
)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub in a folder; `downloads` lists the files that were fetched from it."""
    file = tmp_path / "hub/test.parquet"
    file.parent.mkdir()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)

    class Hub:
        downloads, path, network = [], file, True

    def download(repo, name, *, repo_type, revision, local_files_only=False):
        assert (repo, name, repo_type, revision) == ("owner/small", file.name, "dataset", COMMIT)
        if local_files_only:
            raise LocalEntryNotFoundError("not in the cache")
        Hub.downloads.append(name)
        if not Hub.network:
            raise LocalEntryNotFoundError("offline")
        return str(file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return Hub


def test_a_file_is_fetched_once_and_converted(hub, tmp_path):
    record = fetch_dataset_file(ENTRY, tmp_path / "raw")
    lines = (tmp_path / "raw/bench/small.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "1", "problem": "One?", "answer": "70"},
        {"id": "2", "problem": "Two?", "answer": "27"},
        {"id": "3", "problem": "Three?", "answer": "336"},
    ]
    written = (tmp_path / "raw/bench/small.jsonl").read_bytes()
    assert record["sha256"] == hashlib.sha256(written).hexdigest()
    hub.network = False
    assert fetch_dataset_file(ENTRY, tmp_path / "raw") == record and len(hub.downloads) == 1


def test_a_file_of_another_hash_is_refused(hub, tmp_path):
    with pytest.raises(WrongFileError, match="(?s)bench/small.jsonl.*expected 000.*got.*Hint:"):
        fetch_dataset_file(replace(ENTRY, sha256="0" * 64), tmp_path / "raw")


def test_another_edition_is_known_by_its_answers(hub, tmp_path):
    (tmp_path / "raw/bench").mkdir(parents=True)
    rows = "".join(
        json.dumps({"id": str(i), "problem": "?", "answer": "1"}) + "\n" for i in range(3)
    )
    (tmp_path / "raw/bench/small.jsonl").write_text(rows)
    with pytest.raises(
        WrongFileError, match="(?s)expected 3 problems whose answers.*another edition"
    ):
        fetch_dataset_file(ENTRY, tmp_path / "raw")
    assert hub.downloads == []


@pytest.mark.parametrize("content", ["{", "[]", '{"id": "1"}', "[" * 10**5])
def test_a_benchmark_that_holds_no_answers_is_named(hub, tmp_path, content):
    path = tmp_path / "raw/bench/small.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(WrongFileError, match=rf"(?s){path}: no JSON lines .*\nHint: "):
        fetch_dataset_file(ENTRY, tmp_path / "raw")


def test_without_network_the_error_says_where_files_go(hub, tmp_path):
    hub.network = False
    with pytest.raises(
        DownloadError, match=f"(?s)test.parquet of owner/small at {COMMIT}.*data.raw"
    ):
        fetch_dataset_file(ENTRY, tmp_path / "raw")


def test_a_column_that_is_not_there_is_named(hub, tmp_path):
    entry = replace(ENTRY, columns={**ENTRY.columns, "problem": "text"})
    with pytest.raises(
        WrongFileError, match="(?s)row 0 .* has no text, only number, question, answer"
    ):
        fetch_dataset_file(entry, tmp_path / "raw")


def test_an_answer_that_is_no_integer_is_named(hub, tmp_path):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{**ROWS[0], "answer": "1/2"}]), hub.path)
    with pytest.raises(WrongFileError, match="(?s)row 0 answers '1/2'"):
        fetch_dataset_file(ENTRY, tmp_path / "raw")


def test_the_catalogue_lists_the_files_that_the_source_reads_each_pinned_to_a_commit():
    entries = load_dataset_catalogue("dapo-math")
    assert {e.name for e in entries} == {str(TRAINING), *map(str, BENCHMARKS.values())}
    for entry in entries:
        assert len(entry.revision) == 40 and int(entry.revision, 16)
        assert entry.sha256 is None or len(entry.sha256) == 64
    assert load_dataset_catalogue("search") == ()


def test_published_files_in_place_are_what_the_catalogue_says(shared_data, tmp_path, monkeypatch):
    def no_network(*args, **kwargs):
        raise AssertionError("a file in place was fetched")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", no_network)
    for entry in load_dataset_catalogue("dapo-math"):
        fetch_dataset_file(entry, shared_data)
    assert len(read_raw_files(shared_data).training) == 17917
