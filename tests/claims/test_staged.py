"""Claims judged in stages: the stage that decides, what is left open, and the errors of it all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import nct, t

from geosd.claims.evidence import Evidence
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.claims.staged import _chance_of_word, _first_seeds, judge_in_stages
from geosd.claims.staged_power import CLAIMS, METHODS, StagedPowerAccuracies, simulate_staged_power
from geosd.claims.staged_power import _words as words_of
from geosd.scores.statistics import holm

STAGES, SEEDS = (3, 6, 10), 10
(GAIN,) = [claim for claim in ledger() if claim.id == "geosd-ood-gain"]
STEADY = np.array([0.3, -0.2, -0.1, 0.25, -0.3, 0.05, 0.1, -0.15, 0.2, -0.15])
"""Deviations of ten differences, of which the first three add up to 0."""


def evidence(gains, seeds=SEEDS):
    """A study in which GeoSD gains so much over pi_0, seed by seed."""
    rows = []
    for seed in range(seeds):
        for variant, value in (("pi_0", 40.0), ("geosd", 40.0 + gains[seed])):
            rows += [
                ("m", variant, seed, 0, name, "OOD", "avg@k", 16, value)
                for name in ("aime24", "ood_avg")
            ]
    columns = "model variant seed draw benchmark split metric k value".split()
    return Evidence(scores=pd.DataFrame(rows, columns=columns))


def judged(gains, seeds=SEEDS, families=1):
    [row] = judge_in_stages([GAIN], evidence(gains, seeds), STAGES, families, ["m"])
    return row


def test_a_large_effect_is_decided_at_the_first_stage_and_by_its_runs_alone():
    gains = 5 + STEADY
    gains[3:] = -50  # what came after would have said otherwise
    row = judged(gains)
    assert row.word == "agrees" and row.note == "decided at 3 of 10 seeds" and row.n_a == 3
    assert row.effect == pytest.approx(5)


def test_a_smaller_one_is_decided_later_and_with_more_families_later_still():
    gains = 1 + 2 * STEADY
    assert judged(gains).note == "decided at 6 of 10 seeds"
    assert judged(gains, families=10).note == "decided at 10 of 10 seeds"


def test_a_study_of_an_earlier_stage_says_what_is_to_come():
    row = judged(0.8 + 4 * STEADY, seeds=6)
    assert row.word == "too small to tell" and row.n_a == 6
    assert "4 more seeds decide it with a chance of 0." in row.note
    assert judged(4 * STEADY, seeds=6).note.startswith("given up: 4 more seeds")


def test_the_chance_of_a_word_is_that_of_studies_which_go_on_from_here():
    """From six differences of known mean and deviation four more are drawn, as normal runs are."""
    gains = (0.8 + 4 * STEADY)[:6]
    row = judged(gains, seeds=6)
    generator = np.random.default_rng(0)
    shift = generator.standard_t(5, 100_000) * gains.std(ddof=1) * np.sqrt(1 / 6 - 1 / 10)
    half = t.isf((1 - row.confidence) / 2, 9) * gains.std(ddof=1) / np.sqrt(10)
    decided = (np.abs(gains.mean() + shift) > half).mean()
    assert _chance_of_word(row, 6, 10) == pytest.approx(decided, abs=0.01)


def test_a_study_judged_at_the_last_stage_has_less_than_the_whole_level():
    gains = 0.4 + 2.2 * STEADY
    row, [once] = judged(gains), judge_claims([GAIN], evidence(gains), ["m"])
    assert row.n_a == once.n_a == 10 and row.confidence > once.confidence == 0.95


def test_too_few_seeds_for_a_stage_are_refused():
    with pytest.raises(ValueError, match="2 seeds, and the first stage has 3.\nHint:"):
        judged(STEADY, seeds=2)


def test_tables_without_seeds_stay_whole():
    states = pd.DataFrame({"model": ["m"], "problem": ["a"]})
    kept = _first_seeds(Evidence(scores=evidence(STEADY).scores, states=states), [0, 4])
    assert set(kept.scores["seed"]) == {0, 4} and kept.states is states


def test_the_power_of_a_study_judged_once_is_that_of_the_noncentral_t():
    """One comparison of one family; alpha is halved for neither side."""
    place = [METHODS.index(name) for name in ("pi_0", "geosd")]
    mean = np.zeros((1, len(METHODS)))
    mean[0, place[1]] = 1.0
    truth = StagedPowerAccuracies(mean, np.ones_like(mean))
    found = simulate_staged_power(truth, (SEEDS,), 20_000, np.random.default_rng(0)).power(
        "geosd-ood-gain"
    )
    centre = 1 / (2**0.5 / SEEDS**0.5)
    expected = nct.sf(t.isf(0.025, SEEDS - 1), SEEDS - 1, centre)
    assert found == pytest.approx(expected, abs=0.012)


@pytest.mark.slow
def test_rows_of_a_study_judged_once_are_those_of_holms_adjusted_p():
    generator = np.random.default_rng(0)
    mean, sd = generator.normal(0.6, 0.4, (400, 3)), generator.uniform(0.3, 1.5, (400, 3))
    found = words_of(mean, sd, SEEDS, (SEEDS,), 0, 1)
    p = 2 * t.sf(np.abs(mean / (sd / SEEDS**0.5)), SEEDS - 1)
    order = p.argsort(axis=1)
    steps = np.take_along_axis(p, order, axis=1) * [3, 2, 1]
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.maximum.accumulate(steps, axis=1), axis=1)
    # statsmodels collects garbage at each call, so that it judges some rows alone.
    assert adjusted[:5].clip(max=1) == pytest.approx(np.array([holm(list(row)) for row in p[:5]]))
    expected = (adjusted < 0.05) * np.sign(mean)
    assert (found == expected).all() and 200 < (found != 0).sum() < 1000


def test_ten_thousand_studies_without_an_effect_err_in_one_of_twenty_at_most():
    truth = StagedPowerAccuracies.published().without_effect()
    found = simulate_staged_power(truth, STAGES, 10_000, np.random.default_rng(0))
    for claim in CLAIMS:
        assert found.wrong(claim) <= 0.05, claim
    assert found.wrong("geosd-ood-gain") > 0.035  # the level is used, too


def test_at_the_papers_effects_stages_save_a_quarter_of_the_seeds():
    found = simulate_staged_power(
        StagedPowerAccuracies.published(), STAGES, 2000, np.random.default_rng(0)
    )
    assert found.seeds.mean() < 7.6
    assert min(map(found.power, CLAIMS)) > 0.95
