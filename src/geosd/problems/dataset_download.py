"""Raw files of a data set, fetched from the hub as its catalogue `<source>.yaml` pins them."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pyarrow.parquet
import yaml

from geosd.files import copy_file, sha256, write_text
from geosd.problems.fresh_benchmarks import FreshBenchmark


class WrongFileError(ValueError):
    """A downloaded file of a data set is not the one that the catalogue pins."""


class DownloadError(RuntimeError):
    """A file of a data set is not here and cannot be downloaded."""


@dataclass(frozen=True)
class DatasetCatalogueEntry:
    """One file of a data set, as its catalogue pins it on the hub.

    It goes to `name` in the folder of raw files, from `file` of the data set repository `repo` at
    the commit `revision`. `sha256` is None where it is not known; `same` are those of other files
    with the same rows. `columns` are the repository's names of id, problem and answer
    (None keeps the file as is), `integers` says that every answer is one, written 70 for `070`;
    `rows` and `answers` (`downloaded_answers_sha256`) are checked where they are given. A `fresh`
    one is a benchmark that a study reads where its `data.fresh` lists it.
    """

    name: str
    repo: str
    revision: str
    file: str
    sha256: str | None
    same: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None
    integers: bool = False
    rows: int | None = None
    answers: str | None = None
    fresh: bool = False


def load_dataset_catalogue(
    source: str, fresh: Sequence[FreshBenchmark] = ()
) -> tuple[DatasetCatalogueEntry, ...]:
    """The catalogue of a data set, its files in order; none where it has no catalogue.

    They are the data set's own, then the `fresh` benchmarks that the catalogue knows.
    """
    known = load_fresh(source)
    own = [entry for entry in _entries(source) if not entry.fresh]
    return (*own, *(known[one.name] for one in fresh if one.name in known))


def load_fresh(source: str) -> dict[str, DatasetCatalogueEntry]:
    """The fresh benchmarks in the catalogue of a data set, by name."""
    return {Path(entry.name).stem: entry for entry in _entries(source) if entry.fresh}


def _entries(source: str) -> tuple[DatasetCatalogueEntry, ...]:
    name = f"{source.replace('-', '_')}.yaml"
    path = resources.files("geosd.problems.sources").joinpath(name)
    if not path.is_file():
        return ()
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        DatasetCatalogueEntry(**{"name": name, **fields, "same": tuple(fields.get("same", ()))})
        for name, fields in entries.items()
    )


def fetch_dataset_file(entry: DatasetCatalogueEntry, raw: Path) -> dict[str, str]:
    """Download one file of a data set from the hub and check it, or check the one in place.

    Returns its `sha256`, and the `repo` and `revision` that it is from, or should be from.

    Raises:
        WrongFileError: A file is not the one that is pinned.
        DownloadError: The file is neither in place nor in the cache, and there is no network.
    """
    path = raw / entry.name
    if not path.is_file():
        fetched = _download(entry)
        _check_sha256(entry, fetched)
        if entry.columns is None:
            copy_file(fetched, path)
        else:
            write_text(path, _to_json_lines(entry, fetched))
    if entry.columns is None:
        _check_sha256(entry, path)
    else:
        _check_answers(entry, path)
    return {"sha256": sha256(path), "repo": entry.repo, "revision": entry.revision}


def cached_dataset_file(entry: DatasetCatalogueEntry) -> Path | None:
    """The file of a data set in the hub's cache; None where it is not there."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    with contextlib.suppress(LocalEntryNotFoundError):
        return _from_hub(entry, local_files_only=True)
    return None


def _from_hub(entry: DatasetCatalogueEntry, **options: bool) -> Path:
    import huggingface_hub

    pinned = {"repo_type": "dataset", "revision": entry.revision}
    return Path(huggingface_hub.hf_hub_download(entry.repo, entry.file, **pinned, **options))


def _download(entry: DatasetCatalogueEntry) -> Path:
    """The hub's file, out of the cache where it is there."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return cached_dataset_file(entry) or _from_hub(entry)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise DownloadError(
            f"{entry.name}: {entry.file} of {entry.repo} at {entry.revision} is not in the cache"
            f" and cannot be fetched: {type(error).__name__}: {error}\nHint: without network, put"
            " the files in the folder that data.raw names; docs/problems.md says what they hold."
        ) from error


def _check_sha256(entry: DatasetCatalogueEntry, path: Path) -> None:
    """Hold a file of the hub to its pinned hash, where there is one."""
    got = sha256(path)
    if entry.sha256 is not None and got not in (entry.sha256, *entry.same):
        raise WrongFileError(
            f"{entry.name} ({path}): SHA-256 expected {entry.sha256}, got {got}.\nHint: remove the"
            " file and fetch it again; if you mean to use another one, pin it in the source's"
            " catalogue, and say so in your report."
        )


def _to_json_lines(entry: DatasetCatalogueEntry, path: Path) -> str:
    """The hub's rows as JSON lines with id, problem and answer."""
    assert entry.columns is not None
    if path.suffix == ".parquet":
        rows = pyarrow.parquet.read_table(path).to_pylist()
    else:
        # Of bytes, because a text's lines also end at U+2028, which JSON leaves inside strings.
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    lines = []
    for number, published in enumerate(rows):
        if missing := [name for name in entry.columns.values() if name not in published]:
            raise WrongFileError(
                f"{entry.name}: row {number} of {entry.file} of {entry.repo} has no"
                f" {', '.join(missing)}, only {', '.join(published)}.\nHint: the catalogue's"
                " `columns` name the repository's."
            )
        row = {name: str(published[column]) for name, column in entry.columns.items()}
        if entry.integers:
            row["answer"] = _integer(row["answer"], entry, number)
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def _integer(answer: str, entry: DatasetCatalogueEntry, number: int) -> str:
    r"""An integer in its shortest form; copies write 070, 70.0 or 336^\circ."""
    try:
        bare = float(answer.strip().strip("$").removesuffix(r"^\circ"))
        if bare != int(bare):
            raise ValueError
    except (ValueError, OverflowError):
        raise WrongFileError(
            f"{entry.name}: row {number} answers {answer!r}, which is no integer.\nHint: the"
            " catalogue says that every answer of this benchmark is one."
        ) from None
    return str(int(bare))


def downloaded_answers_sha256(answers: Iterable[str]) -> str:
    """SHA-256 of a downloaded benchmark's answers, sorted: copies differ in words and order."""
    return hashlib.sha256("\n".join(sorted(answers)).encode()).hexdigest()


def _check_answers(entry: DatasetCatalogueEntry, path: Path) -> None:
    """Hold a benchmark to its number of problems and to their answers, where these are known."""
    try:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        answers = [str(row["answer"]) for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WrongFileError(
            f"{path}: no JSON lines with an answer each: {error!r}.\nHint: remove the file and"
            " fetch it again."
        ) from error
    got = downloaded_answers_sha256(answers)
    if (len(rows), got) != (entry.rows or len(rows), entry.answers or got):
        raise WrongFileError(
            f"{entry.name} ({path}): expected {entry.rows} problems whose answers hash to"
            f" {entry.answers or 'anything'}, got {len(rows)} and {got}.\nHint: it is another"
            " edition of the benchmark; remove the file and fetch it again."
        )
