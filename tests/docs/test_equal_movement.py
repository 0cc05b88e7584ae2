"""The tables at equal movement on pages are cells of the shipped tables, as pages print them."""

from __future__ import annotations

import csv

import pandas as pd
import pytest
from scipy import stats
from shipped_studies import FIGURES, accuracies
from statsmodels.stats.multitest import multipletests

ROOT = FIGURES.parent
STEPSIZE = {
    "rates": "FwdKL, learning rates, after 200 steps",
    "steps at 10⁻⁵": "FwdKL, steps at the rate 1e-5",
    "steps at 3·10⁻⁵": "FwdKL, steps at the rate 3e-5",
    "steps at 10⁻⁴": "FwdKL, steps at the rate 1e-4",
}
LEVELS = ("id.3", "id.6", "id.9", "drift.0.05", "drift.0.075", "drift.0.1")
ENDS = [(f"miniature_transfer_{end}", key) for end in (100, 0) for key in ("id.6", "id.9")]
METHODS = ("SFT", "GRPO", "FwdKL", "RevKL", "JSD", "TrOPD", "GeoSD, plain step")


def shipped(study):
    """Row of a shipped table -> its cells by column."""
    file = FIGURES / study / "table_equal_movement.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        return {next(iter(row.values())): row for row in csv.DictReader(lines)}


def printed(row, key):
    """GeoSD's lead at a level as a page prints it."""
    lead, half = row[f"{key}.lead"], row[f"{key}.lead.sd"]
    if not lead:
        return "–"
    number = f"{float(lead):+.1f}".replace("-", "−")
    number = "0.0" if number[1:] == "0.0" else number
    spread = f" ± {float(half):.1f}" if half else ""
    return f"{number}{spread} (n = {float(row[f'{key}.pairs']):.0f})"


def on_page(page, heading):
    """First cell of each row of a page's table -> the others."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (table,) = (part for part in text.split("\n\n") if part.startswith(f"| {heading}"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def test_the_miniature_prints_the_step_sizes_at_equal_movement():
    rows = shipped("miniature_stepsize")
    expected = {
        words: [printed(rows[label], key) for key in LEVELS] for words, label in STEPSIZE.items()
    }
    assert on_page("docs/miniature.md", "GeoSD minus FwdKL, paths over") == expected


def test_the_miniature_prints_all_families_at_equal_id_gain():
    before = "all models: "
    rows = {
        label.removeprefix(before): row
        for label, row in shipped("miniature_rates").items()
        if label.startswith(before)
    }
    expected = {
        name: [printed(row, key) for key in LEVELS[:3]]
        for name, row in rows.items()
        if name != "GeoSD"
    }
    assert on_page("docs/miniature.md", "GeoSD minus, over all families") == expected


def test_the_miniature_counts_the_intervals_that_leave_out_zero():
    rows = [shipped("miniature_stepsize")[label] for label in STEPSIZE.values()]
    known = [(row, key) for row in rows for key in LEVELS if row[f"{key}.lead.sd"]]
    leads = [(float(row[f"{key}.lead"]), float(row[f"{key}.lead.sd"])) for row, key in known]
    apart = [lead for lead, half in leads if abs(lead) > half]
    assert (len(leads), len(apart)) == (23, 4) and min(apart) > 0
    assert "Four of the 23 intervals leave out 0" in (ROOT / "docs/miniature.md").read_text()


def test_the_dial_prints_both_of_its_ends_at_equal_id_gain():
    ends = [(shipped(study), key) for study, key in ENDS]
    expected = {name: [printed(rows[name], key) for rows, key in ends] for name in METHODS}
    assert on_page("docs/transfer.md", "GeoSD minus |") == expected


@pytest.mark.parametrize("study", ["miniature_transfer_100", "miniature_transfer_0"])
def test_at_an_id_gain_of_six_all_means_lie_near_geosd(study):
    rows = shipped(study)
    assert all(abs(float(rows[name]["id.6.lead"])) < 1.3 for name in METHODS)


PATHS = {1: "miniature_paths_100", 0: "miniature_paths_0"}
"""The dial's methods along their runs, by conflict."""


