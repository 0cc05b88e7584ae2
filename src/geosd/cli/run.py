"""Run a study with Snakemake, and say on the terminal what it found."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from geosd.cli.ship import redraw
from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders
from geosd.provenance.proof import prove
from geosd.reporting.claims_page import (
    NO_WORDS,
    counts_in_words,
    finding_in_words,
    interval_words,
)
from geosd.reporting.shipping import MANIFEST, read_shipped
from geosd.reporting.specs import output_specs
from geosd.scores.tidy import read_tidy


def main(study: str = "quick", outputs_only: bool = False) -> None:
    """Run what is missing of a study, write its report, and say what it found.

    Args:
        outputs_only: Make tables, figures and pages alone, of the results that are there.
    """
    resolve(load("params.yaml"), study)  # a mistake is named without Snakemake's words around it
    snakemake(study, "--logger", "brief", *(rules_of_outputs() if outputs_only else ()))
    write_provenance(study)
    if not outputs_only:
        summary(study)
        print(f"\nFigures  figures/{study}/\nLogs     logs/{study}/, of Snakemake .snakemake/log/")
        print(f"Report   results/{study}/report.html")


def rules_of_outputs() -> list[str]:
    """The words that allow Snakemake no rule but those of tables, figures and pages."""
    return ["--allowed-rules", "all", "page", "front_page", "environment", *output_specs()]


def figures(study: str = "quick") -> None:
    """Make the tables and figures of a finished or shipped study; nothing is run.

    A clone that has run nothing has the tidy tables of a shipped study, which are enough.

    Raises:
        SystemExit: The study is not shipped, and what tables are made of is not there.
    """
    missing = missing_tidy_files(study)
    if not missing:
        before = _modified(study)
        targets = ("tables", "figures")
        snakemake(study, "--logger", "brief", *rules_of_outputs(), *targets, "--", *targets)
        drawn = {path.stem for path, at in _modified(study).items() if before.get(path) != at}
        how = ", ".join(sorted(drawn)) or "nothing to draw again"
    elif Path("figures", study, MANIFEST).exists():
        shipped = read_shipped(Path("figures", study)).files
        redraw(study)
        made = read_shipped(Path("figures", study)).files
        changed = [name for name, digest in made.items() if shipped.get(name) != digest]
        how = f"not as shipped: {', '.join(changed)}" if changed else "all as shipped"
        how = f"{len(made)} files drawn of its source/, {how}"
    else:
        listed = "\n".join(f"  {file}" for file in missing)
        raise SystemExit(
            f"Study {study} is neither finished nor shipped: what its figures show is not there:\n"
            f"{listed}\nHint: `make run STUDY={study}` makes it; `make plan STUDY={study}` says the"
            " cost."
        )
    print(textwrap.fill(f"Figures  figures/{study}/: {how}", 80, subsequent_indent=" " * 9))


def _modified(study: str) -> dict[Path, int]:
    """When the files of a study's figures were written."""
    return {path: path.stat().st_mtime_ns for path in Path("figures", study).glob("*_*.*")}


def missing_tidy_files(study: str) -> list[str]:
    """The files that a study's tables and figures are made of, and that are not there."""
    resolved = resolve(load("params.yaml"), study)
    specs, files = output_specs(), RunFolders(resolved).tidy_files()
    reads = {tidy for name in resolved.outputs if name in specs for tidy in specs[name].reads}
    return [
        file for tidy in files if tidy in reads for file in files[tidy] if not Path(file).exists()
    ]


def report(study: str = "quick") -> None:
    """Write the page of a study, and Snakemake's report of how it was made."""
    snakemake(study, "--", "front_page")
    write_provenance(study)
    print(f"Report   results/{study}/report.html")


def snakemake(study: str, *words: str, profile: Sequence[str] = ("--profile", "local")) -> None:
    """Run Snakemake on this machine to its end; one with an error ends this process, too.

    Ctrl-C reaches Snakemake itself, which then ends its jobs, so this process waits.
    """
    places = filter(None, ["workflow/logger", os.environ.get("PYTHONPATH")])
    command = [sys.executable, "-m", "snakemake", *profile, "--config"]
    interrupted = signal.signal(signal.SIGINT, lambda number, frame: None)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    status = subprocess.run([*command, f"study={study}", *words], env=environment).returncode
    signal.signal(signal.SIGINT, interrupted)
    if status:
        sys.exit(status if status > 0 else 128 - status)


def write_provenance(study: str) -> None:
    """Write Snakemake's report of a finished study, where it is older than what it shows."""
    page = Path("results", study, "provenance.html")
    patterns = (f"figures/{study}/*", f"results/{study}/pages/*", "workflow/report/*")
    made = page.stat().st_mtime if page.exists() else 0.0
    shown = (path for pattern in patterns for path in Path().glob(pattern))
    if made and all(path.stat().st_mtime <= made for path in shown):
        return
    print("Writing how it was made: Snakemake's report, some ten seconds", flush=True)
    partial = page.with_name(".provenance.html")  # renamed when it is whole
    style = ("--report-stylesheet", "workflow/report/style.css")
    words = ("--quiet", "all", "--report", str(partial), *style)
    snakemake(study, *words, profile=("--cores", "1"))  # Snakemake names a profile on a line
    partial.replace(page)


def summary(
    study: str | None = None, params: Path = Path("params.yaml"), figures: Path = Path("figures")
) -> None:
    """Print a study's first table, what it found, its words on the claims, and its aim.

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
