"""What is no evidence is undecidable: bounds, methods that did not move, effects out of reach."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.claims.claim import Claim, near
from geosd.claims.evidence import Evidence, VariantRuns
from geosd.claims.finding import ALL_MODELS
from geosd.claims.ledger import ledger
from geosd.claims.metrics import ID, accuracy, drift, false_consensus, gain, scale_of_metric
from geosd.claims.undecidable import MOVED_DRIFT, MOVED_POINTS
from geosd.claims.verdicts import judge_claims
from geosd.scores.tidy import COLUMNS

SPREAD = np.array([-0.3, 0.1, 0.2, -0.1, 0.3, -0.2])


def scores(runs: dict[str, float], metric="avg@k", benchmark="ood_avg", spread=1.0):
    """Six runs of each variant about a mean; each variant's spread begins at another seed."""
    rows = [
        {"model": "m", "variant": variant, "seed": seed, "benchmark": benchmark, "metric": metric}
        | {"split": "ID" if benchmark == "id" else "OOD", "k": 16, "value": float(value)}
        for turn, (variant, mean) in enumerate(runs.items())
        for seed, value in enumerate(mean + spread * np.roll(SPREAD, turn))
    ]
    return pd.DataFrame(rows)[list(rows[0])]


def drifts(means: dict[str, float]) -> pd.DataFrame:
    rows = [
        {"model": "m", "variant": variant, "seed": seed, "quantity": "drift/pi_0"}
        | {"value": mean * (1 + 0.1 * shift)}
        for variant, mean in means.items()
        for seed, shift in enumerate(SPREAD)
    ]
    return pd.DataFrame(rows, columns=["model", "variant", "seed", "quantity", "value"])


def judge(comparisons, *tables, drift=None, rows: int = 1):
    """The finding on a claim; further claims on the same data make the family larger."""
    drift_evidence = {} if drift is None else {"drift": drifts(drift)}
    claims = [Claim(f"c{i}", "", "", "", "main", list(comparisons)) for i in range(rows)]
    return judge_claims(claims, Evidence(pd.concat(tables), **drift_evidence))[0]


# ---- Bounds of the scale -------------------------------------------------------------------------
def test_nothing_falls_below_a_base_model_at_the_floor():
    claim = [accuracy("fwdkl") < accuracy("pi_0")]
    floor = judge(claim, scores({"pi_0": 0.1, "fwdkl": 5.0}))
    assert floor.verdict == "undecidable" and "pi_0 lies at 0 %" in floor.note
    above = judge(claim, scores({"pi_0": 8.0, "fwdkl": 13.0}))
    assert above.verdict == "not reproduced"


def test_a_rise_from_the_floor_is_evidence_and_one_from_the_ceiling_is_not():
    claim = [accuracy("geosd") > accuracy("pi_0")]
    assert judge(claim, scores({"pi_0": 0.1, "geosd": 5.0})).verdict == "reproduced"
    ceiling = judge(claim, scores({"pi_0": 99.9, "geosd": 95.0}))
    assert ceiling.verdict == "undecidable" and "pi_0 lies at 100 %" in ceiling.note


def test_two_methods_at_one_bound_are_undecidable():
    claim = [false_consensus("geosd") < false_consensus("fwdkl")]
    table = {"pi_0": 10.0, "geosd": 0.05, "fwdkl": 0.2}
    moved = scores({"pi_0": 50.0, "geosd": 60.0, "fwdkl": 40.0})
    at_bound = judge(claim, scores(table, "false_consensus"), moved)
    assert at_bound.verdict == "undecidable" and "both sides lie at 0 %" in at_bound.note
    off_bound = judge(claim, scores({**table, "fwdkl": 4.0}, "false_consensus"), moved)
    assert off_bound.verdict == "reproduced"


def test_a_gain_starts_from_its_own_benchmarks_base():
    tables = [
        scores({"pi_0": base, "fwdkl": base + 3}, benchmark=name)
        for name, base in (("h1", 0.1), ("e1", 40.0))
    ]
    claim = [gain("fwdkl", "h1") < gain("fwdkl", "e1")]
    found = judge(claim, *tables)
    assert found.verdict == "undecidable" and "pi_0 lies at 0 %" in found.note


