"""Gains over the dial from transfer to conflict, and differences to FwdKL (docs/transfer.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method, ordered
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import Group, contrast, holm
from geosd.scores.transfer import crossing_interval, paired_differences

REFERENCE = "fwdkl"
LEVEL = 0.05
LABELS = {OOD_AVERAGE: "OOD", ID: "ID"}


def build(gains: Mapping[str, pd.DataFrame]) -> Table:
    """Build `table_transfer`: blocks of gains and of differences to FwdKL, a column a setting.

    `gains` has a table for each choice of rates, with `setting`, `variant`, `seed`, a column for
    each benchmark, and `collapsed`, the runs of the same candidate that collapse, where known.
    """
    settings = sorted({setting for runs in gains.values() for setting in runs["setting"]})
    rows: list[Row] = []
    for choice, runs in gains.items():
        for benchmark, label in LABELS.items():
            rows += _gain_rows(runs, benchmark, f"{label} gain, {choice}", settings)
        for benchmark, label in LABELS.items():
            block = f"{label} gain minus FwdKL's, {choice}"
            rows += _difference_rows(runs, benchmark, block, settings)
    seeds = next(iter(gains.values()))["seed"].nunique()
    note = (
        "Change of avg@k from π₀ of the same draw, in points, mean ± half-width of Student's 95 %"
        f" interval over {seeds} draws of the base model. Columns are settings of data.conflict: at"
        " 0 the ID problems have the OOD problems' mean prior, at 1 its opposite. Crosses 0: the"
        " setting at which the mean OOD gain falls to 0, and the middle 95 % of 10,000 bootstrap"
        " samples of the draws; 0 stands for no gain at any setting from 0 on, the last setting"
        " for a gain at every one. A difference is taken within each draw; it is bold where"
        f" p < {LEVEL} by the paired t test with Holm's correction over the methods of its column."
    )
    columns = [Column(f"{setting:g}", f"{setting:g}") for setting in settings]
    columns += [Column("crossing", "crosses 0"), Column("from", "from"), Column("to", "to")]
    if any("collapsed" in runs for runs in gains.values()):
        note += " Collapsed: runs ten points or more below π₀ on validation problems, of all."
        columns.append(Column("collapsed", "collapsed"))
    rows = [Row(row.label, row.kind, _padded(row.cells, len(columns))) for row in rows]
    title = "Gains over the dial from transfer to conflict"
    choice, at_common_rate = next(iter(gains.items()))
    remarks = (f"Primary, {choice}: {_primary(at_common_rate, (settings[0], settings[-1]))}.",)
    return Table("table_transfer", title, note, "Method", tuple(columns), tuple(rows), remarks)


def _primary(runs: pd.DataFrame, settings: Sequence[float]) -> str:
    """GeoSD's OOD gain minus FwdKL's at the ends of the dial, Holm over the two, in words."""
    two = runs[runs["variant"].isin(["geosd", REFERENCE])].rename(columns={OOD_AVERAGE: "gain"})
    tests = [paired_differences(two[two["setting"] == s], REFERENCE).iloc[0] for s in settings]
    corrected = holm([test["p"] for test in tests])
    return "; ".join(
        f"at {setting:g} the OOD gain of GeoSD minus that of FwdKL is {test['difference']:+.1f}"
        f" [{test['low']:+.1f}, {test['high']:+.1f}] points, p = {p:.2g}"
        for setting, test, p in zip(settings, tests, corrected, strict=True)
    )


def _gain_rows(
    runs: pd.DataFrame, benchmark: str, block: str, settings: Sequence[float]
) -> list[Row]:
    rows = []
    for name in ordered(runs["variant"]):
        own = runs[runs["variant"] == name]
        by_setting = own.pivot(index="seed", columns="setting", values=benchmark)
        tests = {s: contrast([Group.of(by_setting[s].dropna())]) for s in by_setting}
        cells = [
            Cell(tests[s].difference, tests[s].high - tests[s].difference, "+.1f")
            if s in tests
            else Cell(None)
            for s in settings
        ]
        if benchmark == OOD_AVERAGE and len(by_setting.columns) > 1:
            crossing = crossing_interval(list(by_setting), by_setting.to_numpy())
            cells += [Cell(value, form=".2f") for value in crossing]
        else:
            cells += [Cell(None)] * 3
        if benchmark == OOD_AVERAGE and "collapsed" in own:
            fallen = own.groupby("setting")["collapsed"].first().sum()
            cells.append(Cell(f"{fallen:g} of {len(own)}"))
        rows.append(Row(method(name).label, block, tuple(cells)))
    return rows


def _difference_rows(
    runs: pd.DataFrame, benchmark: str, block: str, settings: Sequence[float]
) -> list[Row]:
    of_setting = {
        setting: paired_differences(group.rename(columns={benchmark: "gain"}), REFERENCE)
        for setting, group in runs.groupby("setting")
    }
    rows = []
    for name in ordered(runs["variant"]):
        if name == REFERENCE:
            continue
        cells = []
        for setting in settings:
            if setting not in of_setting:
                cells.append(Cell(None))
                continue
            test = of_setting[setting].loc[name]
            rank = "best" if test["p"] < LEVEL else ""
            half = test["high"] - test["difference"]
            cells.append(Cell(test["difference"], half, "+.1f", rank))
        rows.append(Row(method(name).label, block, tuple(cells)))
    return rows


def _padded(cells: tuple[Cell, ...], length: int) -> tuple[Cell, ...]:
    return cells + (Cell(None),) * (length - len(cells))
