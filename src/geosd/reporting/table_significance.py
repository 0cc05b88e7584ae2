"""GeoSD against the strongest baseline on average OOD accuracy (the paper's Table sig)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import ABLATION, method, ordered
from geosd.reporting.sentences import accuracy_name
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.score_table import OOD_AVERAGE, replicates_by_seed, scores_by_seed
from geosd.scores.statistics import Group, effect_interval, holm, welch
from geosd.scores.tidy import select_rows

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
        runs = {
            variant: seeds
            for variant in ordered(methods)
            if len(seeds := scores_by_seed(scores, model, variant, OOD_AVERAGE))
        }
        groups = {variant: Group.of(seeds) for variant, seeds in runs.items()}
        rivals = {v: g for v, g in groups.items() if v != "geosd" and method(v).kind != ABLATION}
        if "geosd" in groups and rivals:
            geosd, best = groups["geosd"], max(rivals, key=lambda v: rivals[v].mean)
            test = welch(geosd, rivals[best])
            leads = (runs["geosd"] - runs[best]).dropna()
            draws = replicates_by_seed(select_rows(scores, model=model)).reindex(leads.index)
            lead = effect_interval([(leads, draws)])
            tests[model] = {
                "runs": min(geosd.n, rivals[best].n),
                "geosd": geosd.mean,
                "baseline": best,
                "baseline_mean": rivals[best].mean,
                **{key: getattr(lead, key) for key in ("difference", "low", "high")},
                "g": test.g,
                "p_holm": test.p,
                "p_paired": lead.p,
            }
    for key in ("p_holm", "p_paired"):
        for row, p in zip(tests.values(), holm([t[key] for t in tests.values()]), strict=True):
            row[key] = p
    rows: list[Row] = []
    published = paper.published()["significance"]
    for model, row in tests.items():
        rows.append(_row(model, "this study", row))
        family = paper.paper_family(model)
        if printed := published["families"].get(family):
            rows.append(_row(f"paper: {family}", "paper", {"runs": published["n"], **printed}))
    note = (
        f"Average OOD accuracy ({accuracy_name(scores)}); Δ is GeoSD's lead over the strongest"
        " baseline with its 95% interval, of differences within a seed; the unit is the draw of the"
        " base model where there are several, else the run. p: the one-sided Welch t-test as in the"
        " paper, over runs, and the t-test of the differences, each Holm-corrected over the models."
        " The paper's interval is Welch's. An empty entry cannot be estimated: a single run, or no"
        " variance."
    )
    title = "GeoSD against the strongest baseline"
    columns = tuple(Column(key, heading) for key, (heading, _) in QUANTITIES.items())
    return Table("table_significance", title, note, "Model", columns, tuple(rows))


def _row(label: str, kind: str, numbers: Mapping[str, Any]) -> Row:
    entries = {**numbers, "baseline": method(numbers["baseline"]).label}
    cells = (Cell(entries.get(key), form=form) for key, (_, form) in QUANTITIES.items())
    return Row(label, kind, tuple(cells))