def test_a_margin_that_the_base_model_meets_is_judged_at_the_floor_too():
    table = scores({"pi_0": 0.1, "fwdkl": 0.4 + 2 * MOVED_POINTS})
    found = judge([accuracy("fwdkl") < accuracy("pi_0") + 1], table)
    assert found.verdict == "not reproduced"


# ---- Methods that did not move -------------------------------------------------------------------
STILL = {"pi_0": 50.0, "fwdkl": 50.0 + 0.6 * MOVED_POINTS, "geosd": 56.0}
FAR = {"fwdkl": 0.5 * MOVED_DRIFT, "geosd": 5 * MOVED_DRIFT}


def test_what_a_method_does_cannot_be_judged_if_it_did_not_move():
    found = judge([accuracy("fwdkl") > accuracy("pi_0")], scores(STILL), drift=FAR)
    assert found.verdict == "undecidable"
    assert found.note == "fwdkl did not move (drift/pi_0 0.010, ood_avg +0.6) on m"
    beaten = judge([accuracy("geosd") > accuracy("fwdkl")], scores(STILL), drift=FAR)
    assert beaten.verdict == "undecidable"


@pytest.mark.parametrize(
    ("points", "far"), [(2 * MOVED_POINTS, 0.5), (0.6 * MOVED_POINTS, 1.5), (-2 * MOVED_POINTS, 0)]
)
def test_one_sign_of_movement_is_enough(points, far):
    found = judge(
        [accuracy("fwdkl") > accuracy("pi_0")],
        scores({"pi_0": 50.0, "fwdkl": 50.0 + points}),
        drift={"fwdkl": far * MOVED_DRIFT} if far else None,
    )
    assert found.verdict == ("reproduced" if points > 0 else "not reproduced")


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("points", "spread"), [(1.5, 5.0), (1.5, 2.0), (1.5, 0.5)])
def test_a_change_that_may_be_less_than_the_bound_leaves_movement_open(points, spread, sign):
    table = scores({"pi_0": 50.0, "fwdkl": 50.0 + sign * points, "geosd": 70.0}, spread=spread)
    wide = table.pivot(index="seed", columns="variant", values="value")
    change = stats.ttest_rel(sign * wide["fwdkl"], sign * wide["pi_0"]).confidence_interval()
    assert (change.low > MOVED_POINTS) == (spread == 0.5) and (change.low > 0) == (spread < 5)
    beaten = judge([accuracy("geosd") > accuracy("fwdkl")], table, drift=FAR)
    refuted = judge([accuracy("geosd") < accuracy("fwdkl")], table, drift=FAR)
    if change.low > MOVED_POINTS:
        assert (beaten.verdict, refuted.verdict) == ("reproduced", "not reproduced")
    else:
        assert (beaten.verdict, refuted.verdict) == ("undetermined", "undetermined")
        ends = [sign * end for end in (change.low, change.high)][::sign]
        signs = "drift/pi_0 0.010, ood_avg {:+.1f} [{:+.1f}, {:+.1f}]".format(sign * points, *ends)
        assert beaten.note == f"fwdkl may not have moved ({signs}) on m"
    far = judge([accuracy("geosd") > accuracy("fwdkl")], table, drift={**FAR, "fwdkl": 0.03})
    assert far.verdict == "reproduced"


def test_one_run_that_drifted_less_than_the_bound_leaves_movement_open():
    claim = [accuracy("geosd") > accuracy("fwdkl")]
    table = scores({**STILL, "geosd": 70.0})
    for mean, verdict in ((1.01, "undetermined"), (1.1, "reproduced")):  # runs lie within 3 %
        found = judge(claim, table, drift={**FAR, "fwdkl": mean * MOVED_DRIFT})
        assert found.verdict == verdict
    assert 1.01 * (1 + 0.1 * SPREAD.min()) < 1 < 1.1 * (1 + 0.1 * SPREAD.min())


