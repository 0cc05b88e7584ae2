"""Ship what a family shows with the repository, and make it again from its shipped studies.

Nothing of the studies is copied: a family reads the tidy tables and ledgers that they ship, and its
manifest has the hashes of these.
"""

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.config import Family, load, resolve_family
from geosd.config.family import family_shipped_file, family_tidy_file
from geosd.files import sha256, write_text
from geosd.provenance.code import code_of
from geosd.reporting import shipping
from geosd.reporting.specs import family_specs, output_spec_modules, render_output_spec
from geosd.reporting.study_page import caption_markdown
from geosd.scores.tidy import read_tidy

Settings = dict[str, dict[str, Any]]


def main(family: str, figures: Path = Path("figures"), params: Path = Path("params.yaml")) -> None:
    """Write the folder of a family's outputs that git keeps, from its shipped studies.

    Raises:
        ValueError: A study is not shipped, or its results here are others than those shipped.
    """
    resolved = resolve_family(load(params), family)
    for output in resolved.outputs:
        for tidy in family_specs()[output].reads:
            for study in resolved.studies:
                _check_shipped(study, tidy, figures)
    folder = figures / family
    outputs, studies = ship_family_settings(resolved)
    ship_family_outputs(family, resolved.overlay.about, outputs, studies, folder)
    print(f"{folder}: {len(resolved.outputs)} outputs. git add {folder} docs/results*")


def ship_family_settings(family: Family) -> tuple[dict[str, Settings], Settings]:
    """The settings of a family's outputs, as its manifest holds them.

    Outputs share most arguments. The second mapping holds the shared values: study -> argument ->
    value. The first holds, for each output, the arguments with other values: argument -> study ->
    value.
    """
    outputs: dict[str, Settings] = {}
    studies: Settings = {study: {} for study in family.studies}
    for output in family.outputs:
        outputs[output] = {}
        settings = json.loads(json.dumps(family.settings(output)))
        for argument, by_study in settings.items():
            shared = {
                study: studies[study].setdefault(argument, value)
                for study, value in by_study.items()
            }
            if shared != by_study:
                outputs[output][argument] = by_study
    return outputs, studies


def _check_shipped(study: str, tidy: str, figures: Path) -> None:
    """Refuse a tidy file that a study has not shipped, or that its results here contradict."""
    hint = f"Hint: `make ship STUDY={study}` ships it once it has run."
    shipped = family_shipped_file(study, tidy, figures)
    if not shipped.exists() or not (figures / study / shipping.MANIFEST).exists():
        raise ValueError(f"{shipped} is not there: study {study} is not shipped.\n{hint}")
    of_results = family_tidy_file(study, tidy)
    if of_results.exists() and _text(of_results) != _text(shipped):
        raise ValueError(f"{of_results} is another table than {shipped}, which is shipped.\n{hint}")


def _text(path: Path) -> bytes:
    """The text of a tidy file, as it is before it is compressed."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def redraw_shipped_family(family: str, figures: Path = Path("figures")) -> None:
    """Ship a family anew from its shipped studies, with the settings of its manifest.

    So later edits of params.yaml change nothing.

    Raises:
        ValueError: The family is not shipped, or a table of a study is not the one that it read.
    """
    folder = figures / family
    shipped = shipping.read_shipped(folder)
    changed = shipping.changed_shipped_files(folder, shipped.inputs)
    if changed:
        raise ValueError(
            f"{os.path.normpath(folder / changed[0])} is not the table that {family} was shipped"
            f" with.\nHint: `make ship STUDY={family}` draws the family of the studies as they are"
            " shipped now; or take the table from git again."
        )
    ship_family_outputs(family, shipped.about, shipped.outputs, shipped.studies, folder)


def ship_family_outputs(
    family: str,
    about: str,
    outputs: Mapping[str, Mapping[str, Any]],
    studies: Mapping[str, Mapping[str, Any]],
    folder: Path,
) -> None:
    """Write all files of a shipped family.

    `about` says what the family shows; `outputs` and `studies` are as `ship_family_settings` has
    them.
    """

    @cache  # several outputs read one table
    def table(tidy: str, file: Path) -> pd.DataFrame:
        return read_tidy(tidy, file)

    made, read = [folder / ".gitignore"], []
    write_text(made[0], shipping.IGNORE)
    for name, own in outputs.items():
        spec = family_specs()[name]
        files = {
            tidy: {study: family_shipped_file(study, tidy, folder.parent) for study in studies}
            for tidy in spec.reads
        }
        tables = {
            tidy: {study: table(tidy, file) for study, file in by_study.items()}
            for tidy, by_study in files.items()
        }
        arguments = [argument.rpartition(".")[2] for argument in spec.settings]
        given = dict(own)
        for argument in arguments:
            shared = {study: of_study.get(argument) for study, of_study in studies.items()}
            given.setdefault(argument, shared)
        made += render_output_spec(name, tables, given, folder)
        shown = [file for by_study in files.values() for file in by_study.values()]
        read += shown
        made.append(folder / f"{name}.caption.md")
        write_text(made[-1], caption_markdown(name, (), shown, folder))
    kept = (path for path in made if path.suffix[1:] not in shipping.NOT_KEPT)
    manifest = shipping.ShippedManifest(
        study=family,
        about=about,
        outputs={name: dict(own) for name, own in outputs.items()},
        studies={study: dict(of_study) for study, of_study in studies.items()},
        packages={name: version(name) for name in shipping.PACKAGES},
        code=ship_family_code(outputs),
        inputs=_hashes_from(folder, read),
        files=shipping.shipped_hashes(folder, kept),
    )
    shipping.write_shipped_manifest(folder, manifest)


def _hashes_from(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files of other folders, by sorted path from a folder."""
    by_path = {Path(os.path.relpath(file, folder)).as_posix(): file for file in files}
    return {path: sha256(by_path[path]) for path in sorted(by_path)}


def ship_family_code(outputs: Iterable[str]) -> dict[str, str]:
    """The meaning of each file of code behind the outputs of a shipped family, by path in src/."""
    modules = [module for name in outputs for module in output_spec_modules(name)]
    return code_of("ship_family", modules=modules)
