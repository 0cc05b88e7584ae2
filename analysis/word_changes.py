"""Which words and effects of a study change on another machine: the table of word_changes.md.

    python analysis/word_changes.py native/claims.csv avx2/claims.csv two_threads/claims.csv

Each file is a study's ledger, `figures/<study>/claims.csv`, of the same claims and models. The
first is compared with each of the others. Arithmetic is left out: no run decides it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro

from geosd.claims.finding import WORDS
from geosd.reporting.tables import markdown_table
from geosd.scores.tidy import read_tidy

ROW = ["claim", "study", "model"]
OPPOSITE = {"agrees", "opposite"}


@dataclass(frozen=True)
class Changes:
    """Changes from one ledger to another, over the rows that at least one of them exercised.

    Attributes:
        words: Rows by word in the first ledger (index) and in the other (columns).
        effects: Rows with an effect in both ledgers.
        outside: Those of `effects` where an effect lies outside of the other ledger's interval.
    """

    words: pd.DataFrame
    effects: int
    outside: int

    @property
    def rows(self) -> int:
        """All rows."""
        return int(self.words.to_numpy().sum())

    @property
    def changed(self) -> int:
        """Rows with another word."""
        return self.rows - sum(int(self.words.loc[name, name]) for name in WORDS)

    @property
    def reversed(self) -> int:
        """Rows that agree in one ledger and are opposite in the other."""
        a, b = sorted(OPPOSITE)
        return int(self.words.loc[a, b] + self.words.loc[b, a])


def changes(first: pd.DataFrame, other: pd.DataFrame) -> Changes:
    """Compare two ledgers of the same claims and models.

    Raises:
        ValueError: A row is in one ledger only.
    """
    runs_decide = [frame[frame["part"] != "computed"] for frame in (first, other)]
    both = pd.merge(*runs_decide, on=ROW, how="outer", suffixes=("", "_other"), indicator=True)
    if len(single := both[both["_merge"] != "both"]):
        names = ", ".join(sorted(single["claim"] + " of " + single["model"]))
        raise ValueError(
            f"rows of one ledger only: {names}.\nHint: give ledgers of one study at one commit."
        )
    both = both[~both[["word", "word_other"]].eq("not exercised").all(axis=1)]
    table = pd.crosstab(both["word"], both["word_other"])
    measured = both.dropna(subset=["effect", "effect_other", "low", "low_other"])
    measured = measured[measured["comparison"] == measured["comparison_other"]]
    within = measured["effect"].between(measured["low_other"], measured["high_other"])
    within &= measured["effect_other"].between(measured["low"], measured["high"])
    return Changes(
        table.reindex(index=WORDS, columns=WORDS, fill_value=0),
        effects=len(measured),
        outside=int((~within).sum()),
    )


def read_ledger(path: Path) -> pd.DataFrame:
    """A ledger with its effects and intervals as numbers."""
    rows = read_tidy("claims", path)
    return rows.assign(**{name: pd.to_numeric(rows[name]) for name in ("effect", "low", "high")})


def main(ledgers: Annotated[tuple[Path, ...], tyro.conf.Positional]) -> None:
    """Print a line for each ledger after the first.

    Args:
        ledgers: Ledgers of one study; the first is compared with each of the others.
    """
    first, *others = ledgers
    start = read_ledger(first)
    head = ["ledger", "rows", "other word", "reversed", "effects", "outside an interval"]
    lines = [head]
    for path in others:
        found = changes(start, read_ledger(path))
        share = f"{found.changed} ({100 * found.changed / max(found.rows, 1):.0f} %)"
        counts = [found.rows, share, found.reversed, found.effects, found.outside]
        lines.append([str(path), *map(str, counts)])
    print(markdown_table(lines))


if __name__ == "__main__":
    tyro.cli(main)
