"""Gains over the dial of the search world, from the shipped studies of its settings."""

from pathlib import Path

import pandas as pd

from geosd.config import load, resolve
from geosd.config.study import Study
from geosd.provenance.proof import prove
from geosd.reporting import figures, tables, transfer
from geosd.reporting.method_style import short_rate
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.tidy import read_tidy


def main(
    studies: tuple[str, ...],
    rate: float,
    out: Path,
    shipped: Path = Path("figures"),
    params: Path = Path("params.yaml"),
) -> None:
    """Write figure_transfer, and tables of gains and of differences to FwdKL.

    Args:
        studies: Shipped studies of one model, one or more for each setting of `data.conflict`.
        rate: The common learning rate of all methods.
        shipped: Folder of the shipped studies.
    """
    loaded, runs = load(params), []
    for name in studies:
        files = [*(shipped / name / "source").glob("scores.csv*")]
        if not files:
            raise SystemExit(
                f"{shipped / name} has no scores: {name} is not shipped.\nHint: `make ship"
                f" STUDY={name}` ships it once it has run."
            )
        prove(files)
        study = resolve(loaded, name)
        gains = _gains(read_tidy("scores", files[0]), study)
        runs.append(gains.assign(setting=study.section("data")["conflict"]))
    keys = ["setting", "variant", "learning_rate", "seed"]
    gains = pd.concat(runs).drop_duplicates(keys).reset_index(drop=True)
    shown, words = gains[gains["learning_rate"] == rate], f"learning rate {short_rate(rate)}"
    figures.save(transfer.plot(words, shown), out, "figure_transfer")
    for table in (transfer.gains_table(words, shown), transfer.differences_table(words, shown)):
        tables.save(table, out, f"{table.name}_common_rate")


def _gains(scores: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The gains of each trained run of a study of one model, by its variant and learning rate."""
    model = study.models[0]
    points = []
    for name in study.trained:
        variant, _ = study.candidates.get(name, (name, {}))
        rate = study.training(model, name)["learning_rate"]
        points.append({"run": name, "variant": variant, "learning_rate": rate})
    return sweep_gains(scores, model, points)
