"""How many runs of each method collapse at each learning rate: a table of docs/transfer.md.

    python analysis/collapses.py figures/miniature_transfer_{0,25,50,75,100}_selection

Each folder is a shipped selection of learning rates. A run collapses where its accuracy on the
validation problems is ten points or more below that of pi_0 with the same model and seed
(`geosd.scores.rate_selection.collapsed_runs`). Cells are counts over all folders.
"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro

from geosd.reporting.method_style import method, ordered, short_rate
from geosd.reporting.shipping import read_shipped, source_tables
from geosd.reporting.tables import markdown_table
from geosd.scores.rate_selection import VALIDATION, collapsed_runs
from geosd.scores.tidy import read_tidy, select_rows


def counts_by_rate(folder: Path) -> pd.DataFrame:
    """`collapsed` and `runs` of each candidate of a selection (index `variant`, `rate`)."""
    candidates = read_shipped(folder).outputs["table_selection"]["rate_candidates"]
    scores = read_tidy("scores", source_tables(folder)["scores"])
    collapsed = collapsed_runs(scores)
    runs = select_rows(scores, benchmark=VALIDATION, metric="avg@k")["variant"].value_counts()
    rows = [
        {"variant": variant, "rate": rate, "collapsed": collapsed[name], "runs": runs[name]}
        for variant, of_variant in candidates.items()
        for name, rate in of_variant.items()
    ]
    return pd.DataFrame(rows).set_index(["variant", "rate"])


def main(selections: Annotated[tuple[Path, ...], tyro.conf.Positional]) -> None:
    """Print a row for each method, a column for each learning rate."""
    counts = pd.concat(map(counts_by_rate, selections)).groupby(level=[0, 1]).sum()
    cells = (counts["collapsed"].astype(str) + " of " + counts["runs"].astype(str)).unstack("rate")
    rows = [[method(name).label, *cells.loc[name].fillna("–")] for name in ordered(cells.index)]
    print(markdown_table([["method", *map(short_rate, cells)], *rows]))


if __name__ == "__main__":
    tyro.cli(main)