def test_noise_of_draws_counts_by_draws():
    # Three draws shift by 4, 1 and -2: each by far more than runs differ, and by 1 on average.
    shifts = np.repeat([4.0, 1.0, -2.0], 2)
    table = scores({"pi_0": 50.0, "fwdkl": 50.0, "geosd": 70.0}, spread=0.2)
    moved = table["variant"] == "fwdkl"
    table.loc[moved, "value"] += shifts + 0.1
    table["draw"] = table["seed"] // 2
    found = judge([accuracy("geosd") > accuracy("fwdkl")], table, drift=FAR)
    assert found.verdict == "undetermined" and "may not have moved" in found.note
    assert stats.ttest_1samp([4.1, 1.1, -1.9], 0).pvalue > 0.05


def test_one_run_that_may_have_moved_leaves_its_sweep_open():
    slow, fast = (VariantRuns("f", f"f-{n}", parameter="learning_rate", value=n) for n in (1, 2))
    table = scores({"pi_0": 50.0, "f-1": 50.4, "f-2": 48.5}, spread=5.0)
    found = judge([accuracy(fast) < accuracy(slow)], table, drift={"f-1": 0.005, "f-2": 0.015})
    assert found.verdict == "undetermined" and "f may not have moved" in found.note


def test_a_comparison_that_is_surely_no_evidence_goes_before_an_open_one():
    table = scores({"pi_0": 50.0, "fwdkl": 51.5, "grpo": 50.4, "geosd": 70.0}, spread=5.0)
    best = [accuracy("geosd") > accuracy(other) for other in ("fwdkl", "grpo")]
    found = judge(best, table, drift={**FAR, "grpo": 0.01})
    assert found.verdict == "undecidable" and found.note.startswith("grpo did not move")


@pytest.mark.parametrize(
    ("base", "changes", "verdict"),
    [
        (50.0, (0.5, 20.0), "reproduced"),  # idle on one model: the mean is smaller, and evidence
        (50.0, (0.5, 0.6), "undecidable"),
        (99.9, (0.0, -20.0), "undecidable"),  # from a ceiling the mean can only fall
    ],
)
def test_a_row_over_all_models_needs_movement_on_one_and_room_on_each(base, changes, verdict):
    tables = []
    for model, start, change in zip(("m", "n"), (base, 50.0), changes, strict=True):
        table = scores({"pi_0": start, "fwdkl": start + change})
        tables.append(table.assign(model=model, draw=table["seed"] % 3))
    holds = [accuracy("fwdkl") > accuracy("pi_0")]
    claim = Claim("c", "", "", "", "main", holds, every_family=True)
    found = judge_claims([claim], Evidence(pd.concat(tables)))
    assert found[0].model == ALL_MODELS and found[0].verdict == verdict


def test_id_accuracy_shows_movement_too():
    table = scores(STILL), scores({"pi_0": 60.0, "fwdkl": 70.0}, benchmark="id")
    found = judge([accuracy("fwdkl") > accuracy("pi_0")], *table)
    assert found.verdict == "reproduced"


def test_a_claim_about_not_moving_is_judged():
    close = [near(accuracy("fwdkl"), accuracy("pi_0"), within=2.5)]
    assert judge(close, scores(STILL), drift=FAR).verdict == "reproduced"
    still = [near(gain("fwdkl"), 0, within=2.5)]
    assert judge(still, scores(STILL), drift=FAR).verdict == "reproduced"
    among = [near(accuracy("fwdkl"), accuracy("geosd"), within=2.5)]
    assert judge(among, scores(STILL), drift=FAR).verdict == "undecidable"


def test_less_drift_is_evidence_only_against_a_method_that_moved():
    still, table = [drift("fwdkl") < drift("geosd")], scores(STILL)
    assert judge(still, table, drift=FAR).verdict == "reproduced"
    other = judge([drift("geosd") < drift("fwdkl")], table, drift=FAR)
    assert other.verdict == "undecidable" and "fwdkl did not move" in other.note


def test_a_sweep_is_judged_if_any_of_its_runs_moved():
    slow, fast = (VariantRuns("f", f"f-{n}", parameter="learning_rate", value=n) for n in (1, 2))
    table = scores({"pi_0": 50.0, "f-1": 50.4, "f-2": 40.0})
    assert judge([accuracy(fast) < accuracy(slow)], table).verdict == "reproduced"
    unmoved = scores({"pi_0": 50.0, "f-1": 50.4, "f-2": 49.8})
    assert judge([accuracy(fast) < accuracy(slow)], unmoved).verdict == "undecidable"


