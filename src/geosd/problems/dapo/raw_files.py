"""The raw files: DAPO-Math-17k as its authors publish it, and the four benchmarks as JSON lines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from geosd.files import sha256

TRAINING = Path("train/dapo-math-17k.parquet")
BENCHMARKS = {
    name: Path(f"bench/{name}.jsonl") for name in ("aime24", "aime25", "amc23", "math500")
}

# DAPO words every prompt alike. The project words its own, so what surrounds the problem goes.
PREFIX = (
    "Solve the following math problem step by step. The last line of your response should be of"
    " the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
)
SUFFIX = '\n\nRemember to put your answer on its own line after "Answer:".'


class DamagedRawRowError(ValueError):
    """A row of DAPO-Math's or a benchmark's raw file that does not hold what it should."""


@dataclass(frozen=True)
class RawProblem:
    """One problem of a raw file, DAPO-Math's or a benchmark's, without the words of a prompt."""

    id: str
    text: str
    answer: str


@dataclass(frozen=True)
class RawFiles:
    """DAPO-Math-17k's rows in the file's order, benchmarks by name, and the files' SHA-256."""

    training: Sequence[RawProblem]
    benchmarks: Mapping[str, Sequence[RawProblem]]
    sha256: Mapping[str, str]


def read_raw_files(folder: Path) -> RawFiles:
    """Read `train/dapo-math-17k.parquet` and `bench/{aime24,aime25,amc23,math500}.jsonl`.

    Raises:
        FileNotFoundError: Files are missing; names them all.
        DamagedRawRowError: A row is not what it should be; names file and row.
    """
    files = [TRAINING, *BENCHMARKS.values()]
    if missing := [str(file) for file in files if not (folder / file).is_file()]:
        raise FileNotFoundError(
            f"{folder} lacks {', '.join(missing)}.\nHint: docs/problems.md describes the raw"
            " files; data.raw of params.yaml names their folder."
        )
    return RawFiles(
        training=read_raw_dapo(folder / TRAINING),
        benchmarks={name: read_raw_benchmark(folder / file) for name, file in BENCHMARKS.items()},
        sha256={str(file): sha256(folder / file) for file in files},
    )


def read_raw_dapo(path: Path) -> list[RawProblem]:
    """DAPO-Math-17k's problems; DamagedRawRowError for other columns or another wording."""
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowException as error:
        message = f"{path}: no parquet file that can be read: {error}.\n{_HINT}"
        raise DamagedRawRowError(message) from error
    if missing := [name for name in _COLUMNS if name not in file.schema_arrow.names]:
        raise DamagedRawRowError(f"{path}: no column {', '.join(missing)}.\n{_HINT}")
    rows: list[RawProblem] = []
    # The set has been published with a hundred copies of each row: copies share one object.
    seen: dict[RawProblem, RawProblem] = {}
    for batch in file.iter_batches(columns=_COLUMNS):
        for value in batch.to_pylist():
            row = _dapo_row(value, f"{path}, row {len(rows)}")
            rows.append(seen.setdefault(row, row))
    return rows


def read_raw_benchmark(path: Path) -> list[RawProblem]:
    """A benchmark's problems, of JSON lines; DamagedRawRowError names file and line."""
    rows = []
    # Of bytes, because a text's lines also end at U+2028, which JSON leaves inside strings.
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            value = json.loads(line)
            row = RawProblem(value["id"], value["problem"].strip(), value["answer"])
            if not all(isinstance(field, str) for field in (row.id, row.answer)):
                raise TypeError("id and answer are strings")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedRawRowError(
                f"{path}:{number}: not a problem: {error!r}. Expected one JSON object with the"
                " strings id, problem, answer.\nHint: docs/problems.md describes the raw files."
            ) from error
        rows.append(row)
    return rows


_COLUMNS = ["prompt", "reward_model", "extra_info"]
_HINT = (
    "Hint: expected is the set as published: prompt (one message), reward_model.ground_truth,"
    " extra_info.index."
)


def _dapo_row(value: dict[str, Any], place: str) -> RawProblem:
    try:
        (message,) = value["prompt"]
        text, answer = message["content"], value["reward_model"]["ground_truth"]
        if not (text.startswith(PREFIX) and text.endswith(SUFFIX)):
            raise ValueError("the prompt is not worded as DAPO's are")
        name = value["extra_info"]["index"]
        if not (isinstance(name, str) and isinstance(answer, str)):
            raise TypeError("index and ground_truth are strings")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedRawRowError(f"{place}: not a DAPO problem: {error!r}.\n{_HINT}") from error
    return RawProblem(name, text.removeprefix(PREFIX).removesuffix(SUFFIX).strip(), answer)
