"""Draws of the base model as a random effect: the unit of tests, their error, what is pooled."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from geosd.claims.claim import Claim
from geosd.claims.evidence import Evidence
from geosd.claims.finding import ALL_MODELS
from geosd.claims.judging import judge_claims
from geosd.claims.metrics import accuracy_metric

DRAWS, SEEDS = 3, 12
UP = Claim("up", "", "", "", "main", [accuracy_metric("geosd") > accuracy_metric("pi_0")])


def study(models=("m",), draws: int | None = DRAWS, seeds: int = SEEDS) -> pd.DataFrame:
    """Scores whose base models differ by draw, and so does what GeoSD gains on them."""
    draw = np.random.default_rng(8)
    rows = []
    for model in models:
        bases, gains = draw.normal(50, 5, DRAWS), draw.normal(6, 2, DRAWS)
        for seed in range(seeds):
            of = seed % DRAWS
            base = bases[of] + draw.normal()
            gain = gains[of] + draw.normal()
            for variant, value in (("pi_0", base), ("geosd", base + gain)):
                rows.append((model, variant, seed, of, "ood_avg", "OOD", "avg@k", 16, value))
    names = "model variant seed draw benchmark split metric k value".split()
    table = pd.DataFrame(rows, columns=names)
    return table.drop(columns="draw") if draws is None else table.assign(draw=table["draw"] % draws)


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """GeoSD's gains, a row for each model and seed, computed apart from geosd.claims."""
    wide = table.pivot(index=["model", "seed"], columns="variant", values="value")
    return (wide["geosd"] - wide["pi_0"]).rename("gain").reset_index()


def findings(table: pd.DataFrame, claim: Claim = UP):
    return {f.model: f for f in judge_claims([claim], Evidence(table))}


def test_without_the_column_or_with_one_draw_runs_are_the_unit():
    without_column, one_draw = study(draws=None), study(draws=1)
    found = findings(without_column)["m"]
    assert repr(found) == repr(findings(one_draw)["m"])  # NaN differs from itself
    interval = stats.ttest_1samp(gains(without_column)["gain"], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    assert found.units == found.n_a == SEEDS


def test_with_several_draws_the_test_is_students_on_their_means():
    table = study()
    found = findings(table)["m"]
    each = gains(table)
    means = each.groupby(each["seed"] % DRAWS)["gain"].mean()
    assert (found.units, found.n_a) == (DRAWS, SEEDS)
    interval = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_a_shift_that_all_runs_of_a_draw_share_changes_nothing():
    table = study()
    shifted = table.assign(value=table["value"] + 7.0 * table["draw"])
    ends = [(f.low, f.high) for f in (findings(shifted)["m"], findings(table)["m"])]
    assert ends[0] == pytest.approx(ends[1])


def test_over_all_models_the_base_model_is_the_unit():
    models = ("m1", "m2", "m3")
    table = study(models)
    each = gains(table)
    means = each.groupby(["model", each["seed"] % DRAWS])["gain"].mean()
    found = findings(table)
    interval = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    over_all = found[ALL_MODELS]
    assert (over_all.low, over_all.high) == pytest.approx(tuple(interval))
    assert list(found) == [ALL_MODELS, *models]  # the row over all models comes first
    assert found[ALL_MODELS].units == 9 and found[ALL_MODELS].n_a == 36
    assert found[ALL_MODELS].effect == pytest.approx(means.mean())


def test_one_model_or_one_draw_has_no_row_over_all():
    assert list(findings(study())) == ["m"]
    assert list(findings(study(("m1", "m2"), draws=None))) == ["m1", "m2"]


@pytest.fixture(scope="module")
def example() -> SimpleNamespace:
    path = Path(__file__).parents[2] / "analysis/draws_of_the_base_model.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


def test_means_of_draws_keep_the_level_and_runs_do_not(example):
    draw = np.random.default_rng(2)
    for sd in (0.0, 0.5, 2.0):
        noise = example.one_family(draw, 40_000, sd)
        for level, slack in ((0.05, 0.07), (0.00125, 0.45)):  # three standard errors of 40,000
            error, _ = example.error_and_power(example.draws, noise, level)
            assert error == pytest.approx(1, abs=slack)
            naive, _ = example.error_and_power(example.runs, noise, level)
            pooled, _ = example.error_and_power(example.mixed_model, noise, level)
            assert sd == 0 or min(naive, pooled) > 1.5
    _, power = example.error_and_power(example.draws, example.one_family(draw, 40_000, 0), 0.05)
    assert power > 0.95


def test_means_of_nine_draws_keep_the_level_where_variances_or_families_differ(example):
    draw = np.random.default_rng(3)
    for shifts, sds in (((0, 0, 0), (1, 1, 1)), ((0, 0, 0), (0, 0, 4)), ((-2, 0, 2), (1, 1, 1))):
        noise = example.several_families(draw, 40_000, shifts, sds)
        for level, slack in ((0.05, 0.07), (0.00125, 0.45)):
            error, power = example.error_and_power(example.draws, noise, level)
            assert error < 1 + slack
        assert power > 0.5 or sds != (1, 1, 1) or any(shifts)


def test_the_examples_closed_forms_are_those_of_statsmodels(example):
    draw = np.random.default_rng(4)
    noise = 1 + example.one_family(draw, 4, 2.0)
    groups = np.repeat(np.arange(3), 4)
    for effects, p in zip(noise, example.mixed_model(noise), strict=True):
        fit = sm.MixedLM(effects.ravel(), np.ones(12), groups=groups).fit(reml=True)
        z = fit.fe_params[0] / fit.bse_fe[0]
        assert p == pytest.approx(stats.norm.sf(z), rel=2e-3)
