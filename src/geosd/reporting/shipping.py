"""The folder of a study's outputs that the repository ships, and its manifest.

    figures/<study>/
        shipped.json             what made the runs; settings of outputs; hashes of code and files
        source/<tidy>.csv        the tidy tables that everything is made from; .csv.gz if large
        <output>.svg             or .{csv,md,tex}, or claims.{csv,md}
        <output>.caption.md      title, caption, and where the numbers are
        .gitignore               git keeps this folder, unlike those of other studies

A figure's PDF and PNG are written here too, and git leaves them out.

All but the tidy tables and the settings is made from these two, so a clone without any run makes it
again; the same code makes the same bytes (`geosd.cli.ship`).
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from geosd.files import atomic_write, sha256, write_text
from geosd.provenance.code import code_of
from geosd.reporting.run_summary import RunSummary
from geosd.reporting.specs import output_spec_modules

MANIFEST = "shipped.json"
SOURCE = "source"
CLAIMS = "claims"
"""The one output that is no table and no figure."""
NOT_KEPT = ("pdf", "png")
"""Endings of a figure's files that git leaves out: each page shows the SVG."""
IGNORE = "# Git keeps this folder: its study is shipped (docs/results.md).\n!*\n*.manifest.json\n"
IGNORE += "".join(f"*.{ending}\n" for ending in NOT_KEPT)
LARGE = 400_000
"""Bytes of a tidy table from which on it is shipped compressed; GitHub shows none of 512,000."""
PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "seaborn", "statsmodels")
"""Packages that draw and compute: another version may give other bytes."""


class ShippedManifest(BaseModel):
    """The manifest of a shipped study.

    Attributes:
        made: When, by which code and on which machine its runs were made; None where none enters.
        outputs: Settings of each output, in the order of the study.
        packages: Version of each of `PACKAGES`.
        code: The meaning of each file of code behind the outputs, by its path in src/.
        inputs: SHA-256 of each tidy table, by its path in the folder.
        files: SHA-256 of each file that was made and that git keeps, by its path in the folder.
        studies: Of a family, its studies, and the settings of its outputs for each.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    study: str
    about: str = ""
    made: RunSummary | None = None
    outputs: dict[str, dict[str, Any]]
    packages: dict[str, str]
    code: dict[str, str]
    inputs: dict[str, str]
    files: dict[str, str]
    studies: dict[str, dict[str, Any]] = {}


def write_shipped_manifest(folder: Path, manifest: ShippedManifest) -> None:
    """Write the manifest of a shipped study or family into its folder."""
    left_out = set() if manifest.studies else {"studies"}
    text = manifest.model_dump_json(indent=1, exclude=left_out)
    write_text(folder / MANIFEST, text + "\n")


def read_shipped(folder: Path) -> ShippedManifest:
    """Read the manifest of a shipped study; ValueError if it is absent, or not whole."""
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


def changed_shipped_files(folder: Path, hashes: Mapping[str, str]) -> list[str]:
    """Files of a shipped study that are absent or have not the recorded hash."""
    return [
        name
        for name, digest in hashes.items()
        if not (folder / name).is_file() or sha256(folder / name) != digest
    ]


def shipped_hashes(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files for the manifest of a shipped study, by sorted path from its folder."""
    return {path.relative_to(folder).as_posix(): sha256(path) for path in sorted(set(files))}


def ship_tidy_tables(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copy tidy files into the `source/` of a shipped study, those of one name as one file.

    Their text stays as it is; `LARGE` ones are compressed. ValueError if their columns differ.
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
    return [_write_source(folder / SOURCE / name, text.encode()) for name, text in texts.items()]


def _write_source(path: Path, table: bytes) -> Path:
    """Write a tidy table, compressed if it is large, in place of one of the other form."""
    compressed = path.with_suffix(".csv.gz")
    target, other = (compressed, path) if len(table) >= LARGE else (path, compressed)
    with atomic_write(target) as temporary:
        temporary.write_bytes(table if target == path else gzip.compress(table, mtime=0))
    other.unlink(missing_ok=True)
    return target


def shipped_source_tables(folder: Path) -> dict[str, Path]:
    """The tidy tables of a shipped study by name, `<tidy>.csv` or `<tidy>.csv.gz`."""
    return {path.name.partition(".")[0]: path for path in sorted((folder / SOURCE).glob("*.csv*"))}


def shipped_shows_all(table: pd.DataFrame, settings: Mapping[str, Any]) -> bool:
    """Whether a shipped output with these settings shows all rows (model, run) of a tidy table."""
    if "models" in settings and not table["model"].isin(settings["models"]).all():
        return False
    runs = {*settings.get("methods", ()), *settings.get("candidates", ())}
    runs |= {point["run"] for points in settings.get("points", {}).values() for point in points}
    return not runs or "variant" not in table or table["variant"].isin({"pi_0", *runs}).all()


def shipping_code(outputs: Mapping[str, Any]) -> dict[str, str]:
    """The meaning of each file of code behind the outputs of a shipped study, by path in src/."""
    modules = [module for name in outputs if name != CLAIMS for module in output_spec_modules(name)]
    return code_of("redraw", modules=modules)
