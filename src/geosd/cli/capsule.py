"""One file with all that a study's numbers follow from.

A capsule is a zip of an RO-Crate (`geosd.provenance.crate`): samples, step logs, manifests,
problems and tidy tables of a study and its outputs, at the paths that they have in the project;
no weights. Names of machines stay here. `geosd.cli.verify` makes it again.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from geosd import __version__
from geosd.cli.pages import environment_page_program
from geosd.cli.run_manifests import manifests_of_runs
from geosd.cli.ship import ship_study_files
from geosd.config import load, resolve_study, settings
from geosd.config.rule_settings import configuration_rule_settings
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.config.study import Study
from geosd.files import write_text
from geosd.problems.encoding import encoding_of
from geosd.provenance.crate import write_crate
from geosd.provenance.machine_names import without_names_of_machines
from geosd.provenance.manifest import MANIFEST, read_manifest, write_manifest
from geosd.provenance.run_crate import (
    RUN,
    WORKFLOW_CRATE,
    citation_entities,
    profile_entities,
    run_entities,
    workflow_entities,
)
from geosd.reporting import shipping
from geosd.reporting.environment_page import environment_summary
from geosd.reporting.study_page import CONFIGURATION

KEPT = (".json", ".jsonl", ".csv")
"""Endings of what a run's folder gives to the capsule; tokenizers are the base model's."""
NOT_KEPT = "tokenizer"
"""Beginning of the names of files that it leaves out."""
OPENS_THOUGHT = "opens_thought"
"""Property of a model: whether its prompt ends inside a thought, where a response then begins."""
PARAMS = "params.yaml"
LICENSE, CITATION = "LICENSE", "CITATION.cff"
TEXTS = (LICENSE, CITATION)
"""Files that say who made it, and what may be done with it."""
SNAKEFILE = "Snakefile"
INCLUDED = re.compile(r'^ *include: "(workflow/[\w/]+\.smk)"$', re.MULTILINE)
"""How the Snakefile names the files of its rules."""


def main(
    study: str, out: Path, agent: str | None = None, params: Path = Path("params.yaml")
) -> None:
    """Write a finished study's samples, logs, manifests and outputs into one file.

    Args:
        out: The file, e.g. quick.zip.
        agent: Who ran the study, by name; without it the capsule does not say.

    Raises:
        ValueError: The study is not finished.
        FileNotFoundError: A base model or a folder of a run is missing.
    """
    loaded = load(params)
    folders = RunFolders(resolve_study(loaded, study))
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        figures = _as_shipped(study, folders, params, home)
        files = {name: Path(name) for name in TEXTS if Path(name).is_file()}
        files[PARAMS] = params
        workflow = workflow_files(_home_of_workflow())
        files.update(workflow)
        made = dict(_results(folders, home))
        made.update(_outputs(figures, home))
        files.update(made)
        root, entities = _described(folders, sorted(made), [*workflow][1:], agent)
        root |= {
            "name": f"Study {study} of geosd",
            "description": folders.study.overlay.about,
            "identifier": study,
            "datePublished": datetime.now(UTC).date().isoformat(),
            "license": {"@id": LICENSE},
        }
        listed = dict(sorted(files.items()))
        write_crate(out, listed, root, _properties(folders), entities, [WORKFLOW_CRATE])
    print(f"{out}: {len(files)} files, {out.stat().st_size / 1e6:.1f} MB. `geosd verify {out}`")


def workflow_files(home: Path) -> dict[str, Path]:
    """The Snakefile and the files that it includes, by their names in a capsule."""
    snakefile = home / SNAKEFILE
    included = included_rules(snakefile.read_text(encoding="utf-8"))
    return {SNAKEFILE: snakefile, **{name: home / name for name in included}}


def included_rules(text: str) -> list[str]:
    """The files below workflow/ that a Snakefile includes, in its order."""
    return INCLUDED.findall(text)


def _home_of_workflow() -> Path:
    """The folder of the workflow that runs here; in another workflow's folder a link leads there.

    Raises:
        FileNotFoundError: There is no Snakefile.
    """
    home = Path("workflow").resolve().parent
    if not (home / SNAKEFILE).is_file():
        raise FileNotFoundError(
            f"{home / SNAKEFILE} is missing: a capsule holds the workflow that made its results.\n"
            "Hint: type this in the folder of a clone of geosd."
        )
    return home


def _described(
    folders: RunFolders, made: list[str], rules: list[str], agent: str | None
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """What the root and other entities say of workflow, run, authors and paper."""
    study = folders.study.name
    runs = manifests_of_runs(folders.rows())
    summary = environment_summary(runs)
    words = f"Study {study}: {summary.steps}" if summary else f"Study {study}"
    days = {run.manifest["date"] for run in runs if "date" in run.manifest}
    profiles, root = profile_entities()
    entities: list[Mapping[str, Any]] = [
        *profiles,
        *workflow_entities(SNAKEFILE, rules, PARAMS, study, __version__),
        *run_entities(SNAKEFILE, PARAMS, made, days, words, agent),
    ]
    root |= {"mainEntity": {"@id": SNAKEFILE}, "mentions": [{"@id": RUN}]}
    citation = Path(CITATION)
    if citation.is_file():
        cited = yaml.safe_load(citation.read_text(encoding="utf-8"))
        authors, of_root = citation_entities(cited)
        entities += authors
        root |= of_root
    return root, entities


def capsule_configuration(study: Study, folder: Path) -> None:
    """Write a study as it is run, as the rule `configuration` does."""
    text = yaml.safe_dump(configuration_rule_settings(study), sort_keys=False, allow_unicode=True)
    write_text(folder / CONFIGURATION, text)


def _as_shipped(study: str, folders: RunFolders, params: Path, home: Path) -> Path:
    """The folder, below `home`, of a finished study's outputs in the form that git keeps."""
    files = folders.tidy_files()
    tidy = tuple(Path(file) for name in folders.tidy_shown() for file in files[name])
    index = Path(RESULTS, study, "runs.csv")
    missing = [file for file in (*tidy, index) if not file.is_file()]
    if missing:
        raise ValueError(
            f"{missing[0]} is missing: study {study} is not finished.\nHint: make run STUDY={study}"
        )
    figures = home / "figures" / study
    ship_study_files(study, tidy, figures, params, index)
    capsule_configuration(folders.study, figures)
    environment_page_program(study, figures, index)
    return figures


