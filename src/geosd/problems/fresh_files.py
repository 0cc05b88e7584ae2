"""The files of fresh benchmarks: which one is meant, and that no other one is read in its place.

A file of a catalogue is held to the catalogue's answers. Any other file needs the SHA-256 that the
study gives in `data.fresh`: nothing else would tell it from a later edition.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from geosd.files import sha256
from geosd.problems.dapo.raw_files import BENCHMARKS, RawProblem, read_raw_benchmark
from geosd.problems.dataset_download import DatasetCatalogueEntry, WrongFileError, load_fresh
from geosd.problems.fresh_benchmarks import FreshBenchmark
from geosd.problems.grading import Grader

FOLDER = "bench"
"""Folder of all benchmarks' files in the folder of the raw files."""


def file_of(fresh: FreshBenchmark) -> Path:
    """Path of a fresh benchmark's file in the folder of the raw files."""
    return Path(FOLDER, f"{fresh.name}.jsonl")


def read_fresh(
    folder: Path, fresh: Sequence[FreshBenchmark], source: str, grade: Grader
) -> dict[str, list[RawProblem]]:
    """The problems of fresh benchmarks, by the names that scores call them.

    Raises:
        FileNotFoundError: A file is missing.
        DamagedRowError: A line is no problem.
        WrongFileError: A file is not the pinned one, nothing pins it, or the grader does not find
            one of its answers right.
    """
    known = load_fresh(source)
    found = {}
    for one in fresh:
        path = folder / file_of(one)
        if not path.is_file():
            raise _missing(path, one, known)
        check_pin(one, path, known.get(one.name))
        rows = read_raw_benchmark(path)
        _check_answers(path, rows, grade)
        found[one.benchmark] = rows
    return found


def check_fresh(folder: Path, fresh: Sequence[FreshBenchmark], source: str) -> None:
    """What is wrong with the files of fresh benchmarks before anything is fetched.

    Raises:
        FileNotFoundError: A file is missing that nobody fetches.
        WrongFileError: A file is not the pinned one, or nothing pins it.
    """
    known = load_fresh(source)
    for one in fresh:
        path = folder / file_of(one)
        if path.is_file():
            check_pin(one, path, known.get(one.name))
        elif one.name not in known:
            raise _missing(path, one, known)


def check_pin(fresh: FreshBenchmark, path: Path, entry: DatasetCatalogueEntry | None) -> None:
    """WrongFileError where the study's SHA-256 is another one, or is needed and not given."""
    digest = sha256(path)
    if fresh.sha256 is not None and fresh.sha256 != digest:
        raise WrongFileError(
            f"{path}: SHA-256 expected {fresh.sha256}, as data.fresh says, got {digest}.\nHint: it"
            " is another edition; take the file back, or give its own SHA-256 in data.fresh, and"
            " say so in your report."
        )
    if fresh.sha256 is None and (entry is None or entry.answers is None):
        raise WrongFileError(
            f"{path}: nothing pins it: no published hash of the answers of {fresh.name} is known"
            " here, so that an edited file would be read in silence.\nHint: compare the file with"
            f" its source, then write {fresh.name}@{digest} into data.fresh in place of"
            f" {fresh.name}."
        )


def fresh_hashes(folder: Path, fresh: Sequence[FreshBenchmark]) -> dict[str, str]:
    """The SHA-256 of each fresh benchmark's file, by its path in the folder."""
    return {str(file_of(one)): sha256(folder / file_of(one)) for one in fresh}


def unread_files(folder: Path, fresh: Sequence[FreshBenchmark]) -> list[Path]:
    """Files among the benchmarks that no study of these settings reads."""
    read = {folder / file for file in BENCHMARKS.values()}
    read |= {folder / file_of(one) for one in fresh}
    found = sorted((folder / FOLDER).glob("[!.]*"))
    return [path for path in found if path.is_file() and path not in read]


def fresh_rows(folder: Path, fresh: Sequence[FreshBenchmark], source: str) -> dict[str, int] | None:
    """Problems of each fresh benchmark: the catalogue's, or lines of the file; None without it."""
    known = load_fresh(source)
    sizes = {}
    for one in fresh:
        entry, path = known.get(one.name), folder / file_of(one)
        if entry is not None and entry.rows is not None:
            sizes[one.benchmark] = entry.rows
        elif path.is_file():
            sizes[one.benchmark] = len(path.read_bytes().splitlines())
        else:
            return None
    return sizes


def _missing(
    path: Path, fresh: FreshBenchmark, known: Mapping[str, DatasetCatalogueEntry]
) -> FileNotFoundError:
    return FileNotFoundError(
        f"{path} is not there, and data.fresh lists {fresh.name}.\nHint: rule fetch knows"
        f" {', '.join(known) or 'none'}; docs/problems.md says what the file of another one holds."
    )


def _check_answers(path: Path, rows: Sequence[RawProblem], grade: Grader) -> None:
    """WrongFileError for an answer that no response could match."""
    for number, row in enumerate(rows, start=1):
        verdict = grade(rf"\boxed{{{row.answer}}}", row.answer)
        if not verdict.correct:
            raise WrongFileError(
                f"{path}:{number}: answer is {row.answer[:80]!r}, which the grader does not find"
                f" equal to itself ({verdict.reason}): no response could be right.\nHint: write"
                " the final answer alone; formulas need math-verify: pip install '.[math]'."
            )
