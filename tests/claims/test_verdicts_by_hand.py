"""The ledger is well formed and quotes the paper; its verdicts follow the data, all ways."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from geosd.claims.describe import describe
from geosd.claims.evidence import Evidence
from geosd.claims.published import lookup
from geosd.claims.schema import Claim, Comparison, compare, ledger, parse
from geosd.claims.verdicts import evaluate
from geosd.scores.drift_table import COLUMNS as DRIFT_COLUMNS
from geosd.scores.score_table import COLUMNS

QUICK = {"pi_0", "fwdkl", "revkl", "grpo", "geosd"}
NO_DRIFT = pd.DataFrame(columns=list(DRIFT_COLUMNS))


def scores(runs: dict[str, list[float]], benchmarks=("ood_avg",), metric="avg@k", model="m"):
    """Scores of runs; each variant's begin at another seed, so that pairs have a spread."""
    rows = [
        (model, v, (seed + turn) % len(values), b, "ID" if b == "id" else "OOD", metric, 16, x)
        for turn, (v, values) in enumerate(runs.items())
        for b in benchmarks
        for seed, x in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def claim(*comparisons: Comparison, name="c") -> Claim:
    return Claim(name, "statement", "place", "quote", "published", "main", comparisons)


GREATER = claim(compare("geosd", "pi_0", "greater"))


def verdict(one: Claim, table, drift=NO_DRIFT):
    [finding] = evaluate([one], Evidence(table, drift))
    return finding


def test_the_ledger_has_enough_that_the_quick_study_decides_and_more():
    claims = ledger()
    assert len(claims) >= 85
    assert sum(set(c.variants) <= QUICK and c.study == "main" for c in claims) >= 18


def test_every_quote_is_the_papers(plain):
    for entry in ledger():
        assert entry.quote in plain, entry.id


def test_a_clear_difference_in_the_claimed_direction_is_reproduced():
    found = verdict(GREATER, scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}))
    assert found.verdict == "reproduced"
    assert found.effect == 10 and found.low > 0 and found.p_holm < 0.05
    assert (found.n_a, found.n_b) == (3, 3)


def test_a_clear_difference_in_the_other_direction_is_not_reproduced():
    found = verdict(GREATER, scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]}))
    assert found.verdict == "not reproduced" and found.high < 0


def test_what_the_data_cannot_tell_is_undetermined():
    found = verdict(GREATER, scores({"geosd": [40, 50, 60], "pi_0": [45, 50, 52]}))
    assert found.verdict == "undetermined" and found.low < 0 < found.high


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ({"geosd": [60], "pi_0": [50]}, "single run"),
        ({"geosd": [60, 61, 62], "pi_0": [50]}, "single run"),
        ({"geosd": [60, 60, 60], "pi_0": [50, 50, 50]}, "no variance"),
    ],
)
def test_without_a_spread_nothing_is_decided(runs, why):
    found = verdict(GREATER, scores(runs))
    assert found.verdict == "undetermined" and why in found.note and math.isnan(found.p)


def test_less_mirrors_greater():
    less = claim(compare("pi_0", "geosd", "less"))
    up = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]})
    down = scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]})
    assert verdict(less, up).verdict == "reproduced"
    assert verdict(less, down).verdict == "not reproduced"
    assert verdict(less, up).p == pytest.approx(verdict(GREATER, up).p)


def test_a_margin_decides_whether_slightly_below_counts():
    table = scores({"geosd": [49.0, 49.1, 49.2], "fwdkl": [50.0, 50.1, 50.2]})
    near = compare("geosd", "fwdkl", "greater", margin=-1.7)
    nearer = compare("geosd", "fwdkl", "greater", margin=-0.5)
    assert verdict(claim(near), table).verdict == "reproduced"
    assert verdict(claim(nearer), table).verdict == "not reproduced"


