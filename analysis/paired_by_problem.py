"""How far each run of a study lies above a reference, over problems, and over problems and seeds.

    python analysis/paired_by_problem.py results/smollm2_rates/analyse/shares.csv --reference pi_0
    python analysis/paired_by_problem.py figures/smollm2_parts/source/shares.csv.gz

For one base model. A row has the means ID and over the OOD benchmarks, and of each the difference
to the reference in points, with its interval over problems (what other problems would give), its
interval over problems and seeds (what other seeds would give, too), and the difference of each
seed. `geosd.scores.problems_and_seeds` says how. None says what other base models would give.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import tyro

from geosd.reporting.tables import markdown_table
from geosd.scores.problems_and_seeds import (
    ProblemsAndSeedsInterval,
    by_seed,
    gaps_by_problem_and_seed,
    over_problems,
    over_problems_and_seeds,
    shares_by_problem_and_seed,
)
from geosd.scores.tidy import read_tidy

SIDES = {"ID": False, "OOD": True}
"""Name of a side, and whether it is out of distribution."""


def row_of(
    shares: pd.DataFrame, model: str, variant: str, reference: str, confidence: float
) -> list[str]:
    """The cells of a run: its name, and four of each side."""
    row = [variant]
    for outside in SIDES.values():
        own = shares_by_problem_and_seed(shares, model, variant, outside)
        row.append(f"{mean_of(own):.1f}")
        if variant == reference:
            row += ["", "", ""]
            continue
        gaps = gaps_by_problem_and_seed(
            own, shares_by_problem_and_seed(shares, model, reference, outside)
        )
        both = over_problems_and_seeds(gaps, confidence)
        row.append(words(over_problems(gaps, confidence)))
        row.append(f"[{both.low:+.1f}, {both.high:+.1f}]")
        row.append(", ".join(f"{of_seed:+.1f}" for of_seed in by_seed(gaps)))
    return row


def mean_of(shares: Mapping[str, pd.DataFrame]) -> float:
    """The mean over benchmarks of the shares of right samples, in per cent."""
    return 100 * float(np.mean([of.to_numpy().mean() for of in shares.values()]))


def words(interval: ProblemsAndSeedsInterval) -> str:
    """A difference with its interval."""
    return f"{interval.difference:+.1f} [{interval.low:+.1f}, {interval.high:+.1f}]"


def main(
    shares: Annotated[Path, tyro.conf.Positional], reference: str = "pi_0", confidence: float = 0.95
) -> None:
    """Print a row for each run: ID, then the OOD average."""
    table = read_tidy("shares", shares)
    head = ["run"]
    for side in SIDES:
        head += [f"{side}, %", f"{side} above {reference}", "over problems and seeds", "by seed"]
    for model, of_model in table.groupby("model", sort=False):
        variants = list(of_model["variant"].unique())
        if reference not in variants:
            raise SystemExit(
                f"{shares} has no run {reference} on {model}.\nHint: it has {', '.join(variants)}."
            )
        rows = [
            row_of(of_model, str(model), variant, reference, confidence) for variant in variants
        ]
        print(f"{model}\n\n{markdown_table([head, *rows])}")


if __name__ == "__main__":
    tyro.cli(main)
