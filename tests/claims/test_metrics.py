"""What claims compare: sweeps, pairing within a run, states by problem, costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.claims.claim import Claim
from geosd.claims.computed_costs import ComputedNumber
from geosd.claims.evidence import (
    Evidence,
    EvidenceRuns,
    MissingEvidenceError,
    VariantEvidence,
    sweep_evidence,
)
from geosd.claims.judging import judge_claims
from geosd.claims.metrics import (
    accuracy_metric,
    early_stop_gap_metrics,
    gradient_norm_metric,
    mismatch_metric,
)
from geosd.scores import state_table as states
from geosd.scores.statistics import GroupStatistics, contrast_test
from geosd.scores.tidy import COLUMNS

RATES = (1e-7, 3e-7, 1e-6)
POINTS = [
    *({"run": f"f-{rate}", "variant": "f", "learning_rate": rate, "steps": 90} for rate in RATES),
    *({"run": f"f-{n}", "variant": "f", "learning_rate": 3e-7, "steps": n} for n in (30, 60)),
]


def table(runs: dict[str, list[tuple[float, float]]]) -> pd.DataFrame:
    """Scores of runs: (ID, OOD) of each seed."""
    rows = [
        ("m", run, seed, 0, name, split, "avg@k", 16, value)
        for run, values in runs.items()
        for seed, both in enumerate(values)
        for name, split, value in zip(("id", "ood_avg"), ("ID", "OOD"), both, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def study(**more) -> EvidenceRuns:
    names = ["pi_0", *(point["run"] for point in POINTS)]
    scored = table({name: [(60, 50), (61, 51)] for name in names})
    return EvidenceRuns(Evidence(scored, rates_and_steps={"m": POINTS}, **more), "m")


def test_a_sweep_ascends_and_has_the_runs_of_full_length():
    rates = study().learning_rates("f")
    assert [run.value for run in rates] == list(RATES)
    assert [run.name for run in rates] == ["f-1e-07", "f-3e-07", "f-1e-06"]
    assert sweep_evidence(rates, 3.0000000001e-7) == rates[1] == study().own_rate("f")


def test_stops_lie_at_the_rate_that_was_stopped_and_end_in_its_full_run():
    assert [(run.value, run.name) for run in study().stops("f")] == [
        (30, "f-30"), (60, "f-60"), (90, "f-3e-07"),
    ]  # fmt: skip


def test_runs_without_scores_are_not_in_a_sweep():
    scored = table({name: [(60, 50)] for name in ("f-1e-07", "f-1e-06")})
    runs = EvidenceRuns(Evidence(scored, rates_and_steps={"m": POINTS}), "m")
    assert [run.value for run in runs.learning_rates("f")] == [1e-7, 1e-6]


def test_sizes_are_runs_of_one_name_on_several_models():
    runs = study(sizes=("s", "l")).sizes("pi_0")
    assert [(run.name, run.model) for run in runs] == [("pi_0", "s"), ("pi_0", "l")]


def test_what_was_not_run_is_named():
    with pytest.raises(MissingEvidenceError, match="f at learning_rate 0.5"):
        sweep_evidence(study().learning_rates("f"), 0.5)
    with pytest.raises(MissingEvidenceError, match="a sweep of privilege for f"):
        study().privilege("f")
    with pytest.raises(MissingEvidenceError, match="models of several sizes for f"):
        study(sizes=("m",)).sizes("f")
    unstopped = [point for point in POINTS if point["steps"] == 90]
    with pytest.raises(MissingEvidenceError, match="f at learning_rate own"):
        EvidenceRuns(
            Evidence(study().evidence.scores, rates_and_steps={"m": unstopped}), "m"
        ).own_rate("f")


def test_a_claim_on_no_run_of_a_sweep_is_not_exercised():
    claim = Claim(
        *("c", "", "", "", "ladder"),
        lambda study: [
            accuracy_metric(s) > accuracy_metric("pi_0") for s in study.sizes("pi_0")[:-2]
        ],
    )
    [found] = judge_claims([claim], study(sizes=("m", "n")).evidence, ["m"])
    assert (found.word, found.note) == ("not exercised", "needs a sweep of more values")


def judge(comparison, evidence: Evidence):
    [found] = judge_claims([Claim("c", "", "", "", "main", [comparison])], evidence, ["m"])
    return found


def test_runs_of_a_seed_are_paired_and_those_of_two_models_are_not():
    seeds = np.array([0.0, 10.0, 20.0, 30.0])  # what a seed shares swamps the difference of 1
    early, late = 50 + seeds, 49 + seeds + np.array([0.1, -0.1, 0.05, -0.05])
    runs = {"f-30": early, "f-3e-07": late, "f-1e-06": late, "pi_0": early}
    scored = table({name: [(60, value) for value in values] for name, values in runs.items()})
    evidence = Evidence(scored, rates_and_steps={"m": POINTS})
    runs = EvidenceRuns(evidence, "m")
    stopped, full = runs.stops("f")[0], runs.stops("f")[-1]
    expected = stats.ttest_rel(late, early).confidence_interval(0.95)
    for run in (full, runs.learning_rates("f")[-1]):
        found = judge(accuracy_metric(run) < accuracy_metric(stopped), evidence)
        assert (found.low, found.high) == pytest.approx(tuple(expected)) and found.word == "agrees"

    sizes = pd.concat([scored, scored.assign(model="n")])
    far = judge(
        accuracy_metric(VariantEvidence("pi_0", "pi_0", "n"))
        > accuracy_metric(VariantEvidence("f-3e-07", "f-3e-07", "m")),
        Evidence(sizes, sizes=("m", "n")),
    )
    welch = stats.ttest_ind(early, late, equal_var=False).confidence_interval(0.95)
    assert (far.low, far.high) == pytest.approx(tuple(welch)) and far.word == "too small to tell"


def test_a_contrast_of_gains_has_the_spread_of_all_its_terms():
    draw = np.random.default_rng(2)
    parts = [draw.normal(0, sd, n) for sd, n in ((1, 4), (2, 5), (0.5, 3), (1, 6))]
    signs = (1, -1, -0.5, 0.5)
    test = contrast_test([GroupStatistics.of(s * x) for s, x in zip(signs, parts, strict=True)])
    variances = [s**2 * x.var(ddof=1) / len(x) for s, x in zip(signs, parts, strict=True)]
    df = sum(variances) ** 2 / sum(
        v**2 / (len(x) - 1) for v, x in zip(variances, parts, strict=True)
    )
    total = sum(s * x.mean() for s, x in zip(signs, parts, strict=True))
    assert (test.difference, test.df) == (pytest.approx(total), pytest.approx(df))
    assert test.p == pytest.approx(stats.t.sf(total / np.sqrt(sum(variances)), df))


def test_under_the_null_a_contrast_of_four_is_significant_as_often_as_it_says():
    draw = np.random.default_rng(4)
    low = sum(
        contrast_test([GroupStatistics.of(draw.normal(0, sd, 3)) for sd in (1, 3, 1, 0.5)]).p < 0.05
        for _ in range(2000)
    )
    assert 0.025 * 2000 < low < 0.06 * 2000  # Satterthwaite's test is conservative at n = 3


def test_stops_are_held_against_the_frontier_of_their_own_seed():
    scored = table(
        {
            "pi_0": [(60, 50), (62, 50)],
            "slow": [(70, 45), (72, 46)],
            "fast": [(80, 35), (82, 34)],
            "stop": [(65, 46), (77, 41)],
            "beyond": [(90, 30), (40, 20)],
        }
    )
    found = early_stop_gap_metrics(scored, "m", ["pi_0", "slow", "fast"], ["stop", "beyond"])
    # Seed 0: halfway from 50 to 45; seed 1: halfway from 46 to 34. `beyond` has no match.
    assert found.to_dict() == pytest.approx({0: 46 - 47.5, 1: 41 - 40})


def seen(problems: int, draw) -> pd.DataFrame:
    """States whose share of mismatch differs from problem to problem, as does their number."""
    rows = []
    for problem in range(problems):
        share = draw.uniform(0, 0.6)
        for position in range(draw.integers(2, 20)):
            q_star, p_star = (0.9, 0.05) if draw.random() < share else (0.5, 0.4)
            head = ("m", f"p{problem}", problem, position, 0, 1.0, False, 0.3, 0, q_star, p_star)
            rows.append((*head, 1.0, 1.0, 1.0))
    return pd.DataFrame(rows, columns=list(COLUMNS["states"]))


def test_a_share_of_states_has_the_spread_of_problems_and_not_of_states():
    draw = np.random.default_rng(0)
    problem_values = mismatch_metric().values(Evidence(states=seen(150, draw)), "m")
    shares, claimed = [], []
    for _ in range(60):
        table = seen(150, draw)
        values = mismatch_metric().values(Evidence(states=table), "m")
        assert values.mean() == pytest.approx(100 * states.state_mismatch_share(table))
        shares.append(values.mean())
        claimed.append(values.std(ddof=1) / np.sqrt(len(values)))
    assert mismatch_metric().paired_by == "problem" and len(problem_values) == 150
    assert np.mean(claimed) == pytest.approx(np.std(shares, ddof=1), rel=0.25)


def test_too_few_states_of_low_overlap_are_not_read():
    evidence = Evidence(states=seen(50, np.random.default_rng(1)))
    with pytest.raises(MissingEvidenceError, match="20 problems with states of overlap lowest"):
        gradient_norm_metric("fwdkl", overlap="lowest").values(evidence, "m")


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (1.27, "agrees"),
        (1.2799, "agrees"),
        (1.2801, "opposite"),
        (1.2, "opposite"),
    ],
)
def test_a_computed_number_agrees_to_the_last_printed_digit_give_or_take_one(value, word):
    claim = Claim("c", "", "", "", "main", computed=[ComputedNumber("ratio", "1.27")])
    [found] = judge_claims([claim], Evidence(costs={"ratio": value}), [])
    assert found.word == word and found.effect == value


def test_an_upper_bound_is_kept_or_not():
    claim = Claim("c", "", "", "", "main", computed=[ComputedNumber("gb", "< 1")])
    for value, word in ((0.6, "agrees"), (1.5, "opposite")):
        [found] = judge_claims([claim], Evidence(costs={"gb": value}), [])
        assert found.word == word