def test_within_needs_both_sides():
    within = claim(compare("jsd", "pi_0", "within", margin=2.0))
    base = [50.0, 50.1, 50.2]
    for shift, expected in ((0.5, "reproduced"), (5, "not reproduced"), (-5, "not reproduced")):
        table = scores({"jsd": [x + shift for x in base], "pi_0": base})
        assert verdict(within, table).verdict == expected
    wide = scores({"jsd": [44, 50, 56], "pi_0": base})
    assert verdict(within, wide).verdict == "undetermined"


def test_a_conjunction_is_as_strong_as_its_weakest_part():
    rivals = claim(*(compare("geosd", b, "greater") for b in ("pi_0", "fwdkl")))
    table = {"geosd": [60, 61, 62], "pi_0": [50, 51, 52], "fwdkl": [58, 60.5, 62]}
    weak = verdict(rivals, scores(table))
    alone = verdict(claim(compare("geosd", "fwdkl", "greater")), scores(table))
    assert weak.verdict == "undetermined" and weak.p == pytest.approx(alone.p)
    assert weak.weakest == "geosd - fwdkl > 0, avg@k of ood_avg"
    assert weak.low < alone.low  # simultaneous intervals are wider
    beaten = verdict(rivals, scores({**table, "fwdkl": [70, 71, 72]}))
    assert beaten.verdict == "not reproduced" and "fwdkl" in beaten.weakest


def test_each_ood_takes_every_benchmark_and_not_their_average():
    each = claim(compare("geosd", "pi_0", "greater", benchmark="each_ood"))
    good = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}, ("long", "ood_avg"))
    bad = scores({"geosd": [50, 51, 52], "pi_0": [60, 61, 62]}, ("easy",))
    assert verdict(each, good).verdict == "reproduced"
    assert verdict(each, pd.concat([good, bad])).verdict == "not reproduced"


def test_drift_is_read_from_the_drift_table():
    drift = pd.DataFrame(
        [("m", v, s, "drift/pi_0", x * (1 + 0.1 * s))
         for v, x in (("geosd", 0.1), ("fwdkl", 0.4)) for s in range(3)],
        columns=list(DRIFT_COLUMNS),
    )  # fmt: skip
    less = claim(compare("geosd", "fwdkl", "less", metric="drift/pi_0"))
    table = scores({"geosd": [1, 2, 3], "fwdkl": [1, 2, 3]})
    assert verdict(less, table, drift).verdict == "reproduced"
    missing = verdict(less, table)
    assert missing.verdict == "not tested" and "drift/pi_0" in missing.note


def test_a_claim_about_absent_variants_is_not_tested_and_says_which():
    found = verdict(claim(compare("geosd", "tip", "greater")), scores({"geosd": [1, 2, 3]}))
    assert found.verdict == "not tested" and found.note == "needs tip"