def _results(folders: RunFolders, home: Path) -> Iterator[tuple[str, Path]]:
    """Each file of the results by its name; manifests, below `home`, without names of machines."""
    rows = folders.rows()
    own = Path(RESULTS, folders.study.name)
    tidy_files = folders.tidy_files()
    whole = {Path(folders.data), own / "analyse"}
    for row in rows:
        whole |= {Path(folder) for folder in (row.pool, row.train, row.evaluate) if folder}
    for name in folders.tidy_shown():
        whole |= {Path(file).parent for file in tidy_files[name]}
    for folder in sorted(whole):
        yield from _folder(folder, MANIFEST, home)
    for folder in sorted({Path(row.base) for row in rows}):
        yield _manifest(folder, MANIFEST, home)
    yield from _folder(own, f"runs.{MANIFEST}", home)


def _outputs(figures: Path, home: Path) -> Iterator[tuple[str, Path]]:
    """Each file of the outputs by its name from `home`."""
    for path in figures.rglob("*"):
        if path.is_file() and is_kept(path):
            yield path.relative_to(home).as_posix(), path


def is_kept(path: Path) -> bool:
    """Whether a capsule has this file of the outputs; what git alone reads stays out."""
    return path.suffix[1:] not in shipping.NOT_KEPT and not path.name.startswith(".")


def _folder(folder: Path, manifest: str, home: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that its manifest lists and a capsule keeps, and the manifest."""
    for name in read_manifest(folder, manifest)["outputs"]:
        file = folder / name
        kept = file.suffix in KEPT and not file.name.startswith(NOT_KEPT)
        if kept and file.parent == folder:
            yield file.as_posix(), file
    yield _manifest(folder, manifest, home)


def _manifest(folder: Path, name: str, home: Path) -> tuple[str, Path]:
    """A manifest's name, and where it lies without names of machines."""
    kept = home / folder / name
    write_manifest(kept, without_names_of_machines(read_manifest(folder, name)))
    return (folder / name).as_posix(), kept


def _properties(folders: RunFolders) -> list[Mapping[str, Any]]:
    """Each model's part in grading that only its tokenizer has."""
    from geosd.models.load_and_save import load_tokenizer  # what checks a capsule needs no torch

    bases: dict[str, str] = {}
    for row in folders.rows():
        bases.setdefault(row.model, row.base)
    properties = []
    for model, base in bases.items():
        tokenizer, generation = load_tokenizer(Path(base))
        recipe = settings("evaluate", folders.study, model)
        opened = encoding_of(recipe, tokenizer, generation).opens_thought
        described = {"@type": "PropertyValue", "name": OPENS_THOUGHT, "value": opened}
        properties.append({"@id": f"#{model}", **described})
    return properties
