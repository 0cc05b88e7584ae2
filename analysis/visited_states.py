"""Base models and their teachers at visited states: the table of docs/smollm2.md.

    python analysis/visited_states.py figures/miniature figures/smollm2_methods

Each folder is a shipped study with the figure of state densities. In its `source/`, the table
`states` has every position of one rollout of pi_0 on each training problem, and `drift`, where a
study has it, the teacher's mass on the support of the loss, after training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import tyro

from geosd.claims.published import published
from geosd.mismatch_region import SURE, UNLIKELY
from geosd.reporting.shipping import shipped_source_tables
from geosd.reporting.tables import markdown_table
from geosd.scores.state_table import state_mismatch_share, state_table_of_model
from geosd.scores.step_log_tables import TEACHER_MASS
from geosd.scores.tidy import read_tidy, select_tidy_rows

HEADS = [
    "model",
    "states",
    f"mismatch, q★ ≥ {SURE} and p★ ≤ {UNLIKELY}",
    "q★, mean",
    "p★, mean",
    "overlap, mean",
    "overlap below .5",
    "entropy of p, nats",
    "teacher's mass on the support",
]


def measured(model: str, states: pd.DataFrame, drift: pd.DataFrame | None) -> list[str]:
    """A model's row: shares in per cent, means over states; the mass is a mean over GeoSD's runs.

    `overlap` is the sum of sqrt(p q) over the vocabulary, of student p and teacher q.
    """
    rows = state_table_of_model(states, model)
    mass = pd.Series()
    if drift is not None:
        mass = select_tidy_rows(drift, model=model, variant="geosd", quantity=TEACHER_MASS[0])[
            "value"
        ]
    return [
        model,
        f"{len(rows):,}",
        f"{100 * state_mismatch_share(rows):.1f} %",
        *(f"{rows[name].mean():.3f}" for name in ("q_star", "p_star", "overlap")),
        f"{100 * (rows['overlap'] < 0.5).mean():.1f} %",
        f"{rows['entropy'].mean():.3f}",
        "–" if mass.empty else f"{100 * mass.mean():.2f} %",
    ]


def main(studies: Annotated[tuple[Path, ...], tyro.conf.Positional]) -> None:
    """Print a row for each model of some shipped studies, below the paper's."""
    paper = {each["key"]: each["value"] for each in published()["text"]}
    mismatch, mass = paper["mismatch_share_percent"], paper["support_mass_percent"]
    rows = [["the paper", "–", f"{mismatch} %", *["–"] * 5, f"> {mass} %"]]
    for folder in studies:
        paths = shipped_source_tables(folder)
        states = read_tidy("states", paths["states"])
        drift = read_tidy("drift", paths["drift"]) if "drift" in paths else None
        rows += [measured(model, states, drift) for model in states["model"].unique()]
    print(markdown_table([HEADS, *rows]))


if __name__ == "__main__":
    tyro.cli(main)
