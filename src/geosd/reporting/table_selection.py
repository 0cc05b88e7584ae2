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
        label, rates = method(variant).label, rate_candidates.get(variant, {})
        names = [name for name, owner in candidates.items() if owner == variant]
        cells: dict[str, dict[str, Cell]] = {name: {} for name in names}
        verdicts = _verdicts(scores, rates)
        for model in models:
            behind = behind_best(scores, model, names)
            selected = select_candidate(scores, model, rates) if rates else None
            for name in names:
                of_name = {VALIDATION: accuracy_cell(scores, model, name, VALIDATION)}
                if behind.loc[name, "behind"] != 0:
                    of_name["behind"] = Cell(*behind.loc[name, ["behind", "error"]])
                verdict = "selected" if name == selected else verdicts.get(name, "")
                of_name["selected"] = Cell(verdict)
                cells[name] |= {f"{model}.{key}": cell for key, cell in of_name.items()}
        named = ((name.replace(f"{variant}-", f"{label} "), variant, cells[name]) for name in names)
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


def _verdicts(scores: pd.DataFrame, rates: Mapping[str, float]) -> dict[str, str]:
    """Why a learning rate may not be selected on any model, by candidate."""
    if not rates:
        return {}
    clear, fallen = candidates_clear_of_collapse(scores, rates), collapsed_runs(scores)
    verdicts = {name: "near a collapse" for name in rates if name not in clear}
    return verdicts | {name: "collapses" for name in rates if fallen[name]}


def _columns(model: str, of_rates: bool) -> list[Column]:
    columns = [
        Column(f"{model}.{VALIDATION}", "validation", model, "high"),
        Column(f"{model}.behind", "behind", model),
    ]
    return [*columns, Column(f"{model}.selected", "rate", model)] if of_rates else columns
