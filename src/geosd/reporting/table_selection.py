"""Each variant's candidates on the validation problems, and which learning rate is selected."""

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method_style
from geosd.reporting.method_tables import accuracy_method_cell, candidate_method_table
from geosd.reporting.sentences import accuracy_in_sentence, number_of_runs_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow, rank_table
from geosd.scores.rate_selection import (
    RULE,
    VALIDATION,
    candidates_clear_of_collapse,
    collapsed_runs_in_selection,
    select_candidate,
    selection_behind_best,
)


def build(
    scores: pd.DataFrame,
    models: Sequence[str],
    candidates: Mapping[str, str],
    rate_candidates: Mapping[str, Mapping[str, float]],
) -> Table:
    """Build `table_selection`: validation accuracy of candidates; of rates, the selected one."""
    columns = [column for model in models for column in _columns(model, bool(rate_candidates))]
    rows: list[TableRow] = []
    for variant in dict.fromkeys(candidates.values()):
        label = method_style(variant).label
        names = [name for name, owner in candidates.items() if owner == variant]
        cells: dict[str, dict[str, TableCell]] = {name: {} for name in names}
        for model in models:
            of_model = _cells(scores, model, names, rate_candidates.get(variant, {}))
            for name in names:
                cells[name] |= of_model[name]
        named = [(name.replace(f"{variant}-", f"{label} "), variant, cells[name]) for name in names]
        rows += rank_table(candidate_method_table("block", "", "", "", columns, named)).rows
    note = (
        f"{accuracy_in_sentence(scores)} on the validation problems, in percent, mean ± standard"
        f" deviation over {number_of_runs_sentence(scores)}; no candidate is trained on a"
        " validation problem. Best and second-best of each method. Behind: the mean over seeds of"
        " the difference to the best, ± its standard error."
    )
    if rate_candidates:
        note += f" Selected: {RULE}."
    title = "Selection of hyperparameters"
    return Table("table_selection", title, note, "Candidate", tuple(columns), tuple(rows))


def _cells(
    scores: pd.DataFrame, model: str, names: Sequence[str], rates: Mapping[str, float]
) -> dict[str, dict[str, TableCell]]:
    """The cells of a variant's candidates on a model by candidate, and by the columns' keys."""
    verdicts = _verdicts(scores, rates)
    if rates:
        verdicts[select_candidate(scores, model, rates)] = "selected"
    behind = selection_behind_best(scores, model, names)
    cells = {}
    for name in names:
        cells[name] = {
            f"{model}.{VALIDATION}": accuracy_method_cell(scores, model, name, VALIDATION),
            f"{model}.selected": TableCell(verdicts.get(name, "")),
        }
        if behind.loc[name, "behind"] != 0:
            cells[name][f"{model}.behind"] = TableCell(*behind.loc[name, ["behind", "error"]])
    return cells


def _verdicts(scores: pd.DataFrame, rates: Mapping[str, float]) -> dict[str, str]:
    """Why a learning rate may not be selected on any model, by candidate."""
    if not rates:
        return {}
    clear = candidates_clear_of_collapse(scores, rates)
    collapsed = collapsed_runs_in_selection(scores)
    verdicts = {}
    for name in rates:
        if collapsed[name]:
            verdicts[name] = "collapses"
        elif name not in clear:
            verdicts[name] = "near a collapse"
    return verdicts


def _columns(model: str, of_rates: bool) -> list[TableColumn]:
    columns = [
        TableColumn(f"{model}.{VALIDATION}", "validation", model, "high"),
        TableColumn(f"{model}.behind", "behind", model),
    ]
    if of_rates:
        columns.append(TableColumn(f"{model}.selected", "rate", model))
    return columns
