"""The page of a study's responses, two methods side by side, and the command that makes it."""

import sys
from pathlib import Path

from geosd.cli.snakemake_runs import snakemake
from geosd.files import write_text
from geosd.json_lines import read_jsonl
from geosd.provenance.proof import prove
from geosd.reporting.samples_page import samples_html
from geosd.scores.scored_responses import ScoredResponse

RULES = ("token_probabilities", "samples_page")
"""The rules that `make samples` may run: it trains nothing."""
HINT = (
    "where files are missing, the study is not finished, which `make run STUDY={study}` changes, or"
    " it has removed its weights (keep: samples)."
)


def main(study: str, tables: tuple[Path, ...], out: Path) -> None:
    """Write the page of scored responses.

    Args:
        tables: Files of the rule token_probabilities, one a model.
    """
    prove(tables)
    rows = [row for table in tables for row in read_jsonl(table, ScoredResponse)]
    write_text(out, samples_html(study, rows))


def samples(study: str = "quick") -> None:
    """Score responses of a finished study token by token, and write the page that shows them.

    Nothing is trained: of a study that is not finished, or has removed its weights, the error names
    the files that are missing.
    """
    try:
        snakemake(study, "--allowed-rules", *RULES, "--", "samples_page")
    except SystemExit:
        print(f"Hint: {HINT}".format(study=study), file=sys.stderr)
        raise
    page = Path("results", study, "samples.html")
    print(f"Samples  {page} ({page.stat().st_size / 1000:.0f} kB)")
