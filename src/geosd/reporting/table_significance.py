"""GeoSD against the strongest baseline on average OOD accuracy (the paper's Table sig)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_cells import accuracy_name
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import ABLATION, method, ordered
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.score_table import OOD_AVERAGE, values
from geosd.scores.statistics import ContrastResult, Group, contrast, holm, welch

SPEC = OutputSpec(
    title="GeoSD against the best baseline",
    caption=(
        "GeoSD against the strongest baseline of each model on the mean out-of-distribution "
        "accuracy: one-sided Welch test over seeds, Holm-corrected over models, with Hedges' g; "
        "beside it the same test paired by seed."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)

COLUMNS = (
    Column("runs", "runs"),
    Column("geosd", "GeoSD"),
    Column("baseline", "best baseline"),
    Column("baseline_mean", "its mean"),
    Column("difference", "Δ"),
    Column("low", "95% from"),
    Column("high", "to"),
    Column("g", "Hedges' g"),
    Column("p_holm", "p (Holm)"),
    Column("p_paired", "p paired"),
)

PUBLISHED = ("geosd", "baseline", "baseline_mean", "difference", "low", "high", "g", "p_holm")
"""Of a row, what the paper prints."""


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """A row per model: GeoSD, its strongest baseline, and the one-sided tests between them.

    The strongest baseline is the one with the highest mean OOD average among all variants but
    GeoSD and its ablations; pi_0 is one of them. It is chosen on the data that it is then tested
    on, as in the paper; the ledger's claims name their rival beforehand.

    The tests are Holm-corrected over the models; the paper's row stands under each model that
    stands for a family. A model without GeoSD or without a baseline has no row.
    """
    tests: dict[str, tuple[Group, str, Group, ContrastResult]] = {}
    paired: dict[str, float] = {}
    for model in models:
        runs = {
            variant: seeds
            for variant in ordered(methods)
            if len(seeds := values(scores, model, variant, OOD_AVERAGE, "avg@k"))
        }
        groups = {variant: Group.of(seeds) for variant, seeds in runs.items()}
        rivals = {v: g for v, g in groups.items() if v != "geosd" and method(v).kind != ABLATION}
        if "geosd" in groups and rivals:
            best = max(rivals, key=lambda v: rivals[v].mean)
            test = welch(groups["geosd"], rivals[best])
            tests[model] = (groups["geosd"], best, rivals[best], test)
            paired[model] = contrast([Group.of((runs["geosd"] - runs[best]).dropna())]).p
    adjusted = holm([test.p for *_, test in tests.values()])
    pairs = holm(list(paired.values()))
    rows: list[Row] = []
    for (model, (geosd, best, rival, test)), p, pair in zip(
        tests.items(), adjusted, pairs, strict=True
    ):
        rows.append(
            _row(model, "this study", min(geosd.n, rival.n), geosd.mean, best, rival.mean,
                 test.difference, test.low, test.high, test.g, p, pair)
        )  # fmt: skip
        published = paper.published()["significance"]
        if cells := published["families"].get(paper.family(model)):
            label = f"paper: {paper.family(model)}"
            numbers = (cells[key] for key in PUBLISHED)
            rows.append(_row(label, "paper", published["n"], *numbers, math.nan))
    note = (
        f"Average OOD accuracy ({accuracy_name(scores)}); Δ is GeoSD's lead over the strongest"
        " baseline with its 95% interval; one-sided Welch t-test as in the paper, and the t-test of"
        " differences within a seed, each Holm-corrected over the models. The run is the unit. An"
        " empty entry cannot be estimated: a single run, or no variance."
    )
    title = "GeoSD against the strongest baseline"
    return Table("table_significance", title, note, "Model", COLUMNS, tuple(rows))


def _row(label: str, kind: str, n: int, geosd: float, best: str, rival: float, *test: float) -> Row:
    difference, low, high, g, p, paired = test
    cells = (
        Cell(n, form="d"),
        Cell(geosd),
        Cell(method(best).label),
        Cell(rival),
        Cell(difference, form="+.1f"),
        Cell(low, form="+.1f"),
        Cell(high, form="+.1f"),
        Cell(g),
        Cell(p, form=".1e"),
        Cell(paired, form=".1e"),
    )
    return Row(label, kind, cells)
