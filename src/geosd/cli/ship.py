"""Ship what a study shows with the repository, and make it again from what is shipped."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.cli.claims import write_study_claims
from geosd.cli.run_manifests import summary_of_run_manifests
from geosd.config import Study, load, resolve_study
from geosd.config import settings as settings_of
from geosd.files import DamagedFileError, write_text
from geosd.provenance.history import unknown_commits
from geosd.provenance.manifest import MANIFEST as RUN_MANIFEST
from geosd.provenance.proof import prove
from geosd.reporting import shipping
from geosd.reporting.environment_page import environment_commits
from geosd.reporting.run_summary import RunSummary
from geosd.reporting.shipping import CLAIMS, shipping_code
from geosd.reporting.specs import output_specs, render_output_spec
from geosd.reporting.study_page import ENVIRONMENT, caption_markdown
from geosd.scores.tidy import COLUMNS, read_tidy


def main(
    study: str,
    tidy: tuple[Path, ...] = (),
    figures: Path = Path("figures"),
    params: Path = Path("params.yaml"),
    pipeline: Path = Path("dvc.yaml"),
    runs: Path | None = None,
) -> None:
    """Write the folder of a study's outputs that git keeps.

    `geosd.reporting.shipping` lists it.

    Args:
        tidy: Its tidy files, each known by its own name.
        pipeline: DVC's, whose outputs git must not keep too.
        runs: Its index of runs; none where no run enters what it shows.

    Raises:
        ValueError: DVC keeps the study's outputs, or nobody could check by which commits its runs
            were made: the environment page is missing, or names a commit that the history lacks.
    """
    folder = figures / study
    pointer = pipeline.parent / "published" / f"{folder.as_posix()}.dvc"
    if pointer.exists():
        raise ValueError(
            f"{pointer} lets DVC keep {folder}, and what DVC keeps git must not.\nHint: remove that"
            f" file and the line /{study} of {figures}/.gitignore, and ship again."
        )
    if pipeline.exists() and f"- {folder.as_posix()}/" in pipeline.read_text(encoding="utf-8"):
        raise ValueError(
            f"{pipeline} keeps {folder}, and what DVC keeps git must not.\nHint: ship another"
            " study, or let workflow/dvc/generate.py declare these outputs with `cache: false`."
        )
    _check_commits(folder / ENVIRONMENT, study)
    count = ship_study_files(study, tidy, folder, params, runs)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {count} outputs, {size / 1e6:.1f} MB. git add {folder} docs/results*")


def _check_commits(environment: Path, study: str) -> None:
    """Refuse a study whose runs were made by no commit of the history, or by nobody knows which."""
    if not environment.is_file():
        raise ValueError(
            f"{environment} is not there: the page names the commits that made the runs, and is"
            f" shipped with them.\nHint: `make ship STUDY={study}` writes it first."
        )
    named = environment_commits(environment.read_text(encoding="utf-8"))
    unknown = unknown_commits(named)
    if unknown:
        raise ValueError(
            f"{environment} names {', '.join(unknown)}, which the history of this clone does not"
            " have: nobody could check what was committed before these runs.\nHint: fetch the"
            " branch that made them (`git fetch --unshallow` in a shallow clone), or run the study"
            " again from a commit that stays."
        )


def ship_study_files(
    study: str, tidy: Sequence[Path], folder: Path, params: Path, runs: Path | None = None
) -> int:
    """Write all files of a shipped study, from its tidy files; how many outputs it has.

    `runs` is its index of runs, whose folders have the manifests; None where no run enters.
    """
    resolved = resolve_study(load(params), study)
    outputs = settings_to_ship(resolved)
    shipping.ship_tidy_tables(tidy, folder)
    made = summary_of_run_manifests(runs)
    ship_study_outputs(study, resolved.overlay.about, outputs, folder, made)
    return len(outputs)


def settings_to_ship(study: Study) -> dict[str, dict[str, Any]]:
    """The settings of each output of a study, as a shipped study's manifest holds them.

    So what is drawn now is what is drawn from the manifest later.
    """
    known = [name for name in study.outputs if name == CLAIMS or name in output_specs()]
    return json.loads(json.dumps({name: settings_of(name, study) for name in known}))


def redraw_shipped(study: str, figures: Path = Path("figures")) -> None:
    """Ship a study anew from what is shipped: its tables, figures, verdicts and manifest.

    The settings are those of the manifest, so later edits of params.yaml change
    nothing.

    Raises:
        ValueError: The study is not shipped or is a family, or a tidy table is not the one that
            was shipped.
    """
    folder = figures / study
    shipped = shipping.read_shipped(folder)
    if shipped.studies:
        raise ValueError(
            f"{study} is a family: it is drawn of what its studies ship.\nHint: `make figures"
            f" STUDY={study}` draws it."
        )
    if changed := shipping.changed_shipped_files(folder, shipped.inputs):
        raise ValueError(
            f"{folder / changed[0]} is not the tidy table that was shipped: its SHA-256 is not that"
            " of the manifest.\nHint: take it from git again, or run `make ship` where the study"
            " was run."
        )
    ship_study_outputs(study, shipped.about, shipped.outputs, folder, shipped.made)


def ship_study_outputs(
    study: str,
    about: str,
    outputs: Mapping[str, dict[str, Any]],
    folder: Path,
    made: RunSummary | None,
) -> None:
    """Write all files of a shipped study but its tidy tables, which lie in its folder already.

    `about` says what the study is for; `outputs` has the settings of each; `made` is of its runs.
    """
    sources = shipping.shipped_source_tables(folder)
    tables = {tidy: read_tidy(tidy, path) for tidy, path in sources.items()}
    files = [folder / ".gitignore"]
    write_text(files[0], shipping.IGNORE)
    for name, settings in outputs.items():
        if name == CLAIMS:
            files += _judge_anew(study, tables, settings, folder)
            continue
        # A study that was shipped before an output read a tidy table has no row of it.
        reads = {
            t: tables.get(t, pd.DataFrame(columns=[*COLUMNS[t]]))
            for t in output_specs()[name].reads
        }
        files += render_output_spec(name, reads, settings, folder)
        shown = [sources[tidy] for tidy in reads if tidy in sources]
        caption = caption_markdown(name, settings.get("models", ()), shown, folder)
        if not all(shipping.shipped_shows_all(table, settings) for table in reads.values()):
            listed = f"that [{shipping.MANIFEST}]({shipping.MANIFEST}) lists under `{name}`"
            caption = f"{caption.rstrip()}\nIt shows the rows of the models and runs {listed}.\n"
        files.append(folder / f"{name}.caption.md")
        write_text(files[-1], caption)
    manifest = shipping.ShippedManifest(
        study=study,
        about=about,
        made=made,
        outputs=dict(outputs),
        packages={name: version(name) for name in shipping.PACKAGES},
        code=shipping_code(outputs),
        inputs=shipping.shipped_hashes(folder, sources.values()),
        files=shipping.shipped_hashes(
            folder, (path for path in files if path.suffix[1:] not in shipping.NOT_KEPT)
        ),
    )
    shipping.write_shipped_manifest(folder, manifest)


def _judge_anew(
    study: str, tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any], folder: Path
) -> list[Path]:
    """The ledger's files; the manifest of a run's ledger goes where the verdicts are others."""
    files = write_study_claims(study, tables, settings, folder)
    try:
        prove(files)
    except DamagedFileError:
        (folder / f"{CLAIMS}.{RUN_MANIFEST}").unlink()
    return files
