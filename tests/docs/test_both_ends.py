"""What the pages say at both ends of the dial is what the shipped runs say, recomputed here.

Numbers are recomputed from the tidy tables with pandas and scipy alone.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from shipped_studies import drifts, page_number, tidy_table

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"
ENDS = {1: "100", 0: "0"}
SETTINGS = ("0", "25", "50", "75", "100")
KL_MATCHING = ("fwdkl", "revkl", "jsd", "tropd")
COMMON = "learning_rate_1e-05"
RATES = {"10⁻⁵": "1e-05", "3·10⁻⁵": "3e-05", "10⁻⁴": "0.0001", "3·10⁻⁴": "0.0003"}


@cache
def accuracies(study, benchmark):
    """avg@k of each run, a row a (model, draw, seed), a column a variant."""
    scores = tidy_table(study, "scores")
    rows = scores[(scores["metric"] == "avg@k") & (scores["benchmark"] == benchmark)]
    return rows.pivot(index=["model", "draw", "seed"], columns="variant", values="value")


def over_draws(differences):
    """The mean of each draw of each base model."""
    return differences.groupby(level=["model", "draw"]).mean().to_numpy()


def interval(values, confidence=0.95, form="+.1f"):
    low, high = stats.ttest_1samp(values, 0).confidence_interval(confidence)
    mean, low, high = (page_number(value, form) for value in (np.mean(values), low, high))
    return f"{mean} [{low}, {high}]"


def size(values, unit=""):
    """An effect above 0 and its interval, without signs."""
    effect, ends = interval(values).replace("+", "").split(" ", 1)
    return f"{effect}{unit} {ends}"


def dial(end, benchmark):
    """Accuracies at one rate on the dial, by method, and those of GeoSD's parts."""
    whole = accuracies(f"miniature_transfer_{ENDS[end]}", benchmark)
    parts = accuracies(f"miniature_parts_{ENDS[end]}", benchmark).drop(columns="pi_0")
    return whole.join(parts)


def difference(end, a, b, benchmark="ood_avg", rate=COMMON):
    runs = dial(end, benchmark)
    columns = [name if name == "pi_0" else f"{name}-{rate}" for name in (a, b)]
    return over_draws(runs[columns[0]] - runs[columns[1]])


def gains(study, variant, benchmark):
    runs = accuracies(study, benchmark)
    return runs[variant] - runs["pi_0"]


def collapsed(family, variant, rate, settings, on):
    """How many runs are ten points or more below π₀ of the same draw, and of how many."""
    fallen = runs = 0
    for setting in settings:
        study, name = f"{family}_{setting}", f"{variant}-learning_rate_{rate}"
        if on == "test":
            below = gains(study, name, "id") <= -10
            below |= gains(study, name, "ood_avg") <= -10
        else:
            below = gains(f"{study}_selection", name, "select_validation") <= -10
        fallen, runs = fallen + below.sum(), runs + len(below)
    return fallen, runs


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def finding(name):
    """The line of README's findings that begins with these words."""
    (line,) = (row for row in page("README.md").splitlines() if row.startswith(f"- **{name}:**"))
    return line


def test_the_door_begins_with_the_main_test_and_its_page_has_both_ends():
    lines = [line for line in page("README.md").splitlines() if line.startswith("- **")]
    line = finding("Main test")
    assert lines[0] == line and "docs/miniature.md" in line
    ledger = pd.read_csv(FIGURES / "miniature_all/claims_all.csv")
    rows = ledger[ledger["claim"] == "geosd-above-fwdkl-at-one-rate"]
    (over_all,) = rows[rows["model"] == "all models"].itertuples()
    ends = f"[{page_number(over_all.low, '.1f')}, {page_number(over_all.high, '.1f')}]"
    assert f"leads forward KL OOD by {over_all.effect:.1f} points {ends} at conflict 1" in line
    low, high = stats.ttest_1samp(difference(0, "geosd", "fwdkl"), 0).confidence_interval(0.95)
    assert low < 0 < high and line.partition(" (")[0].endswith(", not at 0")
    by_family = rows[rows["model"] != "all models"]
    assert (by_family["word"] == "agrees").sum() == 1 and len(by_family) == 3
    for row in by_family.itertuples():
        level = f"{100 * row.confidence:.2f}".rstrip("0").rstrip(".")
        effect, low, high = map(page_number, (row.effect, row.low, row.high))
        words = f"{effect} [{low}, {high}] at {level} %"
        assert words in page("docs/miniature.md"), words
    of_dial = page("docs/transfer.md")
    for end in (0, 1):
        words = interval(difference(end, "geosd", "fwdkl")).replace(" [", " points [", 1)
        assert words in of_dial, words