def test_holm_runs_over_every_tested_row_and_no_other():
    clear = {"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}
    absent = claim(compare("geosd", "tip", "greater"), name="absent")
    models = pd.concat([scores(clear, model="m1"), scores(clear, model="m2")])
    findings = evaluate([GREATER, absent], Evidence(models))
    assert [(f.claim.id, f.model) for f in findings] == [
        ("c", "m1"), ("c", "m2"), ("absent", "m1"), ("absent", "m2"),
    ]  # fmt: skip
    assert findings[0].p_holm == pytest.approx(2 * findings[0].p)
    assert math.isnan(findings[2].p_holm)


def test_when_nothing_differs_false_findings_are_as_rare_as_they_should_be():
    draw = np.random.default_rng(3)
    runs = [{v: draw.normal(50, 2, 3) for v in ("geosd", "pi_0")} for _ in range(300)]
    tables = [scores(values, model=f"m{i}") for i, values in enumerate(runs)]
    findings = evaluate([GREATER], Evidence(pd.concat(tables)))
    verdicts = [finding.verdict for finding in findings]
    assert verdicts.count("reproduced") == 0  # Holm over 300 rows
    assert verdicts.count("not reproduced") < 0.06 * 300  # nominal 2.5 % of intervals
    assert 0.02 * 300 < sum(finding.p < 0.05 for finding in findings) < 0.09 * 300  # nominal 5 %


def test_the_papers_effect_stands_beside_ours():
    table = scores({"geosd": [60, 61, 62], "pi_0": [50, 51, 52]}, model="mini-olmo3")
    assert verdict(GREATER, table).paper_effect == pytest.approx(7.6)
    assert math.isnan(verdict(GREATER, table.assign(model="other")).paper_effect)


def test_a_malformed_ledger_is_named_with_a_hint():
    good = {k: "x" for k in ("id", "statement", "place", "quote", "published")}
    good["study"] = "main"
    pair = {"a": "x", "b": "y", "direction": "less"}
    bad = [
        ({**good, "comparisons": [{"a": "x", "b": "y", "direction": "up"}]}, "direction 'up'"),
        ({**good, "comparisons": [{"a": "x", "b": "y", "direction": "within"}]}, "margin above 0"),
        ({**good, "comparisons": [pair], "colour": 1}, "colour"),
        ({**good, "comparisons": [{**pair, "a": {"variant": "x", "hue": 1}}]}, "no key hue"),
        ({**good, "comparisons": [pair], "unmeasured": "time"}, "exactly one"),
        ({**good, "comparisons": [pair], "study": "quick"}, "no kind of study is 'quick'"),
        (good, "exactly one of comparisons"),
    ]
    for entry, message in bad:
        with pytest.raises(ValueError, match=f"(?s)claim x.*{message}.*Hint:"):
            parse([entry])
    with pytest.raises(ValueError, match="(?s)x occurs twice.*Hint:"):
        parse([{**good, "comparisons": [pair]}] * 2)


def test_comparisons_are_told_in_words():
    assert describe(compare("a", "b", "greater", "id", margin=-1.7)) == "a - b > -1.7, avg@k of id"
    assert describe(compare("a", "b", "within", margin=2)) == "a - b within +-2, avg@k of ood_avg"
    assert describe(compare("a", "b", "less", metric="drift/pi_0")) == "a - b < 0, drift/pi_0"
    stopped = {"variant": "a", "steps": 25}
    half = compare(stopped, {"variant": "a", "steps": 200}, "less", over="b", times=0.5)
    assert describe(half) == "a (steps 25) - 0.5 x a (steps 200) < 0, avg@k of ood_avg over b"
    gap = compare({"variant": "a", "benchmark": "id"}, "a", "greater")
    assert describe(gap) == "a (id) - a (ood_avg) > 0, avg@k"
    assert describe(compare("a", None, "within", metric="mismatch", margin=5)) == (
        "a within +-5, mismatch"
    )


def weakest_published(entry: Claim, name: str) -> float | None:
    """The published difference with the least room in the claimed direction."""
    differences = []
    for c in entry.comparisons:
        if c.over or c.b is None or any(side.where for side in c.sides):
            return None
        whole = c.a.benchmark == "each_ood"
        for benchmark in PAPERS_OWN if whole else (c.a.benchmark,):
            a, b = (lookup(name, side.variant, benchmark, side.metric) for side in c.sides)
            if a is None or b is None:
                return None
            differences.append((1 if c.direction == "greater" else -1, a.mean - b.mean))
    if not differences:
        return None
    sign, difference = min(differences, key=lambda d: d[0] * d[1])
    return difference


PAPERS_OWN = ("aime24", "aime25", "amc23", "math500")
FAMILIES = ("Qwen3-8B", "Olmo-3-7B-Think", "DS-R1-Llama-8B")
NUMBER = r"([+-]\d+\.\d)"


def test_published_differences_of_the_ledger_follow_from_the_papers_tables():
    checked = 0
    for entry in ledger():
        triples = re.findall(f"{NUMBER} / {NUMBER} / {NUMBER}", entry.published)
        expected = [weakest_published(entry, name) for name in FAMILIES]
        # With several triples the text tells them one by one; the weakest then is not the text's.
        if len(triples) == 1 and None not in expected:
            assert [float(n) for n in triples[0]] == pytest.approx(expected), entry.id
            checked += 1
    assert checked >= 15
