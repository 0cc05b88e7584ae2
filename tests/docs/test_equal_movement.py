"""The tables at equal movement on pages are cells of the shipped tables, as pages print them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    file = ROOT / "figures" / study / "table_equal_movement.csv"
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
