"""Run a study with Snakemake, and say on the terminal what it found."""

import os
import shlex
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from geosd.cli.snakemake_runs import rules_of_outputs, snakemake, write_provenance
from geosd.config import load, resolve
from geosd.config.planned import PLAN, configuration_texts, keep
from geosd.provenance.code import NO_COMMIT, why_no_commit
from geosd.provenance.proof import prove
from geosd.reporting.claims_page import NO_WORDS, counts_in_words, finding_in_words, interval_words
from geosd.scores.tidy import read_tidy


def main(study: str = "quick", outputs_only: bool = False) -> None:
    """Run what is missing of a study, say what it found, and write how it was made.

    Args:
        outputs_only: Make tables, figures and pages alone, of the results that are there.
    """
    params = load("params.yaml")
    resolve(params, study)  # a mistake is named without Snakemake's words around it
    # The run's report and summary are of the same configuration as its jobs.
    os.environ.setdefault(PLAN, str(keep(configuration_texts(params))))
    say_why_no_commit()
    snakemake(study, "--logger", "brief", *(rules_of_outputs() if outputs_only else ()))
    if not outputs_only:
        summary(study)
        print(f"\nFigures  figures/{study}/\nLogs     logs/{study}/, of Snakemake .snakemake/log/")
        print(f"Report   results/{study}/report.html")
    write_provenance(study)  # last: what was found is said, also where this fails


def say_why_no_commit() -> None:
    """Say once that the manifests of a run will name no commit, where git refuses to give one."""
    why = why_no_commit(Path())
    if why == NO_COMMIT["dubious ownership"]:
        folder = shlex.quote(str(Path.cwd()))
        print(
            f"The results of this run will name no commit: {why}.\nHint: `git config --global"
            f" --add safe.directory {folder}`, if you trust who owns it."
        )


def summary(
    study: str | None = None, params: Path = Path("params.yaml"), figures: Path = Path("figures")
) -> None:
    """Print what a run of a study found: its first table, its words on the claims, and its aim.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        figures: Where the tables and claims of studies lie, each study in its own folder.
    """
    resolved = resolve(load(params), study)
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
        console.print(finding_in_words(ledger), markup=False, highlight=False)
        if resolved.overlay.verdicts:
            console.print(_primary_claims(ledger))
            words = [counts_in_words(ledger), f"The paper's claims: {folder}/claims.md", *words]
        else:
            words.insert(0, f"{NO_WORDS} (`verdicts` in params.yaml): {folder}/claims.md")
    console.print("\n".join(words), markup=False, highlight=False)


def _primary_claims(ledger: pd.DataFrame) -> Table:
    """The exercised primary claims in lines that fit any terminal: word, effect, claim."""
    lines = Table.grid(padding=(0, 2, 0, 0))
    shown = ledger[(ledger["part"] == "primary") & (ledger["word"] != "not exercised")]
    for row in shown.drop_duplicates("claim").to_dict("records"):
        lines.add_row(row["word"], Text(" ".join(interval_words(row))), row["statement"])
    return lines
