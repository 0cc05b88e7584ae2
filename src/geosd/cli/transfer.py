"""Gains over the dial of the search world, from the shipped studies of its settings."""

from pathlib import Path

import pandas as pd

from geosd.config import load, resolve
from geosd.config.study import Study
from geosd.provenance.proof import prove
from geosd.reporting import figures, tables, transfer
from geosd.reporting.method_tables import short_rate
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.tidy import read_tidy
from geosd.scores.transfer import best_rates, collapsed_runs


def main(
    studies: tuple[str, ...],
    rate: float,
    out: Path,
    shipped: Path = Path("figures"),
    params: Path = Path("params.yaml"),
) -> None:
    """Write figure_transfer, and tables of gains and of differences to FwdKL.

    Args:
        studies: Shipped studies of one model, one or more for each setting of `data.conflict`;
            those of kind selection choose the best rate of each method.
        rate: The common learning rate of all methods.
        shipped: Folder of the shipped studies.
    """
    loaded, runs, best = load(params), [], {}
    for name in studies:
        study = resolve(loaded, name)
        setting = study.section("data")["conflict"]
        files = [*(shipped / name / "source").glob("scores.csv*")]
        if not files:
            hint = f"`make ship STUDY={name}` ships it once it has run."
            raise SystemExit(
                f"{shipped / name} has no scores: {name} is not shipped.\nHint: {hint}"
            )
        prove(files)
        scores = read_tidy("scores", files[0])
        rates = _rates(study)
        if study.section("data")["purpose"] == "validation":
            best[setting] = best_rates(scores, rates), collapsed_runs(scores)
        else:
            runs.append(_gains(scores, study.models[0], rates).assign(setting=setting))
    keys = ["setting", "variant", "learning_rate", "seed"]
    gains = pd.concat(runs).drop_duplicates(keys).reset_index(drop=True)
    chosen = {
        "common_rate": (f"learning rate {short_rate(rate)}", gains[gains["learning_rate"] == rate])
    }
    if best and set(best) == set(gains["setting"]):
        at = [best[s][0].get(v) for s, v in zip(gains["setting"], gains["variant"], strict=True)]
        fallen = [best[s][1].get(r, 0) for s, r in zip(gains["setting"], gains["run"], strict=True)]
        chosen["best_rate"] = ("best rate by validation", gains[gains["learning_rate"] == at])
        collapsed = pd.Series(fallen, gains.index)
        chosen = {
            key: (words, of.assign(collapsed=collapsed)) for key, (words, of) in chosen.items()
        }
    figures.save(transfer.plot(dict(chosen.values())), out, "figure_transfer")
    for key, (words, of) in chosen.items():
        primary = key == "common_rate"
        for table in (
            transfer.gains_table(words, of),
            transfer.differences_table(words, of, primary),
        ):
            tables.save(table, out, f"{table.name}_{key}")


def _rates(study: Study) -> dict[str, tuple[str, float]]:
    """Variant and learning rate of each trained run of a study of one model."""
    model = study.models[0]
    owner = {name: variant for name, (variant, _) in study.candidates.items()}
    return {
        name: (owner.get(name, name), study.training(model, name)["learning_rate"])
        for name in study.trained
    }


def _gains(scores: pd.DataFrame, model: str, rates: dict[str, tuple[str, float]]) -> pd.DataFrame:
    points = [
        {"run": name, "variant": variant, "learning_rate": rate}
        for name, (variant, rate) in rates.items()
    ]
    return sweep_gains(scores, model, points)
