"""Every transcribed number is the paper's, and the paper's tables agree with each other."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from geosd.claims.published import published, published_family, published_number
from geosd.scores.statistics import GroupStatistics, hedges_g, holm, welch

FAMILIES = ("Qwen3-8B", "Olmo-3-7B-Think", "DS-R1-Llama-8B")
ROWS = ("pi_0", "sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd")
LABELS = (r"$\pi_0$", "SFT", "GRPO", "FwdKL", "RevKL", "JSD", "SkewKL", "TrOPD", "TIP")
BENCHMARKS = ("aime24", "aime25", "amc23", "math500")
ROUNDING = 0.05  # half a unit of the last digit of the means and deviations
RUNS = list(itertools.product(FAMILIES, ROWS))


def body(table, label):
    rows = [row for row in table(label) if row[0] in LABELS or row[0].startswith(r"\method")]
    assert [name for name, _ in rows][:-1] == list(LABELS)
    return [cells for _, cells in rows]


def test_every_number_of_the_main_table_is_the_papers(table):
    for variant, cells in zip(ROWS, body(table, "tab:main_id_ood"), strict=True):
        assert len(cells) == 9
        for i, name in enumerate(FAMILIES):
            transcribed = published()["main_id_ood"]["families"][name][variant]
            assert [transcribed["id"], transcribed["ood_avg"]] == cells[3 * i : 3 * i + 2]
            delta = [] if transcribed["delta_ood"] is None else [transcribed["delta_ood"]]
            assert delta == cells[3 * i + 2]


def test_every_number_of_the_benchmark_table_is_the_papers(table):
    for variant, cells in zip(ROWS, body(table, "tab:ood_per_bench"), strict=True):
        assert len(cells) == 12
        for i, name in enumerate(FAMILIES):
            transcribed = published()["ood_per_bench"]["families"][name][variant]
            assert [transcribed[b] for b in BENCHMARKS] == cells[4 * i : 4 * i + 4]


def test_every_number_of_the_ablation_table_is_the_papers(table):
    rows = [cells for _, cells in table("tab:ablation")][1:]  # the header holds pass@16
    variants = published()["ablation"]["families"]["Qwen3-8B"]
    assert list(variants) == ["geosd", "geosd_jsd", "geosd_no_prox", "geosd_adamw"]
    for transcribed, cells in zip(variants.values(), rows, strict=True):
        assert [[] if v is None else [v] for v in transcribed.values()] == cells


def test_every_number_of_the_significance_table_is_the_papers(table):
    rows = dict(table("tab:sig"))
    names = {"tropd": "TrOPD", "tip": "TIP"}
    for name, transcribed in published()["significance"]["families"].items():
        cells = rows[name]
        assert cells[0] == [transcribed["geosd"]]
        assert cells[1] == [transcribed["baseline_mean"]]
        assert cells[2] == [transcribed["difference"], transcribed["low"], transcribed["high"]]
        assert cells[3] == [transcribed["g"]]
        assert cells[4] == pytest.approx([transcribed["p_holm"]], rel=1e-6)
        assert transcribed["baseline"] in names


def test_every_number_of_the_text_stands_in_its_sentence(paper_prose):
    for entry in published()["text"]:
        assert entry["text"] in paper_prose, entry["key"]
        printed = f"{entry['value']:g}"
        assert printed in entry["text"] or f"{entry['value']:.2f}" in entry["text"], entry["key"]


@pytest.mark.parametrize(("name", "variant"), RUNS)
def test_ood_averages_are_the_means_of_the_benchmarks_within_rounding(name, variant):
    cells = published()["ood_per_bench"]["families"][name][variant]
    mean = sum(cells[b][0] for b in BENCHMARKS) / 4
    # Four addends rounded to .1 move their mean by at most .05, and so does rounding the mean.
    assert published_number(name, variant, "ood_avg").mean == pytest.approx(mean, abs=0.1 + 1e-9)


@pytest.mark.parametrize(("name", "variant"), RUNS)
def test_deviations_of_ood_averages_are_possible_for_those_of_the_benchmarks(name, variant):
    cells = published()["ood_per_bench"]["families"][name][variant]
    sds = [cells[b][1] for b in BENCHMARKS]
    # |sd(mean)| lies between perfect correlation and the best possible cancellation.
    low, high = max(0, 2 * max(sds) - sum(sds)) / 4, sum(sds) / 4
    assert low - 0.1 <= published_number(name, variant, "ood_avg").sd <= high + 0.1


def test_ood_changes_are_differences_of_ood_averages():
    for name, variant in RUNS:
        row = published()["main_id_ood"]["families"][name]
        if variant != "pi_0":
            change = row[variant]["ood_avg"][0] - row["pi_0"]["ood_avg"][0]
            assert row[variant]["delta_ood"] == pytest.approx(change, abs=0.1 + 1e-9)
    ablation = published()["ablation"]["families"]["Qwen3-8B"]
    for variant in ("geosd_jsd", "geosd_no_prox", "geosd_adamw"):
        change = ablation[variant]["ood_avg"] - ablation["geosd"]["ood_avg"]
        assert ablation[variant]["delta_ood"] == pytest.approx(change, abs=0.1 + 1e-9)


def test_the_ablations_full_method_is_the_main_tables():
    full = published()["ablation"]["families"]["Qwen3-8B"]["geosd"]
    main = published()["main_id_ood"]["families"]["Qwen3-8B"]["geosd"]
    assert (full["id"], full["ood_avg"]) == (main["id"][0], main["ood_avg"][0])


def test_the_significance_table_compares_with_the_strongest_baseline():
    for name, row in published()["significance"]["families"].items():
        cells = published()["main_id_ood"]["families"][name]
        best = max((v for v in ROWS if v != "geosd"), key=lambda v: cells[v]["ood_avg"][0])
        assert (row["baseline"], row["baseline_mean"]) == (best, cells[best]["ood_avg"][0])


@dataclass(frozen=True)
class Recomputed:
    """One row of the paper's significance table, from its published means and deviations.

    `values` holds each quantity from the inputs as printed; `span` the smallest and the largest
    over all inputs that are printed the same: moved by up to half a unit of the last digit.
    """

    family: str
    values: dict[str, float]
    span: dict[str, tuple[float, float]]


def recompute_significance(steps: int = 5) -> list[Recomputed]:
    """Rows of Table sig, on a grid of `steps` points an input over its rounding, ends included.

    The quantities are monotone in the means, and in practice in the deviations. The span of p takes
    the factor of Holm that the family's rank gives it with the inputs as printed.
    """
    main, printed = published()["main_id_ood"], published()["significance"]
    pairs = {}
    for name, row in printed["families"].items():
        cells = main["families"][name]
        pairs[name] = (cells["geosd"]["ood_avg"], cells[row["baseline"]]["ood_avg"])
    n = printed["n"]
    nominal = {name: _row(*a, *b, n) for name, (a, b) in pairs.items()}
    adjusted = holm([row["p_holm"] for row in nominal.values()])
    offsets = [ROUNDING * (2 * i / (steps - 1) - 1) for i in range(steps)]
    recomputed = []
    for (name, row), p in zip(nominal.items(), adjusted, strict=True):
        factor = p / row["p_holm"]
        (ma, sa), (mb, sb) = pairs[name]
        # Only the difference of the means matters, so their two offsets are one of twice the size.
        grid = [
            _row(ma + 2 * dm, sa + da, mb, sb + db, n)
            for dm, da, db in itertools.product(offsets, repeat=3)
        ]
        span = {key: (min(r[key] for r in grid), max(r[key] for r in grid)) for key in row}
        span["p_holm"] = (factor * span["p_holm"][0], factor * span["p_holm"][1])
        recomputed.append(Recomputed(name, {**row, "p_holm": p}, span))
    return recomputed


def _row(mean_a: float, sd_a: float, mean_b: float, sd_b: float, n: int) -> dict[str, float]:
    a, b = GroupStatistics(mean_a, sd_a, n), GroupStatistics(mean_b, sd_b, n)
    test = welch(a, b)
    return {
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
        "g": hedges_g(a, b),
        "p_holm": test.p,
    }


@pytest.mark.parametrize("row", recompute_significance(), ids=lambda row: row.family)
def test_the_significance_table_follows_from_the_printed_means_and_deviations(row):
    printed = published()["significance"]["families"][row.family]
    half = {"difference": 0.05, "low": 0.05, "high": 0.05, "g": 0.05, "p_holm": 0.05e-9}
    for key, (low, high) in row.span.items():
        slack = 0.05 * printed[key] if key == "p_holm" else half[key]
        assert low - slack <= printed[key] <= high + slack, key


def test_the_significance_check_can_fail():
    # Each span must be far from covering everything: the printed value doubled is outside.
    for row in recompute_significance():
        for key in ("difference", "low", "high", "g"):
            assert not row.span[key][0] <= 2 * row.values[key] <= row.span[key][1]
        assert row.span["p_holm"][1] < 100 * row.span["p_holm"][0]


def test_what_the_paper_does_not_have_is_none():
    assert published_number("Qwen3-8B", "geosd", "long") is None
    assert published_number("Qwen3-8B", "fwdkl", "ood_avg", "pass@k") is None
    assert published_number("Olmo-3-7B-Think", "geosd", "ood_avg", "pass@k") is None
    assert published_number(None, "geosd", "id") is None
    assert published_number("Qwen3-8B", "geosd", "ood_avg", "pass@k").mean == 66.1
    assert published_number("Qwen3-8B", "geosd_adamw", "any", "drift/pi_0").mean == 0.25
    assert (
        published_family("mini-llama") == "DS-R1-Llama-8B"
        and published_family("unheard-of") is None
    )
