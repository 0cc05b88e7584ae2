"""Say on the terminal what a finished study found: its first table, any verdicts, its limits."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from geosd.cli import begin
from geosd.config import load, resolve
from geosd.provenance.proof import prove
from geosd.reporting.claims_page import NO_VERDICTS, verdict_counts
from geosd.scores.tidy import read_tidy


def main(
    study: str | None = None, params: Path = Path("params.yaml"), figures: Path = Path("figures")
) -> None:
    """Print a study's first table, its verdicts if it is meant for any, and what it is for.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        params: The configuration; the last words are its `about` of the study.
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
    if "claims" in resolved.outputs:
        ledger = read_tidy("claims", folder / "claims.csv")
        prove([folder / "claims.csv"])
        if resolved.overlay.verdicts:
            console.print(f"\nVerdicts on the paper's claims ({folder}/claims.md)\n")
            counts = verdict_counts(ledger).to_string()
            console.print(counts, markup=False, highlight=False, soft_wrap=True)
        else:
            why = f"\n{NO_VERDICTS} (`verdicts` in params.yaml). Estimates: {folder}/claims.md"
            console.print(why, markup=False, highlight=False)
    about = resolved.overlay.about
    console.print(f"\nStudy {resolved.name}: {about}", markup=False, highlight=False)


if __name__ == "__main__":
    begin(main)
