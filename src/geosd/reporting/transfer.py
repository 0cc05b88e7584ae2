"""Gains over the dial from transfer to conflict, drawn and as tables (docs/transfer.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting import figures
from geosd.reporting.method_style import (
    coloured_methods,
    method_style,
    method_style_rate,
    ordered_methods,
)
from geosd.reporting.method_tables import candidate_method_table
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.collapse import ON_TEST, collapse_rule, collapses
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import holm, independent_statistics, student_effect_interval
from geosd.scores.transfer import paired_transfer_differences, transfer_crossing_interval

REFERENCE = "fwdkl"
LEVEL = 0.05
LABELS = {OOD_AVERAGE: "OOD", ID: "ID"}
CROSSING = {"crossing": "crosses 0", "from": "from", "to": "to"}
SETTINGS_NOTE = (
    "A column is a setting of data.conflict: at 0 the ID problems have the OOD problems' mean"
    " prior, at 1 its opposite."
)


@figures.themed
def plot(choice: str, runs: pd.DataFrame) -> Figure:
    """Plot gains over the dial at a choice of rates, in words: OOD gains left, ID gains right.

    `runs` has the columns `setting`, `variant`, `seed` and one for each benchmark.
    """
    figure = Figure(figsize=(figures.PAGE_IN, 2.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    variants = ordered_methods(runs["variant"])
    values = independent_statistics(runs[["setting", "variant", "seed", *LABELS]], *LABELS)
    settings = sorted(values["setting"].unique())
    panels[0].set_title(choice)
    for axes, (benchmark, label) in zip(panels, LABELS.items(), strict=True):
        axes.plot([settings[0], settings[-1]], [0, 0], color="0.55", lw=0.6, zorder=0)
        figures.figure_lines(axes, values, "setting", benchmark, variants)
        axes.set_xticks(settings)
        axes.set_ylabel(f"{label} gain over π₀ (points)")
        axes.set_xlabel("conflict between ID and OOD problems")
    grey = [name for name in variants if name not in coloured_methods(variants)]
    for axes, benchmark in zip(panels, LABELS, strict=True):
        figures.label_figure_lines(axes, values, "setting", benchmark, grey=grey)
    return figure


def gains_table(choice: str, runs: pd.DataFrame) -> Table:
    """The table of each method's gain at each setting, and of where its OOD gain crosses 0.

    The last column counts the runs that collapse, of all settings together. `runs` is as `plot`
    takes it, with `learning_rate`.
    """
    settings = sorted(runs["setting"].unique())
    columns = _columns("gain", settings)
    columns += [TableColumn(key, label, "OOD gain") for key, label in CROSSING.items()]
    cells: dict[str, dict[str, TableCell]] = {name: {} for name in ordered_methods(runs["variant"])}
    for name, of_variant in cells.items():
        own = runs[runs["variant"] == name]
        for benchmark, label in LABELS.items():
            by_setting = own.pivot(index="seed", columns="setting", values=benchmark)
            for setting, values in by_setting.items():
                draws = pd.Series(values.index, values.index)  # one run of each
                test = student_effect_interval([(values, draws)])
                half = test.high - test.difference
                of_variant[f"{label} {setting:g}"] = TableCell(test.difference, half, "+.1f")
            if benchmark == OOD_AVERAGE and len(settings) > 1:
                crossing = transfer_crossing_interval(settings, by_setting[settings].to_numpy())
                numbers = zip(CROSSING, crossing, strict=True)
                of_variant |= {key: TableCell(number, form=".2f") for key, number in numbers}
        of_variant["collapsed"] = TableCell(f"{collapses(own[[*LABELS]]).sum()} of {len(own)}")
    note = (
        "Change of avg@k from π₀ of the same draw, in points, mean ± half-width of Student's 95 %"
        f" interval over {runs['seed'].nunique()} draws of the base model. {SETTINGS_NOTE}"
        " Crosses 0: the setting at which the mean OOD gain falls to 0, and the middle 95 % of"
        " 10,000 bootstrap samples of the draws; 0 stands for no gain at the first setting, the"
        " last setting for a gain at every one."
        f" {collapse_rule(ON_TEST)}"
    )
    columns.append(TableColumn("collapsed", "collapsed", "ID gain"))
    chosen = runs["learning_rate"].nunique() > 1
    remarks = (f"Rates from setting {settings[0]:g} on: {_rates(runs)}.",) if chosen else ()
    title = f"Gains over the dial from transfer to conflict, {choice}"
    return replace(_table("gains", title, note, columns, cells), remarks=remarks)


def differences_table(choice: str, runs: pd.DataFrame, primary: bool) -> Table:
    """The table of each method's gain minus FwdKL's at each setting; `runs` as `plot` takes it.

    With `primary`, the two primary tests stand under it: GeoSD at the ends of the dial.
    """
    settings = sorted(runs["setting"].unique())
    names = [name for name in ordered_methods(runs["variant"]) if name != REFERENCE]
    cells: dict[str, dict[str, TableCell]] = {name: {} for name in names}
    for benchmark, label in LABELS.items():
        for setting, group in runs.rename(columns={benchmark: "gain"}).groupby("setting"):
            for name, test in paired_transfer_differences(group, REFERENCE).iterrows():
                half = test["high"] - test["difference"]
                rank = "best" if test["p"] < LEVEL else ""
                cells[name][f"{label} {setting:g}"] = TableCell(
                    test["difference"], half, "+.1f", rank
                )
    note = (
        "Gain of a method minus that of FwdKL on the same draw, in points, mean ± half-width of"
        f" Student's 95 % interval. {SETTINGS_NOTE} Bold: p < {LEVEL} by the paired t test with"
        " Holm's correction over the methods of the column."
    )
    remarks = (f"Primary: {_primary_tests(runs, (settings[0], settings[-1]))}.",) if primary else ()
    title = f"Differences to FwdKL over the dial, {choice}"
    columns = _columns("gain minus FwdKL's", settings)
    return replace(_table("differences", title, note, columns, cells), remarks=remarks)


def _columns(quantity: str, settings: Sequence[float]) -> list[TableColumn]:
    return [
        TableColumn(f"{label} {setting:g}", f"{setting:g}", f"{label} {quantity}")
        for label in LABELS.values()
        for setting in settings
    ]


def _table(
    kind: str,
    title: str,
    note: str,
    columns: list[TableColumn],
    cells: Mapping[str, Mapping[str, TableCell]],
) -> Table:
    columns = sorted(columns, key=lambda column: column.group, reverse=True)  # OOD, then ID
    rows = (
        (method_style(v).label, method_style(v).kind, of_variant) for v, of_variant in cells.items()
    )
    return candidate_method_table(f"table_transfer_{kind}", title, note, "Method", columns, rows)


def _rates(runs: pd.DataFrame) -> str:
    """The learning rates of each method at the settings, in words."""
    rates = runs.groupby(["variant", "setting"])["learning_rate"].first()
    return "; ".join(
        f"{method_style(name).label} {', '.join(map(method_style_rate, rates[name]))}"
        for name in ordered_methods(runs["variant"])
    )


def _primary_tests(runs: pd.DataFrame, settings: Sequence[float]) -> str:
    """GeoSD's OOD gain minus FwdKL's at some settings, with Holm's correction, in words."""
    two = runs[runs["variant"].isin(["geosd", REFERENCE])].rename(columns={OOD_AVERAGE: "gain"})
    tests = [
        paired_transfer_differences(two[two["setting"] == s], REFERENCE).iloc[0] for s in settings
    ]
    corrected = holm([test["p"] for test in tests])
    return "; ".join(
        f"at {setting:g} the OOD gain of GeoSD minus that of FwdKL is {test['difference']:+.1f}"
        f" [{test['low']:+.1f}, {test['high']:+.1f}] points, p = {p:.2g}"
        for setting, test, p in zip(settings, tests, corrected, strict=True)
    )
