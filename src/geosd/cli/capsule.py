"""One file with all that a study's numbers follow from, and its check without models or network.

A capsule is a zip of an RO-Crate (https://w3id.org/ro/crate/1.1): samples, step logs, manifests,
cards, problems and tidy tables of a study beside its shipped outputs, at the paths that they have
in the project; no weights. `verify` grades every sample again, makes the tidy tables again from
samples and logs, and every table, figure and verdict again from these.
"""

import json
import os
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import tyro

from geosd.cli.analyse import analysed
from geosd.cli.ship import redraw, write_shipped
from geosd.config import load, resolve, settings
from geosd.config.run_folders import RESULTS, RunFolders, read_index
from geosd.files import DamagedFileError, atomic_write, sha256
from geosd.problems.grading import judge_response
from geosd.problems.records import read_problems
from geosd.problems.sources import encoding_of, get_data_source
from geosd.provenance.manifest import MANIFEST, read_manifest
from geosd.reporting import shipping
from geosd.scores.sample_tables import read_samples
from geosd.scores.score_table import Run
from geosd.scores.tidy import read_tidy

METADATA = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.1"
KEPT = (".json", ".jsonl", ".csv", ".md")
"""Endings of what a run's folder gives to the capsule; tokenizers are the base model's."""
OPENS_THOUGHT = "opens_thought"
"""Property of a model: whether its prompt ends inside a thought, where a response then begins."""
SHOWN = 5
"""Differences that are printed of a kind."""
LARGEST = 2**36
"""Bytes of all files of a capsule, at most: a zip can name more than a disk holds."""


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Write a finished study's samples, logs, manifests and outputs into one file.

    Args:
        out: The file, e.g. quick.zip.

    Raises:
        ValueError: The study is not finished.
        FileNotFoundError: A base model or a folder of a run is missing.
    """
    resolved = resolve(load(params), study)
    figures, folders = Path("figures") / study, RunFolders(resolved)
    with tempfile.TemporaryDirectory() as made:
        # Of a study that is not shipped, as quick, DVC has the outputs, or nobody.
        if not (figures / shipping.MANIFEST).exists():
            figures = _as_shipped(study, folders, params, Path(made))
        _pack(study, folders, figures, Path(made), out, params)


def _as_shipped(study: str, folders: RunFolders, params: Path, home: Path) -> Path:
    """The folder, below `home`, of a finished study's outputs in the form that git keeps."""
    files = folders.tidy_files()
    tidy = tuple(Path(file) for name in folders.tidy_shown() for file in files[name])
    if missing := [file for file in tidy if not file.is_file()]:
        raise ValueError(
            f"{missing[0]} is missing: study {study} is not finished.\nHint: make run STUDY={study}"
        )
    write_shipped(study, tidy, home / "figures" / study, params)
    return home / "figures" / study


def _pack(
    study: str, folders: RunFolders, figures: Path, home: Path, out: Path, params: Path
) -> None:
    """Write the file of a study whose shipped form is `figures`, here or below `home`."""
    from geosd.models.load_and_save import load_tokenizer  # what checks a capsule needs no torch

    resolved, shipped, rows = folders.study, shipping.read_shipped(figures), folders.rows()
    opened = {}
    for row in rows:
        if row.model not in opened:
            tokenizer, generation = load_tokenizer(Path(row.base))
            recipe = settings("evaluate", resolved, row.model)
            opened[row.model] = encoding_of(recipe, tokenizer, generation).opens_thought
    whole = [figures, Path(RESULTS, study, "analyse"), Path(folders.data)]
    runs = {Path(f) for row in rows for f in (row.train, row.evaluate, row.pool) if f}
    files = {params, *Path(RESULTS, study).glob("runs*"), *map(Path, ("LICENSE", "CITATION.cff"))}
    files |= {
        f for folder in whole for f in folder.rglob("*") if f.suffix[1:] not in shipping.NOT_KEPT
    }
    files |= {f for folder in runs for f in folder.iterdir() if f.suffix in KEPT}
    files |= {Path(row.base, MANIFEST) for row in rows}
    kept = {
        (f.relative_to(home) if f.is_relative_to(home) else f).as_posix(): f
        for f in sorted(files)
        if f.is_file() and not f.name.startswith(("tokenizer", ".snake"))
    }
    described = _metadata(shipped.study, shipped.about, kept, opened)
    with atomic_write(out) as temporary, zipfile.ZipFile(temporary, "w") as z:
        z.writestr(zipfile.ZipInfo(METADATA), json.dumps(described, indent=1))
        for name, file in kept.items():
            entry = zipfile.ZipInfo(name)  # with no time: the same bytes again
            entry.compress_type = zipfile.ZIP_DEFLATED
            with file.open("rb") as source, z.open(entry, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target)
    print(f"{out}: {len(kept)} files, {out.stat().st_size / 1e6:.1f} MB. `geosd verify {out}`")


def _metadata(
    study: str, about: str, files: Mapping[str, Path], opened: Mapping[str, bool]
) -> dict[str, Any]:
    """The graph of an RO-Crate: the study, and each file with its size and hash."""
    entities = [
        {
            "@id": name,
            "@type": "File",
            "contentSize": str(file.stat().st_size),
            "sha256": sha256(file),
        }
        for name, file in files.items()
    ]
    properties = [
        {"@id": f"#{model}", "@type": "PropertyValue", "name": OPENS_THOUGHT, "value": value}
        for model, value in opened.items()
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Study {study} of geosd",
        "description": about,
        "identifier": study,
        "datePublished": datetime.now(UTC).date().isoformat(),
        "license": {"@id": "LICENSE"},
        "hasPart": [{"@id": entity["@id"]} for entity in entities],
        "additionalProperty": [{"@id": each["@id"]} for each in properties],
    }
    described = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}}
    graph = [{**described, "conformsTo": {"@id": CRATE}}, root, *properties, *entities]
    return {"@context": f"{CRATE}/context", "@graph": graph}


