"""GeoSD without each of its parts (the paper's Table ablation)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import ABLATION, method, ordered
from geosd.reporting.table_main import said_k, said_runs
from geosd.reporting.tables import Cell, Column, Row, Table, ranked
from geosd.scores import drift_table as drifts
from geosd.scores.score_table import ID, OOD_AVERAGE, values
from geosd.scores.statistics import Group

SPEC = OutputSpec(
    title="GeoSD without each of its parts",
    caption=(
        "GeoSD without each of its parts, mean over seeds and its standard deviation; the change "
        "is from the full method, d_FR the distance from the base model at the end of training."
    ),
    reads=("scores", "drift"),
    settings=("models", "methods"),
)

FULL = "geosd"


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], methods: Sequence[str]
) -> Table:
    """A row for GeoSD and for each ablation: accuracies, coverage, and drift from pi_0.

    Args:
        scores: Tidy scores.
        drift: Tidy drift.
        models: Models, in order.
        methods: Variants of the study; GeoSD and its ablations are shown.

    Returns:
        The table; best and second-best accuracies are marked. A model that stands for the family
        of the paper's ablations has the paper's number beside each of its own.

    Raises:
        ValueError: GeoSD or every ablation is missing.
    """
    shown = [v for v in ordered(methods) if v == FULL or method(v).kind == ABLATION]
    lacking = [m for m in models if values(scores, m, FULL, OOD_AVERAGE, "avg@k").empty]
    if FULL not in shown or len(shown) < 2 or lacking:
        where = f" on {', '.join(lacking)}" if FULL in shown and lacking else ""
        raise ValueError(
            f"table_ablations compares {FULL} with its ablations, and the study has"
            f" {', '.join(shown) or 'neither'}{', but no OOD score of it' if where else ''}{where}."
            "\nHint: list geosd and geosd_jsd, geosd_no_prox or geosd_adamw under its `methods`."
        )
    columns: list[Column] = []
    cells: dict[str, list[Cell]] = {variant: [] for variant in shown}
    for model in models:
        family = paper.family(model)
        beside = paper.lookup(family, "geosd_no_prox", ID) is not None
        title = f"{model} (paper: {family})" if beside else model
        for column in _columns(scores, model, title):
            columns.append(column)
            key = column.key.removeprefix(f"{model}.")
            for variant, row in cells.items():
                row.append(_ours(scores, drift, model, variant, key))
            if beside:
                other_k = key == "ood_pass" and not column.label.endswith("@16")
                label = "paper @16" if other_k else "paper"
                columns.append(Column(f"{column.key}.paper", label, title))
                for variant, row in cells.items():
                    row.append(_paper(family, variant, key))
    rows = tuple(Row(method(v).label, "GeoSD", tuple(row)) for v, row in cells.items())
    note = (
        f"{said_k(scores)} and pass@k in percent, mean ± standard deviation over"
        f" {said_runs(scores)}. Δ OOD is the change of the OOD average from the full method."
        " d_FR is the mean Fisher-Rao distance from π₀ at the end of training, in radians. A model"
        " of this study stands beside the paper's model of the same architecture; they are not the"
        " same model, and only the pattern can be compared."
    )
    return ranked(Table("table_ablations", "Ablations", note, "Variant", tuple(columns), rows))


def _columns(scores: pd.DataFrame, model: str, title: str) -> list[Column]:
    ks = scores.loc[(scores["model"] == model) & (scores["metric"] == "pass@k"), "k"]
    k = "k" if ks.empty else int(ks.max())
    return [
        Column(f"{model}.{ID}", "ID", title, "high"),
        Column(f"{model}.{OOD_AVERAGE}", "OOD avg.", title, "high"),
        Column(f"{model}.delta_ood", "Δ OOD", title),
        Column(f"{model}.ood_pass", f"OOD pass@{k}", title, "high"),
        Column(f"{model}.d_fr", "d_FR to π₀", title),
    ]


def _ours(scores: pd.DataFrame, drift: pd.DataFrame, model: str, variant: str, key: str) -> Cell:
    if key == "delta_ood":
        mine, full = (values(scores, model, name, OOD_AVERAGE, "avg@k") for name in (variant, FULL))
        if variant == FULL or mine.empty:
            return Cell(None)
        return Cell(mine.mean() - full.mean(), form="+.1f")
    if key == "d_fr":
        return _cell(drifts.values(drift, model, variant, "drift/pi_0"), ".2f")
    benchmark, metric = (OOD_AVERAGE, "pass@k") if key == "ood_pass" else (key, "avg@k")
    return _cell(values(scores, model, variant, benchmark, metric))


def _cell(runs: pd.Series, form: str = ".1f") -> Cell:
    if runs.empty:
        return Cell(None)
    group = Group.of(runs)
    return Cell(group.mean, group.sd if group.n > 1 else None, form)


def _paper(family: str | None, variant: str, key: str) -> Cell:
    if key == "delta_ood":
        # The full method's own is its gain over pi_0, another quantity.
        number = None if variant == FULL else paper.lookup(family, variant, key)
        return Cell(None) if number is None else Cell(number.mean, form="+.1f")
    if key == "d_fr":
        number = paper.lookup(family, variant, OOD_AVERAGE, "drift/pi_0")
        return Cell(None) if number is None else Cell(number.mean, form=".2f")
    if key == "ood_pass":
        number = paper.lookup(family, variant, OOD_AVERAGE, "pass@k")
    else:
        number = paper.lookup(family, variant, key)
    return Cell(None) if number is None else Cell(number.mean)
