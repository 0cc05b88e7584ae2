"""Put the drift of every run at every step into one tidy table, from the step logs."""

from __future__ import annotations

from pathlib import Path

from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.files import atomic_write
from geosd.scores.drift_curves import collect
from geosd.scores.score_table import Run
from geosd.steps import begin


def main(study: str, results: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Collect the drift of a study's runs.

    Args:
        study: Name of the study.
        results: The study's folder, with `train/`.
        out: Folder of `drift_over_steps.csv`.
        params: The configuration.
    """
    settings = settings_of("drift_over_steps", resolve(load(params), study))
    runs = [
        Run(model, variant, seed)
        for model in settings["models"]
        for variant in settings["methods"]
        for seed in settings["seeds"]
    ]
    table = collect(
        {run: results / "train" / run.model / run.variant / f"{run.seed}/steps.csv" for run in runs}
    )
    with atomic_write(out / "drift_over_steps.csv") as temporary:
        table.to_csv(temporary, index=False)


if __name__ == "__main__":
    begin(main)
