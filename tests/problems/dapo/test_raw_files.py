import hashlib
import json

import pyarrow
import pyarrow.parquet
import pytest

from geosd.problems.dapo.raw_files import (
    BENCHMARKS,
    PREFIX,
    SUFFIX,
    TRAINING,
    DamagedRawRowError,
    RawProblem,
    read_raw_benchmark,
    read_raw_dapo,
    read_raw_files,
)


def published(name="a", text="Find $x$.", answer="1", prefix=PREFIX):
    return {
        "data_source": "math_dapo",
        "prompt": [{"content": f"{prefix}{text}{SUFFIX}", "role": "user"}],
        "reward_model": {"ground_truth": answer, "style": "rule"},
        "extra_info": {"index": name},
    }


def parquet(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def folder_of(path):
    parquet(path / TRAINING, [published()])
    (path / "bench").mkdir()
    for name, file in BENCHMARKS.items():
        line = json.dumps({"id": f"{name}-1", "problem": " Find $y$.\n", "answer": "2", "level": 5})
        (path / file).write_text(line + "\n")
    return path


def test_the_problem_is_taken_out_of_its_prompt(tmp_path):
    rows = [published(text=" Find $x$.\n"), published("b", SUFFIX + "?", "-3")]
    path = parquet(tmp_path / "a.parquet", rows)
    assert read_raw_dapo(path) == [
        RawProblem("a", "Find $x$.", "1"),
        RawProblem("b", SUFFIX.strip() + "?", "-3"),
    ]


def test_copies_are_all_read(tmp_path):
    assert len(read_raw_dapo(parquet(tmp_path / "a.parquet", [published()] * 300))) == 300


def test_a_folder_gives_rows_benchmarks_and_hashes(tmp_path):
    raw = read_raw_files(folder_of(tmp_path))
    assert list(raw.training) == [RawProblem("a", "Find $x$.", "1")]
    assert list(raw.benchmarks) == ["aime24", "aime25", "amc23", "math500"]
    assert list(raw.benchmarks["amc23"]) == [RawProblem("amc23-1", "Find $y$.", "2")]
    for name, digest in raw.sha256.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    assert len(raw.sha256) == 5


def test_missing_files_are_all_named(tmp_path):
    folder = folder_of(tmp_path)
    (folder / TRAINING).unlink()
    (folder / BENCHMARKS["amc23"]).unlink()
    with pytest.raises(
        FileNotFoundError, match="dapo-math-17k.parquet, bench/amc23.jsonl"
    ) as error:
        read_raw_files(folder)
    assert "Hint:" in str(error.value)


def test_another_wording_is_an_error_that_names_the_row(tmp_path):
    path = parquet(tmp_path / "a.parquet", [published(), published("b", prefix="Solve: ")])
    with pytest.raises(DamagedRawRowError, match="a.parquet, row 1: (.|\n)*not worded(.|\n)*Hint:"):
        read_raw_dapo(path)


def test_other_columns_are_named(tmp_path):
    path = parquet(tmp_path / "a.parquet", [{"prompt": "Find $x$.", "solution": "1"}])
    with pytest.raises(DamagedRawRowError, match="no column reward_model, extra_info(.|\n)*Hint:"):
        read_raw_dapo(path)


def test_a_file_that_is_no_parquet_says_so(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text("<html>")
    with pytest.raises(DamagedRawRowError, match="no parquet file(.|\n)*Hint:"):
        read_raw_dapo(path)


def test_a_separator_inside_a_string_ends_no_line(tmp_path):
    path = tmp_path / "amc23.jsonl"
    line = json.dumps({"id": "a", "problem": "b\u2028c\x85d", "answer": "1"}, ensure_ascii=False)
    path.write_text(f"{line}\n{line}\n", encoding="utf-8")
    assert [row.text for row in read_raw_benchmark(path)] == ["b\u2028c\x85d"] * 2


def test_a_line_that_is_no_utf8_is_named(tmp_path):
    path = tmp_path / "amc23.jsonl"
    path.write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(DamagedRawRowError, match="amc23.jsonl:1: (.|\n)*Hint:"):
        read_raw_benchmark(path)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"id": "a", "problem": "b"}', '{"id": "a", "problem": "b", "answer": 27.0}'],
)
def test_a_damaged_line_of_a_benchmark_is_named(tmp_path, line):
    path = tmp_path / "amc23.jsonl"
    path.write_text('{"id": "a", "problem": "b", "answer": "1"}\n' + line + "\n")
    with pytest.raises(DamagedRawRowError, match="amc23.jsonl:2: (.|\n)*Hint:"):
        read_raw_benchmark(path)
