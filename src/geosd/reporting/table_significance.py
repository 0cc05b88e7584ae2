"""GeoSD against the strongest baseline on average OOD accuracy (the paper's Table sig)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import ABLATION, method_style, ordered_methods
from geosd.reporting.sentences import accuracy_in_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow
from geosd.scores.score_table import OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.statistics import GroupStatistics, holm, student_effect_interval, welch
from geosd.scores.tidy import select_tidy_rows

QUANTITIES = {  # heading and format
    "runs": ("runs", "d"),
    "geosd": ("GeoSD", ".1f"),
    "baseline": ("best baseline", ""),
    "baseline_mean": ("its mean", ".1f"),
    "difference": ("Δ", "+.1f"),
    "low": ("95% from", "+.1f"),
    "high": ("to", "+.1f"),
    "g": ("Hedges' g", ".1f"),
    "p_holm": ("p (Holm)", ".1e"),
    "p_paired": ("p paired", ".1e"),
}


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_significance`: GeoSD against its strongest baseline on each model.

    That is the variant but GeoSD and its ablations with the highest mean OOD average. It is chosen
    on the data that it is then tested on, as in the paper; claims name their rival beforehand.
    A model without GeoSD or without a baseline has no row.
    """
    tests: dict[str, dict[str, Any]] = {}
    for model in models:
        test = _test(scores, model, methods)
        if test is not None:
            tests[model] = test
    for key in ("p_holm", "p_paired"):
        corrected = holm([test[key] for test in tests.values()])
        for test, p in zip(tests.values(), corrected, strict=True):
            test[key] = p
    rows: list[TableRow] = []
    published = paper.published()["significance"]
    for model, test in tests.items():
        rows.append(_row(model, "this study", test))
        family = paper.published_family(model)
        if family in published["families"]:
            printed = {"runs": published["n"], **published["families"][family]}
            rows.append(_row(f"paper: {family}", "paper", printed))
    note = (
        f"Average OOD accuracy ({accuracy_in_sentence(scores)}); Δ is GeoSD's lead over the"
        " strongest baseline with its 95% interval, of differences within a seed; the unit is the"
        " draw of the base model where there are several, else the run. p: the one-sided Welch"
        " t-test as in the paper, over runs, and the t-test of the differences, each"
        " Holm-corrected over the models. The paper's interval is Welch's. An empty entry cannot"
        " be estimated: a single run, or no variance."
    )
    title = "GeoSD against the strongest baseline"
    columns = tuple(TableColumn(key, heading) for key, (heading, _) in QUANTITIES.items())
    return Table("table_significance", title, note, "Model", columns, tuple(rows))


def _test(scores: pd.DataFrame, model: str, methods: Sequence[str]) -> dict[str, Any] | None:
    """GeoSD against its strongest baseline on a model, p uncorrected; None without either."""
    runs = {
        name: scores_by_seed(scores, model, name, OOD_AVERAGE) for name in ordered_methods(methods)
    }
    groups = {name: GroupStatistics.of(seeds) for name, seeds in runs.items() if len(seeds)}
    rivals = [name for name in groups if name != "geosd" and method_style(name).kind != ABLATION]
    if "geosd" not in groups or not rivals:
        return None
    best = max(rivals, key=lambda name: groups[name].mean)
    geosd, baseline = groups["geosd"], groups[best]
    of_runs = welch(geosd, baseline)
    leads = (runs["geosd"] - runs[best]).dropna()
    draws = score_table_replicates(select_tidy_rows(scores, model=model)).reindex(leads.index)
    lead = student_effect_interval([(leads, draws)])
    return {
        "runs": min(geosd.n, baseline.n),
        "geosd": geosd.mean,
        "baseline": best,
        "baseline_mean": baseline.mean,
        "difference": lead.difference,
        "low": lead.low,
        "high": lead.high,
        "g": of_runs.g,
        "p_holm": of_runs.p,
        "p_paired": lead.p,
    }


def _row(label: str, kind: str, numbers: Mapping[str, Any]) -> TableRow:
    entries = {**numbers, "baseline": method_style(numbers["baseline"]).label}
    cells = (TableCell(entries.get(key), form=form) for key, (_, form) in QUANTITIES.items())
    return TableRow(label, kind, tuple(cells))
