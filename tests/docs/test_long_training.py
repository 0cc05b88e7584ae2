"""What the page on long training says is what the shipped runs say, recomputed here.

Numbers are recomputed from the tidy tables with numpy and scipy alone.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from shipped_studies import FIGURES, accuracies, drifts, page_number, value_at

ROOT = Path(__file__).parents[2]
STUDY = "miniature_long_100"
JUDGED = (20, 100, 200, 400, 700, 1000, 1500, 2000)
STEPS = (0, *JUDGED)
RUNS = {
    "Hellinger": "geosd-divergence_hellinger-drift_penalty_1.0",
    "JSD": "geosd_jsd-drift_penalty_1.0",
    "FwdKL": "geosd-divergence_fwdkl-drift_penalty_4.0",
}
REFRESHES = {"every 20": 20, "every 100": 100, "never": 2001}
PHASES = ((0, 200), (200, 1000), (1000, 2000))
CELLS = [(divergence, refresh) for divergence in RUNS for refresh in REFRESHES]


def stops_of(divergence, refresh):
    """The runs of a cell in the shipped tables, one for each step at which it was judged."""
    run = f"{RUNS[divergence]}-anchor_every_{REFRESHES[refresh]}-learning_rate_0.0001"
    return [f"{run}-steps_{steps}" for steps in JUDGED]


@cache
def gains(divergence, refresh, benchmark):
    """Draw x step: gains over π₀ in points, 0 at step 0."""
    found = accuracies(STUDY).xs(benchmark, level="benchmark").droplevel("seed").unstack("draw")
    gained = found.loc[stops_of(divergence, refresh)] - found.loc["pi_0"]
    return np.pad(gained.to_numpy().T, ((0, 0), (1, 0)))


def id_gains(divergence, refresh):
    return gains(divergence, refresh, "id")


@cache
def drift(divergence, refresh):
    """Draw x step: the mean d_FR to π₀ in radians, 0 at step 0."""
    found = drifts(STUDY).droplevel("seed").unstack("draw").loc[stops_of(divergence, refresh)]
    return np.pad(found.to_numpy().T, ((0, 0), (1, 0)))


def at(paths, steps):
    return paths[:, STEPS.index(steps)]


def a_window(divergence, refresh, phase):
    first, last = phase
    moved = drift(divergence, refresh)
    return (at(moved, last) - at(moved, first)) * REFRESHES[refresh] / (last - first)


def falls(divergence, refresh):
    """The step at which each run has lost ten points out of distribution."""
    return np.array([value_at(-path, STEPS, 10) for path in gains(divergence, refresh, "ood_avg")])


def ood_where(divergence, refresh, moved, level):
    """The OOD gain of each run where `moved`, its ID gain or drift, first comes to a level."""
    ood = gains(divergence, refresh, "ood_avg")
    return np.array([value_at(*path, level) for path in zip(moved, ood, strict=True)])


def late(divergence, refresh):
    moved = drift(divergence, refresh)
    return 100 * (at(moved, 2000) - at(moved, 1000)) / at(moved, 2000)


def best_id(divergence, refresh):
    return id_gains(divergence, refresh)[:, 1:].max(axis=1)


def ends(values):
    return stats.ttest_1samp(values, 0).confidence_interval(0.95)


def half_width(values):
    return (ends(values).high - ends(values).low) / 2


def endpoints(divergence, refresh):
    """Key of the shipped table -> the endpoint of each run."""
    moved = drift(divergence, refresh)
    found = {f"drift_{last}": at(moved, last) for _, last in PHASES}
    if refresh != "never":
        for phase in PHASES:
            found[f"window_{phase[1]}"] = a_window(divergence, refresh, phase)
    found["late_growth"] = late(divergence, refresh)
    found["best_id"] = best_id(divergence, refresh)
    for benchmark in ("id", "ood_avg"):
        found[benchmark] = at(gains(divergence, refresh, benchmark), 2000)
    return found


@pytest.mark.parametrize(("divergence", "refresh"), CELLS)
def test_a_shipped_row_is_what_numpy_finds_in_the_shipped_tidy_files(divergence, refresh):
    with (FIGURES / STUDY / "table_long_training.csv").open(encoding="utf-8") as lines:
        rows = {next(iter(row.values())): row for row in csv.DictReader(lines)}
    row = rows[f"{divergence}, {refresh}"]
    for key, values in endpoints(divergence, refresh).items():
        assert float(row[key]) == pytest.approx(values.mean(), abs=1e-9), key
        assert float(row[f"{key}.sd"]) == pytest.approx(half_width(values), abs=1e-9), key
    fallen = falls(divergence, refresh)
    fallen = fallen[~np.isnan(fallen)]
    assert row["step_of_fall.n"] == f"{len(fallen)} of 6"
    if len(fallen):
        assert float(row["step_of_fall"]) == pytest.approx(fallen.mean(), abs=1e-6)


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs/long_training.md").read_text(encoding="utf-8")


def radians(value):
    return f"{value:.3f}".removeprefix("0")


@pytest.mark.parametrize(("divergence", "refresh"), CELLS)
def test_a_row_of_the_page_is_that_of_the_shipped_runs(page, divergence, refresh):
    cells = [radians(at(drift(divergence, refresh), last).mean()) for _, last in PHASES]
    if refresh == "never":
        cells += ["–"] * len(PHASES)
    else:
        cells += [radians(a_window(divergence, refresh, phase).mean()) for phase in PHASES]
    fallen = falls(divergence, refresh)
    fallen = fallen[~np.isnan(fallen)]
    if len(fallen):
        when = f"{fallen.mean():,.0f} ± {half_width(fallen):.0f}"
    else:
        when = "not within 2,000"
    best = best_id(divergence, refresh)
    cells += [f"{when} ({len(fallen)} of 6)", f"{best.mean():+.1f} ± {half_width(best):.1f}"]
    assert f"| {divergence}, {refresh} | {' | '.join(cells)} |" in page.splitlines()


def number(value, form):
    """A number as the page writes it, without a 0 before its point."""
    text = page_number(value, form)
    return text.replace("0.", ".", 1) if text.lstrip("+−").startswith("0.") else text


def interval(values, form):
    low, high = ends(values)
    return f"[{number(low, form)}, {number(high, form)}]"


def test_drift_levels_off_or_goes_on_by_the_rule(page):
    for refresh in REFRESHES:
        for divergence in RUNS:
            share = late(divergence, refresh)
            assert f"{share.mean():.0f} % {interval(share, '.0f')}" in page
            low, high = ends(share)
            word = "levels off" if high < 10 else "goes on" if low > 10 else "open"
            expected = "goes on"
            if refresh == "never":
                expected = "levels off" if divergence == "JSD" else "open"
            assert word == expected
    for divergence in RUNS:
        phases = [a_window(divergence, "every 20", phase).mean() for phase in PHASES]
        assert phases[0] > phases[1] > phases[2]
        assert 1 / 5 < phases[2] / phases[0] < 1 / 3


def test_anchoring_to_pi_0_forbids_adaptation_by_the_rule(page):
    for divergence in RUNS:
        never, often = (best_id(divergence, refresh) for refresh in ("never", "every 20"))
        less = often - never
        assert f"{less.mean():.1f}" in page and interval(less, ".1f") in page
        forbids = ends(less).low > 0 and never.mean() < often.mean() / 2
        assert forbids == (divergence != "FwdKL")
        assert never.mean() < often.mean() / 2, "not more than half of it, as was expected"
        if divergence != "FwdKL":
            assert never.mean() / often.mean() == pytest.approx(1 / 4, abs=0.01)


def test_who_falls_when(page):
    often, seldom, never = (
        np.concatenate([falls(divergence, refresh) for divergence in RUNS]) for refresh in REFRESHES
    )
    assert np.isnan(never).all()
    assert f"within 1,000 steps, the last at {often.max():.0f}" in page
    assert f"all 18 fall too, at steps {seldom.min():.0f} to {seldom.max():,.0f}." in page
    for refresh in ("every 20", "every 100"):
        fwdkl, hellinger, jsd = (
            falls(name, refresh).mean() for name in ("FwdKL", "Hellinger", "JSD")
        )
        assert fwdkl < hellinger < jsd


def test_the_other_numbers_of_the_page(page):
    largest = max(drift(divergence, "never").max() for divergence in RUNS)
    assert f"{radians(largest)} is the largest of any run at any stop" in page
    whole, phases = [], []
    for divergence in RUNS:
        often, seldom = (drift(divergence, refresh).mean(axis=0) for refresh in list(REFRESHES)[:2])
        whole.append(seldom[-1] / often[-1])
        for first, last in PHASES:
            first, last = STEPS.index(first), STEPS.index(last)
            phases.append((seldom[last] - seldom[first]) / (often[last] - often[first]))
    bounds = (min(whole), max(whole), min(phases), max(phases))
    words = [number(bound, ".2f") for bound in bounds]
    assert "it is {} to {} of it, by phases {} to {}.".format(*words) in page
    lost = [-at(id_gains(divergence, "every 20"), 2000).mean() for divergence in RUNS]
    assert f"have lost {min(lost):.0f} to {max(lost):.0f} points in distribution" in page


def test_what_was_seen_afterwards(page):
    for divergence in RUNS:
        at_drift, at_id = (
            [
                ood_where(divergence, refresh, moved(divergence, refresh), level)
                for refresh in ("every 20", "every 100")
            ]
            for moved, level in ((drift, 0.10), (id_gains, 3))
        )
        lead = at_drift[1] - at_drift[0]
        shown = f"{lead.mean():+.1f} {interval(lead, '.1f')} for {divergence}"
        assert shown in page, shown
        lead = at_id[1] - at_id[0]
        low, high = ends(lead[~np.isnan(lead)])
        assert low < 0 < high