def test_the_door_names_a_method_that_is_ahead_and_the_pages_have_both():
    main = {name: accuracies("miniature", name) for name in ("id", "ood_avg")}

    def at_1(variant, benchmark):
        return over_draws(main[benchmark][variant] - main[benchmark]["geosd"])

    low, high = stats.ttest_1samp(at_1("tropd", "ood_avg"), 0).confidence_interval(0.95)
    assert low < 0 < high, "TrOPD is level out of distribution"
    ahead = [at_1("tropd", "id"), difference(0, "tropd", "geosd")]
    for values in ahead:
        assert stats.ttest_1samp(values, 0).confidence_interval(0.95).low > 0
    assert "TrOPD gains more, ID at conflict 1 and OOD at 0" in finding("Ranking")
    said = (
        f"JSD gains {size(at_1('jsd', 'id'))} more ID and loses {size(-at_1('jsd', 'ood_avg'))}"
        " more OOD;"
    )
    assert said in page("docs/miniature.md"), said
    jsd, tropd = (size(difference(0, name, "geosd")) for name in ("jsd", "tropd"))
    said = f"At 0 JSD and TrOPD gain {jsd} and {tropd} points more OOD"
    assert said in page("docs/transfer.md"), said


def test_the_door_s_gains_at_both_ends_have_one_sign_for_all_methods():
    gain = {end: interval(difference(end, "geosd", "pi_0")) for end in ENDS}
    at_0, at_1 = (gain[end].partition(" ")[0] for end in (0, 1))
    assert f"GeoSD gains {at_0} points OOD at conflict 0, {at_1} at 1 (" in finding("Sign")
    at_0 = gain[0].replace(" [", " points [", 1)
    assert f"is {at_0} at 0 and {gain[1]} at 1." in page("docs/transfer.md")
    for name in (*KL_MATCHING, "sft", "grpo", "geosd", "geosd_plain"):
        assert difference(0, name, "pi_0").mean() > 0 > difference(1, name, "pi_0").mean()


def test_the_door_s_counts_of_collapses_are_those_of_the_shipped_runs():
    of_kl = seen = 0
    for name in KL_MATCHING:
        of_kl += collapsed("miniature_transfer", name, "0.0001", SETTINGS, "test")[0]
        seen += collapsed("miniature_transfer", name, "0.0001", SETTINGS, "validation")[0]
    fallen, runs = collapsed("miniature_transfer", "geosd", "0.0001", SETTINGS, "test")
    line = finding("Largest rate, any conflict")
    assert f"collapses in {of_kl} of 120 runs, GeoSD in {fallen} of {runs} (" in line
    said = f"collapse in {of_kl} of 120 runs, and in {seen} by the endpoint on validation problems"
    assert said in page("docs/transfer.md")
    assert f"GeoSD in {fallen} of {runs}, and in none by that" in page("docs/transfer.md")
    assert collapsed("miniature_transfer", "geosd", "0.0001", SETTINGS, "validation")[0] == 0


def test_the_door_says_where_geosd_lies_below_in_the_second_world():
    line = finding("A second world")
    assert "GeoSD lies below forward KL ID, and at conflict 0 OOD" in line
    upper = {}
    for end, setting in ENDS.items():
        for benchmark in ("id", "ood_avg"):
            runs = accuracies(f"miniature_wide_{setting}", benchmark)
            lead = over_draws(runs["geosd"] - runs["fwdkl"])
            assert interval(lead) in page("docs/wide.md")
            upper[end, benchmark] = stats.ttest_1samp(lead, 0).confidence_interval(0.95).high
    below = {where for where, high in upper.items() if high < 0}
    assert below == {(0, "id"), (1, "id"), (0, "ood_avg")}


def test_the_door_s_differences_of_smollm2_are_those_of_the_shipped_runs():
    ood = accuracies("smollm2_rates", "ood_avg")
    lead = []
    for rate in ("1e-06", "3e-06", "1e-05"):
        of_rate = (f"{name}-learning_rate_{rate}" for name in ("geosd", "fwdkl"))
        a, b = (ood[name] for name in of_rate)
        lead.append(page_number((a - b).mean()))
    line = finding("SmolLM2")
    assert f"OOD is {lead[0]}, {lead[1]} and, where that collapses, {lead[2]} points (" in line
    fallen = sorted(ood["fwdkl-learning_rate_1e-05"])
    base = ood["pi_0"].mean()
    assert all(base - value >= 10 for value in fallen), "both seeds collapse"
    said = f"FwdKL to {fallen[0]:.0f} and {fallen[1]:.0f} % OOD"
    assert said in page("docs/smollm2.md")
    assert (ood["fwdkl-learning_rate_1e-05-teacher_fixed"] > base).all(), "with a live one alone"


