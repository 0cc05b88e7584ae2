"""The ledger is well formed and quotes the paper; its words follow the data, all ways."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from scipy import stats

from geosd.claims.claim import Claim, Comparison, claim_near
from geosd.claims.evidence import Evidence, VariantEvidence
from geosd.claims.finding import ALL_MODELS
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import SECTIONS, ledger
from geosd.claims.metrics import (
    ID,
    accuracy_metric,
    drift_metric,
    gain_metric,
    mismatch_metric,
    strongest_metric,
)
from geosd.scores.statistics import holm
from geosd.scores.tidy import COLUMNS

NO_DRIFT = pd.DataFrame(columns=list(COLUMNS["drift"]))


def scores(runs: dict[str, list[float]], benchmarks=("ood_avg",), metric="avg@k", model="m"):
    """Scores of runs; each variant's begin at another seed, so that pairs have a spread."""
    rows = [
        (model, v, (seed + turn) % len(values), 0, b, "ID" if b == "id" else "OOD", metric, 16, x)
        for turn, (v, values) in enumerate(runs.items())
        for b in benchmarks
        for seed, x in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def claim(*comparisons: Comparison, name="c") -> Claim:
    return Claim(name, "statement", "place", "quote", "main", comparisons)


GREATER = claim(accuracy_metric("geosd") > accuracy_metric("pi_0"))


def judged(claim: Claim, table, drift=NO_DRIFT, **more):
    [finding] = judge_claims([claim], Evidence(table, drift, **more))
    return finding


def test_names_are_unique_and_three_claims_are_primary():
    claims = ledger()
    assert len({claim.id for claim in claims}) == sum(len(part.CLAIMS) for part in SECTIONS) >= 75
    assert [claim.id for claim in claims if claim.primary] == [claim.id for claim in claims[:3]]


def test_every_quote_is_the_papers(paper_prose):
    for entry in ledger():
        assert entry.quote in paper_prose, entry.id


def test_a_clear_difference_in_the_claimed_direction_is_reproduced():
    found = judged(GREATER, scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}))
    assert found.word == "agrees"
    assert found.effect == 10 and found.low > 0 and found.confidence == 0.95
    assert (found.n_a, found.n_b) == (3, 3)


def test_a_clear_difference_in_the_other_direction_is_not_reproduced():
    found = judged(GREATER, scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]}))
    assert found.word == "opposite" and found.high < 0


def test_what_the_data_cannot_decide_is_undetermined():
    found = judged(GREATER, scores({"geosd": [40, 50, 60], "pi_0": [45, 50, 52]}))
    assert found.word == "too small to tell" and found.low < 0 < found.high


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ({"geosd": [60], "pi_0": [50]}, "single run"),
        ({"geosd": [60, 61, 62], "pi_0": [50]}, "single run"),
        ({"geosd": [60, 60, 60], "pi_0": [50, 50, 50]}, "no variance"),
    ],
)
def test_without_a_spread_nothing_is_decided(runs, why):
    found = judged(GREATER, scores(runs))
    assert found.word == "too small to tell" and why in found.note and math.isnan(found.low)


def test_less_mirrors_greater():
    less = claim(accuracy_metric("pi_0") < accuracy_metric("geosd"))
    up = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]})
    down = scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]})
    assert judged(less, up).word == "agrees"
    assert judged(less, down).word == "opposite"
    assert -judged(less, up).high == pytest.approx(judged(GREATER, up).low)


def test_a_margin_decides_whether_slightly_below_counts():
    table = scores({"geosd": [49.0, 49.1, 49.2], "fwdkl": [50.0, 50.1, 50.2]})
    near = accuracy_metric("geosd") > accuracy_metric("fwdkl") - 1.7
    nearer = accuracy_metric("geosd") > accuracy_metric("fwdkl") - 0.5
    assert judged(claim(near), table).word == "agrees"
    assert judged(claim(nearer), table).word == "opposite"


def test_within_needs_both_sides():
    within = claim(claim_near(accuracy_metric("jsd"), accuracy_metric("pi_0"), within=2.0))
    base = [50.0, 50.1, 50.2]
    for shift, expected in ((0.5, "agrees"), (5, "opposite"), (-5, "opposite")):
        table = scores({"jsd": [x + shift for x in base], "pi_0": base})
        assert judged(within, table).word == expected
    wide = scores({"jsd": [44, 50, 56], "pi_0": base})
    assert judged(within, wide).word == "too small to tell"