def verify(capsule: Annotated[Path, tyro.conf.Positional]) -> int:
    """Grade a capsule's samples again, and make its tables and figures again, offline.

    Returns:
        0 if all is as it was, else 1.

    Raises:
        DamagedFileError: The file is no capsule, or a file in it is not the one that was put there.
    """
    capsule = capsule.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        entities = _unpack(capsule)
        study = entities["./"]["identifier"]
        opened = {
            name.removeprefix("#"): entity["value"]
            for name, entity in entities.items()
            if entity.get("name") == OPENS_THOUGHT
        }
        figures = Path("figures") / study
        shipped = shipping.read_shipped(figures)
        if changed := shipping.changed_files(figures, shipped.files | shipped.inputs):
            raise DamagedFileError(f"{capsule}: {changed[0]} is not what was shipped.{_HINT}")
        print(f"{len(entities['./']['hasPart'])} files have the hashes that the capsule lists.")
        sound = _report("samples have another verdict", _regraded(study, opened))
        sound &= _report("tidy tables are others", _analysed_again(study, figures))
        redraw(study, Path("figures"))
        sound &= _report(
            "files of outputs are others", shipping.changed_files(figures, shipped.files)
        )
        now = {name: version(name) for name in shipped.packages}
        if now != shipped.packages:
            print(f"They were made with {shipped.packages}, and are compared with {now}.")
    print("The capsule is sound." if sound else "The capsule differs from what is made again.")
    return 0 if sound else 1


_HINT = "\nHint: take the capsule from its source again."


def _unpack(capsule: Path) -> dict[str, dict[str, Any]]:
    """Unpack the files that a capsule lists, here; the entities of its graph by `@id`.

    Nothing else is unpacked, and nothing outside this folder.
    """
    try:
        with zipfile.ZipFile(capsule) as packed:
            graph = json.loads(packed.read(METADATA))["@graph"]
            entities = {entity["@id"]: entity for entity in graph}
            names = [part["@id"] for part in entities["./"]["hasPart"]]
            if sum(int(entities[name]["contentSize"]) for name in names) > LARGEST:
                raise ValueError(f"its files are larger than {LARGEST / 2**30:.0f} GiB")
            for name in names:
                if str(packed.getinfo(name).file_size) != entities[name]["contentSize"]:
                    raise ValueError(f"{name} has another size than the capsule lists")
                file = packed.extract(name)  # inside this folder, whatever the name, and no link
                if os.path.relpath(file) != name:
                    raise ValueError(f"{name!r} is no file in the capsule's folder")
                if sha256(file) != entities[name]["sha256"]:
                    raise ValueError(f"{name} has another hash than the capsule lists")
            return entities
    except (KeyError, TypeError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DamagedFileError(f"{capsule} is no whole capsule: {error}.{_HINT}") from error


def _regraded(study: str, opened: Mapping[str, bool]) -> Iterator[str]:
    """The samples whose verdict is another one than was recorded; `opened` by model."""
    counts: Counter[bool] = Counter()
    for row in read_index(Path(RESULTS, study, "runs.csv")):
        folder = Path(row.evaluate)
        made = read_manifest(folder)
        answers = {}
        for file in (path for path in made["inputs"] if path.endswith(".jsonl")):
            answers |= {(p.benchmark, p.id): p.answer for p in read_problems(Path(file))}
        run = Run(row.model, row.variant, row.seed, row.draw)
        with closing(get_data_source(made["settings"]["source"]).grader()) as grade:
            for sample in read_samples(run, folder / "samples.jsonl"):
                verdict = judge_response(
                    sample.text,
                    answers[sample.benchmark, sample.problem_id],
                    grade,
                    truncated=sample.finish == "length",
                    opened_thought=opened[row.model],
                )
                same = (verdict.correct, verdict.answer) == (sample.correct, sample.answer)
                counts[same] += 1
                if not same:
                    where = f"{folder}: {sample.benchmark}, {sample.problem_id}, {sample.sample}"
                    yield f"{where}: {verdict.reason}, recorded {sample.reason}"
    print(f"{counts.total():,} samples were graded again.")


def _analysed_again(study: str, figures: Path) -> Iterator[str]:
    """The shipped tidy tables that samples and step logs do not give."""
    rows = read_index(Path(RESULTS, study, "runs.csv"))
    recipe = read_manifest(Path(RESULTS, study, "analyse"))["settings"]
    runs = {Run(row.model, row.variant, row.seed, row.draw): row for row in rows}
    tables, _ = analysed(runs, recipe)
    kept = shipping.source_tables(figures)
    for name in sorted(kept.keys() & tables.keys()):
        text = tables[name].to_csv(index=False)
        Path(f"{name}.csv").write_text(text, encoding="utf-8")
        if not read_tidy(name, Path(f"{name}.csv")).equals(read_tidy(name, kept[name])):
            yield name
    others = ", ".join(sorted(kept.keys() - tables.keys())) or "none"
    print(f"{len(kept.keys() & tables.keys())} tidy tables were made again; not made: {others}.")


def _report(what: str, found: Iterable[str]) -> bool:
    """Print the first differences of a kind and how many there are; whether there are none."""
    listed = list(found)
    print(f"{len(listed)} {what}.", *listed[:SHOWN], sep="\n  ")
    return not listed
