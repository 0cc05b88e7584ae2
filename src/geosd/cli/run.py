"""Run a study with Snakemake, and say on the terminal what it found."""

import fcntl
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from geosd.cli.cut_off_experiment import name_cut_off_experiment
from geosd.cli.snakemake_runs import (
    WRITTEN,
    snakemake,
    snakemake_output_rules,
    write_snakemake_report,
)
from geosd.config import Family, Study, load, resolve_study, resolve_study_or_family
from geosd.config.planned import planned_configuration
from geosd.config.run_folders import RunFolders
from geosd.provenance.code import NO_COMMIT, why_no_commit
from geosd.provenance.manifest import MANIFEST, read_manifest
from geosd.provenance.proof import prove
from geosd.reporting.claims_numbers import numbers_of_interval
from geosd.reporting.claims_page import NO_WORDS
from geosd.reporting.claims_sentences import claims_counts_sentence, finding_sentence
from geosd.scores.tidy import read_tidy

SHOWN_FILES = 5
"""Missing files that have a line each; the others are counted."""


def main(study: str = "quick", outputs_only: bool = False) -> None:
    """Run what is missing of a study, say what it found, and write how it was made.

    Of a family of studies each is run in turn; then the family is drawn.

    Args:
        outputs_only: Make tables, figures and pages alone, of the results that are there.
    """
    name_cut_off_experiment()
    # A mistake is named without Snakemake's words around it.
    params = load("params.yaml")
    resolved = resolve_study_or_family(params, study)
    if isinstance(resolved, Family):
        _run_family(resolved, outputs_only)
        return
    _check_links()
    _say_why_no_commit()
    # The report and the summary are of the same configuration as the jobs.
    with planned_configuration():
        with _alone_in_results():
            snakemake(
                study, "--logger", "brief", *(snakemake_output_rules() if outputs_only else ())
            )
        if not outputs_only:
            print_run_summary(study)
            print(f"\nFigures  figures/{study}/")
            print(f"Logs     logs/{study}/, of Snakemake .snakemake/log/")
            print(f"Report   results/{study}/report.html")
            _say_what_is_missing(resolved)
        write_snakemake_report(study)  # last, because it may fail: the summary is printed by then


def _run_family(family: Family, outputs_only: bool) -> None:
    """Run each study of a family, unless its outputs are wanted alone; then draw the family."""
    with planned_configuration():
        for study in [] if outputs_only else family.studies:
            print(f"== {study}", flush=True)
            main(study)
        snakemake(family.name, "--logger", "brief")
    print(f"\nFigures  figures/{family.name}/")
    print(f"Report   results/{family.name}/report.html")


def _say_why_no_commit() -> None:
    """Say once that the manifests of a run will name no commit, where git refuses to give one."""
    why = why_no_commit(Path())
    if why == NO_COMMIT["dubious ownership"]:
        folder = shlex.quote(str(Path.cwd()))
        print(
            f"The results of this run will name no commit: {why}.\nHint: `git config --global"
            f" --add safe.directory {folder}`, if you trust who owns it."
        )


def _check_links() -> None:
    """Refuse a folder that is a link to nowhere, as to a disk that is not mounted.

    Raises:
        FileNotFoundError: Names the link and its target.
    """
    for folder in map(Path, WRITTEN):
        if folder.is_symlink() and not folder.is_dir():
            raise FileNotFoundError(
                f"{folder} is a link to {folder.readlink()}, which is no folder.\nHint: mount its"
                " disk or make the folder; or remove the link, and results are written here."
            )


@contextmanager
def _alone_in_results() -> Iterator[None]:
    """Context in which no other clone runs a study into the results that this one shares by a link.

    Within a clone Snakemake's own lock is enough.

    Raises:
        ValueError: Another run is at work there.
    """
    results = Path("results")
    if not results.is_symlink():
        yield
        return
    with (results / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another run is at work in {results.resolve()}, to which results/ is a link, of"
                " this clone or of another one.\nHint: wait for its end, or `make stop` where it"
                " runs: two would take away each other's files."
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


def _say_what_is_missing(study: Study) -> None:
    """Name files from which the study was made and that are gone, and how to make them again.

    Snakemake makes nothing again that no file which is there waits for.
    """
    missing = _missing_files(study)
    if missing:
        command = f"snakemake --profile local --config study={study.name} -- {missing[0]}"
        more = len(missing) - SHOWN_FILES
        print(f"\nThese files, from which the study was made, are gone ({len(missing)}):")
        print("\n".join(f"  {path}" for path in missing[:SHOWN_FILES]))
        print(f"  and {more} more\n" if more > 0 else "", end="")
        print(f"Hint: `{command}` makes one again, `make stale STUDY={study.name}` says more.")


def _missing_files(study: Study) -> list[Path]:
    """What a study's manifests record and is gone, but for weights that the study lets go."""
    analysed = Path("results", study.name, "analyse", MANIFEST)
    recorded: dict[Path, None] = {}
    for path in RunFolders(study).manifests():
        if not path.exists():
            continue
        manifest = read_manifest(path.parent, path.name)
        recorded |= dict.fromkeys(path.parent / name for name in manifest["outputs"])
        if path == analysed:
            recorded |= dict.fromkeys(map(Path, manifest["inputs"]))
    missing = [path for path in recorded if not path.exists()]
    if study.overlay.keep == "samples":
        missing = [path for path in missing if path.suffix != ".safetensors"]
    return missing


def print_run_summary(
    study: str | None = None, params: Path = Path("params.yaml"), figures: Path = Path("figures")
) -> None:
    """Print what a run of a study found: its first table, its words on the claims, and its aim.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        figures: Where the tables and claims of studies lie, each study in its own folder.
    """
    resolved = resolve_study(load(params), study)
    folder, console = figures / resolved.name, Console()
    tables = [name for name in resolved.outputs if name.startswith("table_")]
    if tables:
        table = folder / f"{tables[0]}.md"
        if not table.exists():
            raise FileNotFoundError(
                f"{table} is not there: study {resolved.name} has not been run.\nHint: `make run"
                f" STUDY={resolved.name}`."
            )
        console.print(Markdown(table.read_text(encoding="utf-8")))
    words = [f"Study {resolved.name}: {resolved.overlay.about}"]
    if "claims" in resolved.outputs:
        ledger = read_tidy("claims", folder / "claims.csv")
        prove([folder / "claims.csv"])
        console.print(finding_sentence(ledger), markup=False, highlight=False)
        if resolved.overlay.verdicts:
            console.print(_primary_claims(ledger))
            words = [
                claims_counts_sentence(ledger),
                f"The paper's claims: {folder}/claims.md",
                *words,
            ]
        else:
            words.insert(0, f"{NO_WORDS} (`verdicts` in params.yaml): {folder}/claims.md")
    console.print("\n".join(words), markup=False, highlight=False)


def _primary_claims(ledger: pd.DataFrame) -> Table:
    """The exercised primary claims in lines that fit any terminal: word, effect, claim."""
    lines = Table.grid(padding=(0, 2, 0, 0))
    shown = ledger[(ledger["part"] == "primary") & (ledger["word"] != "not exercised")]
    for row in shown.drop_duplicates("claim").to_dict("records"):
        lines.add_row(row["word"], Text(" ".join(numbers_of_interval(row))), row["statement"])
    return lines
