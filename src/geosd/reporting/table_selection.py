"""Each variant's candidates on the validation problems, and which learning rate is selected."""

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method
from geosd.reporting.method_tables import accuracy_cell, candidate_table
from geosd.reporting.sentences import accuracy_name, number_of_runs
from geosd.reporting.tables import Cell, Column, Row, Table, ranked
from geosd.scores.rate_selection import (
    RULE,
    VALIDATION,
    behind_best,
    candidates_clear_of_collapse,
    collapsed_runs,
    select_candidate,
)


def build(
    scores: pd.DataFrame,
    models: Sequence[str],
    candidates: Mapping[str, str],
    rate_candidates: Mapping[str, Mapping[str, float]],
) -> Table:
    """Build `table_selection`: validation accuracy of candidates; of rates, the selected one."""
    columns = [column for model in models for column in _columns(model, bool(rate_candidates))]
    rows: list[Row] = []
    for variant in dict.fromkeys(candidates.values()):
        label = method(variant).label
        names = [name for name, owner in candidates.items() if owner == variant]
        cells: dict[str, dict[str, Cell]] = {name: {} for name in names}
        for model in models:
            of_model = _cells(scores, model, names, rate_candidates.get(variant, {}))
            for name in names:
                cells[name] |= of_model[name]
        named = [(name.replace(f"{variant}-", f"{label} "), variant, cells[name]) for name in names]
        rows += ranked(candidate_table("block", "", "", "", columns, named)).rows
    note = (
        f"{accuracy_name(scores)} on the validation problems, in percent, mean ± standard deviation"
        f" over {number_of_runs(scores)}; no candidate is trained on a validation problem."
        " Best and second-best of each method. Behind: the mean over seeds of the difference to"
        " the best, ± its standard error."
    )
    if rate_candidates:
        note += f" Selected: {RULE}."
    title = "Selection of hyperparameters"
    return Table("table_selection", title, note, "Candidate", tuple(columns), tuple(rows))


def _cells(
    scores: pd.DataFrame, model: str, names: Sequence[str], rates: Mapping[str, float]
) -> dict[str, dict[str, Cell]]:
    """The cells of a variant's candidates on a model by candidate, and by the columns' keys."""
    verdicts = _verdicts(scores, rates)
    if rates:
        verdicts[select_candidate(scores, model, rates)] = "selected"
    behind = behind_best(scores, model, names)
    cells = {}
    for name in names:
        cells[name] = {
            f"{model}.{VALIDATION}": accuracy_cell(scores, model, name, VALIDATION),
            f"{model}.selected": Cell(verdicts.get(name, "")),
        }
        if behind.loc[name, "behind"] != 0:
            cells[name][f"{model}.behind"] = Cell(*behind.loc[name, ["behind", "error"]])
    return cells


def _verdicts(scores: pd.DataFrame, rates: Mapping[str, float]) -> dict[str, str]:
    """Why a learning rate may not be selected on any model, by candidate."""
    if not rates:
        return {}
    clear = candidates_clear_of_collapse(scores, rates)
    collapsed = collapsed_runs(scores)
    verdicts = {}
    for name in rates:
        if collapsed[name]:
            verdicts[name] = "collapses"
        elif name not in clear:
            verdicts[name] = "near a collapse"
    return verdicts


def _columns(model: str, of_rates: bool) -> list[Column]:
    columns = [
        Column(f"{model}.{VALIDATION}", "validation", model, "high"),
        Column(f"{model}.behind", "behind", model),
    ]
    if of_rates:
        columns.append(Column(f"{model}.selected", "rate", model))
    return columns