def test_what_is_no_evidence_hides_no_contradiction_and_confirms_nothing():
    best = [accuracy("geosd") > accuracy(other) for other in ("fwdkl", "grpo")]
    weaker = judge(best, scores({**STILL, "grpo": 60.0}), drift=FAR)
    assert weaker.verdict == "not reproduced" and "grpo" in weaker.comparison
    assert weaker.p_against == pytest.approx(
        2 * judge(best[1:], scores({**STILL, "grpo": 60.0})).p_against
    )
    stronger = judge(best, scores({**STILL, "grpo": 52.0}), drift=FAR)
    assert stronger.verdict == "undecidable" and stronger.p_for == 1


# ---- Reach ---------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_design_that_no_effect_could_decide_says_so():
    table = scores({"pi_0": 50.0, "geosd": 52.0}, spread=50.0)
    claim = [accuracy("geosd") > accuracy("pi_0")]
    alone, among = judge(claim, table), judge(claim, table, rows=60)
    assert alone.verdict == "undetermined" and alone.detectable < 50
    assert among.verdict == "undecidable" and among.detectable > 50
    assert f"{among.detectable:.3g} is detectable, the scale allows 50" in among.note


def test_a_clear_effect_needs_no_reach():
    table = scores({"pi_0": 5.0, "geosd": 95.0}, spread=5.0)
    assert judge([accuracy("geosd") > accuracy("pi_0")], table, rows=20).verdict == "reproduced"


@pytest.mark.parametrize(("rows", "parts"), [(1, 1), (5, 1), (5, 3)])
def test_the_smallest_detectable_effect_is_confirmed_four_times_in_five(rows, parts):
    table = scores({"pi_0": 50.0, "geosd": 52.0}, spread=5.0)
    claim = [accuracy("geosd") > accuracy("pi_0") - shift for shift in range(parts)]
    found = judge(claim, table, rows=rows)
    wide = table.pivot(index="seed", columns="variant", values="value")
    se = stats.sem(wide["geosd"] - wide["pi_0"])
    draw = np.random.default_rng(0)
    shape = (60_000, len(SPREAD))
    effects = found.detectable + se * math.sqrt(len(SPREAD)) * draw.normal(size=shape)
    p = stats.ttest_1samp(effects, 0, axis=1, alternative="greater").pvalue
    assert (p < 0.05 / rows).mean() == pytest.approx(1 - 0.2 / parts, abs=0.006)


def test_within_detects_a_margin():
    table = scores({"pi_0": 50.0, "geosd": 58.0, "jsd": 50.2}, spread=3.0)
    found = judge([near(accuracy("jsd"), accuracy("pi_0"), within=2.5)], table)
    wide = table.pivot(index="seed", columns="variant", values="value")
    sd = (wide["jsd"] - wide["pi_0"]).std(ddof=1)
    draw = np.random.default_rng(1)
    effects = sd * draw.normal(size=(60_000, len(SPREAD)))
    lower, upper = (
        stats.ttest_1samp(effects, sign * found.detectable, axis=1, alternative=way).pvalue
        for sign, way in ((-1, "greater"), (1, "less"))
    )
    assert (np.maximum(lower, upper) < 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_scales_hold_every_metric_of_the_ledger():
    assert scale_of_metric("avg@k") == (0, 100) and scale_of_metric("mass_gain") == (-100, 100)
    assert scale_of_metric("drift_path") == (0, math.pi)
    assert scale_of_metric("gradient_fwdkl") == (0, math.inf)


def test_columns_that_tables_have_are_enough_for_every_rule():
    empty = pd.DataFrame(columns=list(COLUMNS["drift"]))
    table = pd.concat([scores(STILL), scores({"pi_0": 60, "fwdkl": 60}, benchmark=ID)])
    claims = [claim for claim in ledger() if set(claim.variants()) <= {"pi_0", "fwdkl"}]
    found = judge_claims(claims, Evidence(table, empty), ["m"])
    assert {f.verdict for f in found} <= {"undecidable", "not tested"}