def corrected(rows, key):
    """Holm's p of GeoSD's lead over each method, from the printed mean and interval alone."""
    p = {}
    for name, row in rows.items():
        if not row[f"{key}.lead.sd"]:
            continue
        freedom = float(row[f"{key}.pairs"]) - 1
        error = float(row[f"{key}.lead.sd"]) / stats.t.ppf(0.975, freedom)
        p[name] = 2 * stats.t.sf(abs(float(row[f"{key}.lead"])) / error, freedom)
    return dict(zip(p, multipletests([*p.values()], method="holm")[1], strict=True))


def said(row, p, key):
    """What the page says of GeoSD beside a method, by its own rule."""
    lead, half = float(row[f"{key}.lead"]), float(row[f"{key}.lead.sd"])
    if p < 0.05:
        return "ahead" if lead > 0 else "behind"
    return "level" if abs(lead) + half <= 1 else "too small to tell"


def outcome_of_paths():
    """Method -> GeoSD's lead and word at an ID gain of 6, and its lead at .10 rad, at both ends."""
    found = {}
    for key, has_word in (("id.6", True), ("drift.0.1", False)):
        for study in PATHS.values():
            rows = {name: row for name, row in shipped(study).items() if name != "GeoSD at 3e-5"}
            p = corrected(rows, key)
            for name, row in rows.items():
                cells = found.setdefault(name.replace("e-5", "·10⁻⁵").replace("1e-4", "10⁻⁴"), [])
                cells.append(printed(row, key))
                if has_word:
                    cells.append(f"{said(row, p[name], key)}, {p[name]:.2f}")
    return found


def test_the_paths_of_the_dial_are_printed_with_words_and_corrected_p():
    assert on_page("docs/equal_movement.md", "GeoSD minus |") == outcome_of_paths()


def test_of_the_fourteen_primary_differences_none_is_apart_and_few_are_elsewhere():
    apart, others = set(), 0
    for end, study in PATHS.items():
        rows = {name: row for name, row in shipped(study).items() if name != "GeoSD at 3e-5"}
        for key in LEVELS:
            others += len(corrected(rows, key)) if key != "id.6" else 0
            apart |= {
                (name, key, end, float(rows[name][f"{key}.lead"]) > 0)
                for name, p in corrected(rows, key).items()
                if p < 0.05
            }
    assert apart == {
        ("TrOPD at 3e-5", "drift.0.075", 1, False),
        ("TrOPD at 3e-5", "drift.0.1", 1, False),
        ("FwdKL at 3e-5", "drift.0.075", 0, True),
    }
    page = (ROOT / "docs/equal_movement.md").read_text(encoding="utf-8")
    assert f"three of the {others} other differences" in page


@pytest.mark.parametrize("end", PATHS)
def test_the_paths_end_as_the_shipped_runs_of_the_dial_and_pass_where_the_factorials_do(end):
    paths = accuracies(PATHS[end])
    dial = accuracies(f"miniature_transfer_{end * 100}")
    stops = paths.index.unique("variant")
    ends = {stop.removesuffix("-steps_200"): stop for stop in stops if "_200" in stop}
    assert len(ends) == 8
    for variant, stop in ends.items():
        pd.testing.assert_series_equal(paths[stop], dial[variant])
    factorial = accuracies(f"miniature_factorial_{end * 100}")
    before = "geosd-divergence_hellinger-drift_penalty_1.0-rule_kfac-learning_rate_3e-05-steps_"
    for steps in (24, 48, 96, 200):
        stop = paths[f"geosd-learning_rate_3e-05-steps_{steps}"]
        pd.testing.assert_series_equal(stop, factorial[f"{before}{steps}"])