def test_a_conjunction_is_as_strong_as_its_weakest_part():
    rivals = claim(*(accuracy_metric("geosd") > accuracy_metric(b) for b in ("pi_0", "fwdkl")))
    table = {"geosd": [60, 61, 62], "pi_0": [50, 51, 52], "fwdkl": [58, 60.5, 62]}
    weak = judged(rivals, scores(table))
    alone = judged(claim(accuracy_metric("geosd") > accuracy_metric("fwdkl")), scores(table))
    assert weak.word == "too small to tell" and weak.effect == pytest.approx(alone.effect)
    assert weak.comparison == "geosd - fwdkl > 0, avg@k of ood_avg"
    assert weak.low < alone.low  # simultaneous intervals are wider
    beaten = judged(rivals, scores({**table, "fwdkl": [70, 71, 72]}))
    assert beaten.word == "opposite" and "fwdkl" in beaten.comparison


def test_each_ood_takes_every_benchmark_and_not_their_average():
    each = Claim(
        *("c", "statement", "place", "quote", "main"),
        lambda study: [
            accuracy_metric("geosd", b) > accuracy_metric("pi_0", b) for b in study.ood_benchmarks
        ],
    )
    good = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}, ("long", "ood_avg"))
    bad = scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]}, ("easy",))
    assert judged(each, good).word == "agrees"
    assert judged(each, pd.concat([good, bad])).word == "opposite"


def test_drift_is_read_from_the_drift_table():
    drifts = pd.DataFrame(
        [("m", v, s, 0, "drift/pi_0", x * (1 + 0.1 * s))
         for v, x in (("geosd", 0.1), ("fwdkl", 0.4)) for s in range(3)],
        columns=list(COLUMNS["drift"]),
    )  # fmt: skip
    less = claim(drift_metric("geosd") < drift_metric("fwdkl"))
    table = scores({"geosd": [1, 2, 3], "fwdkl": [1, 2, 3]})
    assert judged(less, table, drifts).word == "agrees"
    missing = judged(less, table)
    assert missing.word == "not exercised" and "drift/pi_0" in missing.note


def test_a_claim_about_absent_variants_is_not_tested_and_says_which():
    found = judged(
        claim(accuracy_metric("geosd") > accuracy_metric("tip")), scores({"geosd": [1, 2, 3]})
    )
    assert found.word == "not exercised" and found.note == "needs tip"


def models(gains: dict[str, float], spread: float = 1.0) -> pd.DataFrame:
    """Scores of GeoSD and pi_0 on several models, of six runs on three draws of each."""
    tables = []
    for model, gain_ in gains.items():
        runs = {"geosd": [50 + gain_ + spread * x for x in (-1, 0, 1, -0.5, 0.5, 0)]}
        table = scores({**runs, "pi_0": [50.0, 50.1, 50.2, 50.3, 50.1, 50.2]}, model=model)
        tables.append(table.assign(draw=table["seed"] % 3))
    return pd.concat(tables)


def test_a_primary_claim_is_corrected_over_the_models_by_holms_method():
    primary = Claim("c", "", "", "", "main", GREATER.holds, primary=True)
    table = models({"m1": 30.0, "m2": 4.0, "m3": 0.5})
    found = {f.model: f for f in judge_claims([primary], Evidence(table))}
    others = {f.model: f for f in judge_claims([GREATER], Evidence(table))}
    assert list(found) == [ALL_MODELS, "m1", "m2", "m3"]
    assert all(f.confidence == 0.95 for f in [found[ALL_MODELS], *others.values()])
    # Holm: the clearest row at a third of the level, the next at a half, and so on.
    p_values = {}
    for name in ("m1", "m2", "m3"):
        wide = table[table["model"] == name].pivot(index="seed", columns="variant", values="value")
        means = (wide["geosd"] - wide["pi_0"]).groupby(wide.index % 3).mean()
        p_values[name] = stats.ttest_1samp(means, 0).pvalue
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    for name, p in adjusted.items():
        assert (found[name].word == "agrees") == (p < 0.05), name
    assert {f.word for f in found.values()} == {"agrees", "too small to tell"}
    assert found["m1"].confidence == pytest.approx(1 - 0.05 / 3)


def test_the_strongest_baseline_is_chosen_with_an_interval_for_all_of_them():
    lead = claim(accuracy_metric("geosd") > strongest_metric(("sft", "tip")))
    table = scores(
        {"geosd": [60, 61, 62], "sft": [40, 41, 42], "tip": [50, 51.5, 52]}, model="mini-llama"
    )
    found, named = (
        judged(lead, table),
        judged(claim(accuracy_metric("geosd") > accuracy_metric("tip")), table),
    )
    assert found.comparison == named.comparison == "geosd - tip > 0, avg@k of ood_avg"
    assert found.confidence == pytest.approx(1 - 0.05 / 2) and found.low < named.low
    assert found.paper_effect == pytest.approx(49.4 - 46.8)  # TIP is the paper's strongest
    lacking = judged(lead, table[table["variant"] != "sft"])
    assert (lacking.word, lacking.note) == ("not exercised", "needs sft")


