"""The folder of a study's outputs that the repository ships, and its manifest.

    figures/<study>/
        shipped.json             settings of each output; hashes of code, tidy tables and files
        source/<tidy>.csv        the tidy tables that everything is made from
        <output>.{pdf,svg,png}   or .{csv,md,tex}, or claims.{csv,md}
        <output>.caption.md      title, caption, and where the numbers are
        <output>.<tidy>.csv      source data: the rows of a tidy table that the output shows
        .gitignore               git keeps this folder, unlike those of other studies

All but the tidy tables and the settings is made from these two, so a clone without any run makes it
again; the same code makes the same bytes (`geosd.cli.redraw`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from geosd.files import atomic_write, sha256, write_text
from geosd.reporting.captions import caption_markdown
from geosd.reporting.specs import output_specs

MANIFEST = "shipped.json"
SOURCE = "source"
IGNORE = "# Git keeps this folder: its study is shipped (docs/results.md).\n!*\n*.manifest.json\n"
PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "seaborn", "statsmodels")
"""What draws and computes: another version may give other bytes."""
BASE_MODEL = "pi_0"


class ShippedManifest(BaseModel):
    """The manifest of a shipped study.

    Attributes:
        study: Its name.
        about: What it is for, in one sentence.
        outputs: Settings of each output, in the order of the study.
        packages: Version of each of `PACKAGES`.
        code: The meaning of each file of code behind the outputs, by its path in src/.
        inputs: SHA-256 of each tidy table, by its path in the folder.
        files: SHA-256 of each file that was made, by its path in the folder.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    study: str
    about: str = ""
    outputs: dict[str, dict[str, Any]]
    packages: dict[str, str]
    code: dict[str, str]
    inputs: dict[str, str]
    files: dict[str, str]


def package_versions() -> dict[str, str]:
    """Versions of the packages that may change a byte of a shipped file."""
    return {name: version(name) for name in PACKAGES}


def write_manifest(folder: Path, manifest: ShippedManifest) -> None:
    """Write the manifest of a shipped study into its folder."""
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")


def read_shipped(folder: Path) -> ShippedManifest:
    """Read the manifest of a shipped study.

    Raises:
        ValueError: It is absent, or not whole; says what is wrong.
    """
    path = folder / MANIFEST
    try:
        return ShippedManifest.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
    except (OSError, ValueError) as error:
        problem = str(error)
    raise ValueError(
        f"{path} is no whole manifest of a shipped study: {problem}.\nHint: take the folder from"
        " git again, or run `make ship` where the study was run."
    )


def changed_files(folder: Path, hashes: Mapping[str, str]) -> list[str]:
    """Files of a shipped study that are absent or have not the recorded hash.

    Args:
        folder: Of the study.
        hashes: `inputs` or `files` of its manifest.
    """
    return [
        name
        for name, digest in hashes.items()
        if not (folder / name).is_file() or sha256(folder / name) != digest
    ]


def hashes_of(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files for the manifest of a shipped study, by sorted path from its folder."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in sorted(set(files))}


def ship_tidy_tables(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copy tidy files into the `source/` of a shipped study, those of one name as one file.

    Their text stays as it is, so no digit of a number changes.

    Raises:
        ValueError: Files of one name have not the same columns.
    """
    texts: dict[str, str] = {}
    for path in files:
        head, line_end, rows = path.read_text(encoding="utf-8").partition("\n")
        written = texts.setdefault(path.name, head + line_end)
        if written.partition("\n")[0] != head:
            raise ValueError(
                f"{path} has the columns {head}, and another {path.name} has"
                f" {written.partition(chr(10))[0]}.\nHint: let the workflow run both again."
            )
        texts[path.name] += rows
    for name, text in texts.items():
        write_text(folder / SOURCE / name, text)
    return [folder / SOURCE / name for name in texts]


def shown_rows(table: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a tidy table that an output with these settings shows.

    They are those of its models, and of its runs: its methods or the points of its sweeps, and
    always the base model, to which gains are taken. Columns are text or not, as they are given.
    """
    rows = table
    if "models" in settings and "model" in rows:
        rows = rows[rows["model"].isin(settings["models"])]
    if "variant" not in rows:
        return rows
    shown = {BASE_MODEL, *settings.get("methods", ())}
    shown |= {
        point["run"] for points in settings.get("points", {}).values() for point in points
    } | set(settings.get("candidates", ()))
    return rows[rows["variant"].isin(shown)] if len(shown) > 1 else rows


def write_source_data(name: str, settings: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the source data of an output of a shipped study: rows of `source/`, digit for digit.

    Returns:
        A file for each tidy table that it reads; the tidy table itself where all of it is shown.
    """
    paths = []
    for tidy in output_specs()[name].reads:
        whole = folder / SOURCE / f"{tidy}.csv"
        table = pd.read_csv(whole, dtype=str, keep_default_na=False)
        rows = shown_rows(table, settings)
        path = folder / f"{name}.{tidy}.csv" if len(rows) < len(table) else whole
        if path != whole:
            with atomic_write(path) as temporary:
                rows.to_csv(temporary, index=False, lineterminator="\n")
        paths.append(path)
    return paths


def write_caption(
    name: str, models: Iterable[str], source_data: Sequence[Path], folder: Path
) -> Path:
    """Write the caption of an output of a shipped study: its title, its words, its source data."""
    path = folder / f"{name}.caption.md"
    write_text(path, caption_markdown(name, models, source_data, folder))
    return path