@pytest.mark.parametrize(
    ("family", "names", "settings"),
    [
        (
            "miniature_transfer",
            ("fwdkl", "revkl", "jsd", "tropd", "grpo", "geosd", ("sft", "geosd_plain")),
            SETTINGS,
        ),
        ("miniature_parts", ("geosd_no_prox", "geosd_jsd", "geosd_adamw"), ("0", "100")),
    ],
)
def test_the_page_of_the_dial_counts_collapses_by_both_rules(family, names, settings):
    text = page("docs/transfer.md")
    kinds = {
        "test": "test problems, in or out of distribution",
        "validation": "ID validation problems",
    }
    found = 0
    for on, words in kinds.items():
        for label, rate in RATES.items():
            if rate == "0.0003":
                continue
            cells = []
            for name in names:
                together = (name,) if isinstance(name, str) else name
                counts = [collapsed(family, each, rate, settings, on)[0] for each in together]
                cells.append(str(sum(counts)))
            row = f"| {label}, {words} | {' | '.join(cells)} |"
            if rate == "1e-05" and row not in text:
                # A row without any collapse is left out, and only such a row.
                assert set(cells) == {"0"}, row
                continue
            assert row in text, row
            found += 1
    assert found >= 4
    both = [collapsed("miniature_transfer", "geosd", "0.0001", ("0", "100"), on) for on in kinds]
    assert both == [(5, 12), (0, 12)]
    assert "GeoSD itself collapses in 5 of its 12 runs at 10⁻⁴ at these two settings" in text


def test_jsd_for_hellinger_at_the_larger_rates_is_what_the_pages_say():
    transfer, miniature = page("docs/transfer.md"), page("docs/miniature.md")
    said = {}
    for end in ENDS:
        for benchmark in ("ood_avg", "id"):
            for rate in ("0.0001", "3e-05"):
                values = difference(end, "geosd_jsd", "geosd", benchmark, f"learning_rate_{rate}")
                said[end, benchmark, rate] = interval(values)
    first = said[1, "ood_avg", "0.0001"].replace(" [", " points [", 1)
    assert f"OOD {first} at 10⁻⁴ and {said[1, 'ood_avg', '3e-05']} at 3·10⁻⁵;" in transfer
    assert f"({said[1, 'id', '0.0001']} and {said[1, 'id', '3e-05']})" in transfer
    assert f"either: {said[0, 'ood_avg', '0.0001']} and {said[0, 'ood_avg', '3e-05']}." in transfer
    assert (
        f"OOD {said[1, 'ood_avg', '0.0001']} at 10⁻⁴ and {said[1, 'ood_avg', '3e-05']} at 3·10⁻⁵,"
        in miniature
    )


def ablation(end, variant, benchmark):
    """Differences from GeoSD: of miniature_ablation at 1, of the dial's runs at 0."""
    if end == 0:
        return difference(0, variant, "geosd", benchmark)
    runs = accuracies("miniature_ablation", benchmark)
    return over_draws(runs[variant] - runs["geosd"])


ABLATIONS = {
    "AdamW for K-FAC": "geosd_adamw",
    "no proximal term": "geosd_no_prox",
    "JSD for Hellinger": "geosd_jsd",
    "plain step": "geosd_plain",
}


def test_each_ablation_stands_at_both_ends():
    lines = page("docs/miniature.md").splitlines()
    for label, variant in ABLATIONS.items():
        cells = [
            interval(ablation(end, variant, benchmark))
            for benchmark in ("ood_avg", "id")
            for end in ENDS
        ]
        row = f"| {label} | {' | '.join(cells)} |"
        assert row in lines, row


def word(values, confidence=0.95):
    """The word of a claim that a difference is above 0."""
    low, high = stats.ttest_1samp(values, 0).confidence_interval(confidence)
    return "agrees" if low > 0 else "opposite" if high < 0 else "too small to tell"


