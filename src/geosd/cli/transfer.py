"""Gains over the dial of the search world, from the shipped studies of its settings."""

from pathlib import Path
from typing import Any

import pandas as pd

from geosd.config import load, resolve
from geosd.config.study import Study
from geosd.config.sweeps import swept_values
from geosd.provenance.proof import prove
from geosd.reporting import figures, saved_tables, transfer
from geosd.reporting.method_style import short_rate
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.rate_selection import best_common_rate, collapsed_runs
from geosd.scores.tidy import read_tidy

CANDIDATE = ["setting", "variant", "learning_rate"]


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
    loaded, runs, validated = load(params), [], []
    for name in studies:
        files = [*(shipped / name / "source").glob("scores.csv*")]
        if not files:
            raise SystemExit(
                f"{shipped / name} has no scores: {name} is not shipped.\nHint: `make ship"
                f" STUDY={name}` ships it once it has run."
            )
        prove(files)
        study, scores = resolve(loaded, name), read_tidy("scores", files[0])
        setting = study.section("data")["conflict"]
        if study.section("data")["purpose"] == "validation":
            validated.append(_validated(scores, study).assign(setting=setting))
        else:
            own = sweep_gains(scores, study.models[0], _points(study))
            runs.append(own.assign(setting=setting))
    gains = pd.concat(runs).drop_duplicates([*CANDIDATE, "seed"]).reset_index(drop=True)
    if validated:
        judged = gains.merge(pd.concat(validated), how="left", on=CANDIDATE)
        gains = judged if judged["best"].notna().all() else gains
    chosen = {"common_rate": (f"learning rate {short_rate(rate)}", gains["learning_rate"] == rate)}
    if "best" in gains:
        chosen["best_rate"] = ("best rate by validation", gains["best"].astype(bool))
    for key, (words, rows) in chosen.items():
        shown, suffix = gains[rows], "" if key == "common_rate" else f"_{key}"
        figures.save(transfer.plot(words, shown), out, f"figure_transfer{suffix}")
        for table in (
            transfer.gains_table(words, shown),
            transfer.differences_table(words, shown, primary=key == "common_rate"),
        ):
            saved_tables.save(table, out, f"{table.name}_{key}")


def _points(study: Study) -> list[dict[str, Any]]:
    """Name, variant and learning rate of each trained run of a study of one model."""
    points = []
    for name in study.trained:
        variant, _ = study.candidates.get(name, (name, {}))
        rate = study.training(study.models[0], name)["learning_rate"]
        points.append({"run": name, "variant": variant, "learning_rate": rate})
    return points


def _validated(scores: pd.DataFrame, study: Study) -> pd.DataFrame:
    """How many runs of each variant and rate `collapsed`, and whether the rate is its `best`."""
    collapsed, rows = collapsed_runs(scores), []
    for variant, rates in swept_values(study, "learning_rate").items():
        best = best_common_rate(scores, {variant: rates})
        for run, rate in rates.items():
            known = {"collapsed": collapsed[run], "best": rate == best}
            rows.append({"variant": variant, "learning_rate": rate, **known})
    return pd.DataFrame(rows)
