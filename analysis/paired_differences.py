"""How far each method of a study lies above another one, paired by base model.

    python analysis/paired_differences.py figures/miniature --reference fwdkl

Reads the scores that the study ships. A difference is that of avg@k in points, of a run and the
reference's run of the same seed; the mean over the seeds of a base model (a draw) is one value.
Intervals are Student's, of 95 %, over base models; over all models together each base model counts
alike (`geosd.scores.statistics.effect_interval`, as in the ledger of claims). p is two-sided, with
Holm's correction over the methods of a column. docs/miniature.md, "The main comparison", fixed all
this beforehand.
"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro

from geosd.problems.records import ID
from geosd.reporting.tables import markdown_table
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import effect_interval, holm
from geosd.scores.tidy import read_tidy, select_rows


def difference_table(scores: pd.DataFrame, reference: str) -> pd.DataFrame:
    """A row for each method, a column for each model and for all of them, ID before OOD.

    Raises:
        ValueError: The reference has no scores.
    """
    runs = select_rows(scores, metric="avg@k")
    if reference not in set(runs["variant"]):
        methods = ", ".join(sorted(set(runs["variant"])))
        raise ValueError(f"no scores of {reference!r}.\nHint: there are {methods}.")
    cells: dict[str, dict[str, str]] = {}
    for axis, benchmark in (("ID", ID), ("OOD", OOD_AVERAGE)):
        chosen = runs[runs["benchmark"] == benchmark]
        wide = chosen.pivot(index=["model", "seed", "draw"], columns="variant", values="value")
        differences = wide.drop(columns=[reference, "pi_0"]).sub(wide[reference], axis="index")
        models = list(dict.fromkeys(chosen["model"]))
        for column in [[model] for model in models] + [models] * (len(models) > 1):
            tests = {
                method: effect_interval([_of_model(differences[method][m]) for m in column])
                for method in differences
            }
            p_values = holm([2 * min(test.p, 1 - test.p) for test in tests.values()])
            cells[f"{'all' if len(column) > 1 else column[0]} {axis}"] = {
                method: f"{t.difference:+.1f} [{t.low:+.1f}, {t.high:+.1f}]{'*' * (p < 0.05)}"
                for (method, t), p in zip(tests.items(), p_values, strict=True)
            }
    return pd.DataFrame(cells).rename_axis("method").reset_index()


def _of_model(differences: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Differences [seed, draw] of one model's runs, and the draw of each."""
    draws = pd.Series(differences.index.get_level_values("draw"), differences.index)
    return differences, draws


def main(study: Annotated[Path, tyro.conf.Positional], reference: str = "fwdkl") -> None:
    """Print the differences of a shipped study; * marks a corrected p below .05."""
    print(f"Points above {reference}:\n")
    scores = read_tidy("scores", [*(study / "source").glob("scores.csv*")])
    table = difference_table(scores, reference)
    print(markdown_table([list(table), *table.to_numpy().tolist()]))


if __name__ == "__main__":
    tyro.cli(main)
