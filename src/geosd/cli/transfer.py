"""Gains over the dial of the search world, from the shipped studies of its settings."""

from pathlib import Path

import pandas as pd

from geosd.config import load, resolve
from geosd.config.study import Study
from geosd.provenance.proof import prove
from geosd.reporting import figures, tables, transfer
from geosd.reporting.method_style import short_rate
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.rate_selection import best_common_rate, collapsed_runs
from geosd.scores.tidy import read_tidy

KEYS = ("variant", "learning_rate")


def main(
    studies: tuple[str, ...],
    rate: float,
    out: Path,
    shipped: Path = Path("figures"),
    params: Path = Path("params.yaml"),
) -> None:
    """Write figures of gains, and tables of gains and of differences to FwdKL.

    They stand at a common rate and, where every setting was validated, at each method's best one:
    that of its best mean avg@k on the validation problems of the setting.

    Args:
        studies: Shipped studies of one model, one or more for each setting of `data.conflict`;
            those on validation problems choose the best rates.
        rate: The common learning rate of all methods.
        shipped: Folder of the shipped studies.
    """
    loaded, runs, best, collapsed = load(params), [], {}, {}
    for name in studies:
        files = [*(shipped / name / "source").glob("scores.csv*")]
        if not files:
            raise SystemExit(
                f"{shipped / name} has no scores: {name} is not shipped.\nHint: `make ship"
                f" STUDY={name}` ships it once it has run."
            )
        prove(files)
        study, scores = resolve(loaded, name), read_tidy("scores", files[0])
        setting, points = study.section("data")["conflict"], _points(study)
        if study.section("data")["purpose"] == "validation":
            fallen = collapsed_runs(scores)
            for run, variant, its_rate in points:
                collapsed[setting, variant, its_rate] = fallen[run]
            for variant in {variant for _, variant, _ in points}:
                rates = {run: its_rate for run, of, its_rate in points if of == variant}
                best[setting, variant] = best_common_rate(scores, {variant: rates})
        else:
            keyed = [dict(zip(("run", *KEYS), point, strict=True)) for point in points]
            runs.append(sweep_gains(scores, study.models[0], keyed).assign(setting=setting))
    gains = pd.concat(runs).drop_duplicates(["setting", *KEYS, "seed"]).reset_index(drop=True)
    chosen = {"common_rate": (f"learning rate {short_rate(rate)}", gains["learning_rate"] == rate)}
    of_runs = pd.MultiIndex.from_frame(gains[["setting", *KEYS]])
    if set(of_runs) <= set(collapsed):
        gains["collapsed"] = of_runs.map(collapsed)
        at_best = gains["learning_rate"] == of_runs.droplevel("learning_rate").map(best)
        chosen["best_rate"] = ("best rate by validation", at_best)
    for key, (words, rows) in chosen.items():
        shown, suffix = gains[rows], "" if key == "common_rate" else f"_{key}"
        figures.save(transfer.plot(words, shown), out, f"figure_transfer{suffix}")
        for table in (
            transfer.gains_table(words, shown),
            transfer.differences_table(words, shown, primary=key == "common_rate"),
        ):
            tables.save(table, out, f"{table.name}_{key}")


def _points(study: Study) -> list[tuple[str, str, float]]:
    """Name, variant and learning rate of each trained run of a study of one model."""
    return [
        (
            name,
            study.candidates.get(name, (name, {}))[0],
            study.training(study.models[0], name)["learning_rate"],
        )
        for name in study.trained
    ]