def test_one_learning_rate_is_that_of_both_or_any_that_both_have_in_a_sweep():
    both = Claim(
        *("c", "", "", "", "main"),
        lambda study: [
            accuracy_metric(a) > accuracy_metric(b) for a, b in study.at_one_rate("geosd", "fwdkl")
        ],
    )
    table = scores({"geosd": [60, 61, 62], "fwdkl": [50, 51, 52], "fwdkl-1": [70, 71, 72]})
    same = judged(both, table, rates={"m": {"geosd": 1e-6, "fwdkl": 1e-6}})
    assert same.word == "agrees" and "fwdkl (one_rate 1e-06)" in same.comparison
    rates = {"m": {"geosd": 1e-6, "fwdkl": 3e-6}}
    apart = judged(both, table, rates=rates)
    assert apart.note == "needs geosd and fwdkl at one learning rate"
    point = {"run": "fwdkl-1", "variant": "fwdkl", "learning_rate": 1e-6, "steps": 9}
    swept = judged(both, table, rates=rates, rates_and_steps={"m": [point]})
    assert swept.word == "opposite"


def test_what_hardly_moved_is_noted_and_its_word_is_that_of_its_interval():
    drifts = pd.DataFrame(
        [("m", "geosd", s, 0, "drift/pi_0", 0.01) for s in range(3)], columns=NO_DRIFT.columns
    )
    found = judged(GREATER, scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}), drifts)
    assert found.word == "agrees" and found.note == "geosd ended 0.010 rad from pi_0 on m"


def test_a_finding_has_the_papers_effect():
    table = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}, model="mini-olmo3")
    assert judged(GREATER, table).paper_effect == pytest.approx(7.6)
    assert math.isnan(judged(GREATER, table.assign(model="other")).paper_effect)


def test_a_malformed_claim_is_named_with_a_hint():
    up = accuracy_metric("x") > accuracy_metric("y")
    bad = [
        ({"holds": [up], "unmeasured": "time", "study_kind": "main"}, "exactly one of holds"),
        ({"study_kind": "main"}, "exactly one of holds"),
    ]
    for keys, message in bad:
        with pytest.raises(ValueError, match=f"(?s)claim x.*{message}.*Hint:"):
            Claim("x", "statement", "place", "quote", **keys)


def test_what_is_no_comparison_is_refused():
    a, b = accuracy_metric("a"), accuracy_metric("b")
    with pytest.raises(ValueError, match="(?s)margin above 0.*Hint:"):
        claim_near(a, b, within=0)
    with pytest.raises(TypeError, match="(?s)no truth value.*Hint:"):
        assert a < b < accuracy_metric("c")
    for wrong in (lambda: a + 1 < b, lambda: 2 * a < b, lambda: gain_metric("a") < b):
        with pytest.raises(ValueError, match="(?s)a: factors and numbers.*Hint:"):
            wrong()


def test_comparisons_are_printed_in_words():
    a, b = (VariantEvidence("a", f"a-{n}", parameter="steps", value=n) for n in (25, 200))
    assert (
        str(accuracy_metric("a", ID) > accuracy_metric("b", ID) - 1.7)
        == "a - b > -1.7, avg@k of id"
    )
    within = claim_near(accuracy_metric("a"), accuracy_metric("b"), within=2)
    assert str(within) == "a - b within +-2, avg@k of ood_avg"
    assert str(drift_metric("a") < drift_metric("b")) == "a - b < 0, drift/pi_0"
    half = gain_metric(a) < 0.5 * gain_metric(b)
    assert str(half) == "a (steps 25) - 0.5 x a (steps 200) < 0, avg@k of ood_avg over pi_0"
    assert str(accuracy_metric("a", ID) > accuracy_metric("a")) == "a (id) - a (ood_avg) > 0, avg@k"
    assert str(claim_near(mismatch_metric(), 0, within=5)) == "pi_0 within +-5, mismatch"
    swept = VariantEvidence("a", "a-1", parameter="learning_rate", value=1e-7)
    assert str(accuracy_metric(swept) < accuracy_metric("b") + 1).startswith(
        "a (learning_rate 1e-07) - b < 1"
    )
    large = VariantEvidence("a", "a", model="m")
    assert str(accuracy_metric(large) > 5) == "a (m) > 5, avg@k of ood_avg"