def test_the_words_on_the_parts_are_those_of_their_intervals_at_each_end():
    """The paper has each part raise OOD accuracy; what takes its place is the lower one."""
    text = page("docs/miniature.md")
    words = {
        (label, end): word(-ablation(end, variant, "ood_avg"))
        for label, variant in ABLATIONS.items()
        for end in ENDS
    }
    said = {
        "AdamW for K-FAC": "agrees with the paper at conflict 1, and is opposite at conflict 0",
        "no proximal term": "too small to tell at conflict 1, and opposite at conflict 0",
        "JSD for Hellinger": "too small to tell at conflict 1 and at 0",
    }
    for label, sentence in said.items():
        at_1, at_0 = words[label, 1], words[label, 0]
        assert sentence in text
        first, _, second = sentence.partition(" at conflict 1")
        assert at_1 in first and at_0 in (second if at_0 != at_1 else first), label


def test_the_primary_claims_stand_at_both_ends():
    lines = page("docs/claims.md").splitlines()
    baselines = ("sft", "grpo", *KL_MATCHING)
    at_least = 1 - 0.05 / len(baselines)
    first, second, third = [], [], []
    for end in (0, 1):
        gain = difference(end, "geosd", "pi_0")
        first.append(f"{word(gain)}, {interval(gain)}")
        strongest = max(baselines, key=lambda name: difference(end, name, "pi_0").mean())
        lead = difference(end, "geosd", strongest)
        shown = interval(lead, at_least)
        label = {"jsd": "JSD", "grpo": "GRPO"}[strongest]
        second.append(f"{word(lead, at_least)}, {label}: {shown} at {100 * at_least:.2f} %")
        over_fwdkl = difference(end, "geosd", "fwdkl")
        third.append(f"{word(over_fwdkl)}, {interval(over_fwdkl)}")
    for label, cells in {
        "GeoSD − π₀": first,
        "GeoSD − the strongest baseline of the six there": second,
        "GeoSD − FwdKL": third,
    }.items():
        row = f"| {label} | {' | '.join(cells)} |"
        assert row in lines, row
        assert len({cell.partition(",")[0] for cell in cells}) == 2, "no word at both ends"


def drift(variant):
    return drifts("miniature_stepsize").groupby("variant").mean()[variant]


def test_the_speed_limit_is_that_of_the_shipped_drift():
    text = page("docs/miniature.md")
    windows = {}
    for label, rate in RATES.items():
        path = [drift(f"geosd-learning_rate_{rate}-steps_{at}") for at in (80, 120, 160, 200)]
        windows[rate] = [later - earlier for earlier, later in zip(path, path[1:], strict=False)]
        mean = (path[-1] - path[0]) / 6
        cells = [f"{value:.3f}" for value in (*path, mean)]
        assert f"| {label} | {' | '.join(cells)} |" in text
    ends = [drift(f"geosd-learning_rate_{rate}-steps_200") for rate in ("0.0001", "0.0003")]
    assert ends[1] < ends[0], "a larger rate adds nothing"
    assert " and ".join(f"{value:.3f}".lstrip("0") for value in ends) in text
    for rate in ("0.0001", "0.0003"):
        assert max(windows[rate]) < 1.1 * min(windows[rate]), "evenly"
    fwdkl = drift("fwdkl-learning_rate_0.0001-steps_200")
    assert f"ends {fwdkl:.2f} from π₀ at 10⁻⁴" in text


@pytest.mark.parametrize("strength", [0.25, 1.0, 4.0])
def test_hellinger_with_the_proximal_term_stops_at_that_share_of_the_way(strength):
    """D_H + λ d_FR² on the arc between a checkpoint and a near teacher, searched on a grid."""
    angle = 0.02  # half the Fisher-Rao distance, between square roots of probabilities
    share = np.linspace(0, 1, 200_001)
    hellinger = 1 - np.cos(angle * (1 - share))
    loss = hellinger + strength * (2 * angle * share) ** 2
    assert share[loss.argmin()] == pytest.approx(1 / (1 + 8 * strength), abs=2e-4)
    assert "1/(1 + 8λ)" in page("docs/miniature.md")


def test_the_counts_of_words_leave_out_costs_and_what_holds_by_construction():
    ledger = pd.read_csv(FIGURES / "miniature_all/claims_all.csv")
    counted = ledger[~ledger["part"].isin(["by construction", "computed"])]
    of_all = counted["model"] == "all models"
    order = ["agrees", "opposite", "too small to tell"]
    over_all = counted[of_all]["word"].value_counts()[order]
    of_one = counted[~of_all]["word"].value_counts()[order]
    text = page("docs/miniature.md")
    assert "{} agree, {} are opposite and {} are too small to tell;".format(*over_all) in text
    assert "the nine on costs, {}, {} and {}, and".format(*of_one) in text
    assert (ledger["part"] == "computed").sum() == 9
