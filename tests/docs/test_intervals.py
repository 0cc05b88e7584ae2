"""An effect has one interval on every shipped page: that of its base models, or its level is said.

The pages' numbers are compared with numpy's and scipy's of the tidy tables that the studies ship.
"""

import itertools
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from shipped_studies import tidy_table

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"
SHIPPED = sorted(
    path.parent for path in FIGURES.glob("*/shipped.json") if path.parent.name != "quick"
)
DIAL = ("miniature_transfer_0", "miniature_transfer_100")
DIAL_WITH_PARTS = tuple((study, study.replace("transfer", "parts")) for study in DIAL)
"""Studies whose runs are compared with one another."""
PAGES = {
    "README.md": ("miniature", *DIAL),
    "docs/miniature.md": (
        *("miniature", "miniature_ablation", "miniature_privilege", "miniature_ladder"),
        *("miniature_stepsize", "miniature_parts_100", *DIAL_WITH_PARTS),
    ),
    "docs/wide.md": ("miniature_wide_0", "miniature_wide_100"),
    "docs/transfer.md": (
        *(f"miniature_transfer_{at}" for at in (0, 25, 50, 75, 100)),
        *DIAL_WITH_PARTS,
    ),
    "docs/claims.md": DIAL,
}
"""Pages written by hand -> the studies, or studies together, that they print effects of."""
SOME_DRAWS = {"docs/wide.md": (0, 1, 4)}
"""Pages that print effects over some draws, too."""
NOT_SHIPPED = {"docs/miniature.md": {("-9.5", "-17.0", "-2.0")}}
"""Effects of runs that are no longer shipped, as their page says."""
NUMBER = r"[-+−]?\d*\.\d+"
INTERVAL = re.compile(
    rf"(?<![\d.])({NUMBER})(?: (?:percentage )?points?)?(?: OOD| ID)? ?"
    rf"\[({NUMBER}), ({NUMBER})\](?: at (\d+(?:\.\d+)?) %)?"
)
USUAL = 95.0


def tidied(number):
    """A printed number without a plus, a typographic minus or a negative zero."""
    text = number.replace("−", "-").removeprefix("+")
    return "0.0" if text == "-0.0" else text


def printed(*numbers):
    return tuple(tidied(f"{number:.1f}") for number in numbers)


def base_model_accuracies(study):
    """Accuracies [base model, variant] in and out of distribution, models as first level."""
    tables = []
    for name in [study] if isinstance(study, str) else study:
        tables.append(tidy_table(name, "scores"))
    scores = pd.concat(tables).query("metric == 'avg@k'").drop_duplicates()
    unit = ["draw"] if scores["draw"].nunique() > 1 else ["seed"]
    for benchmark in ("id", "ood_avg"):
        rows = scores[scores["benchmark"] == benchmark]
        runs = rows.pivot(index=["model", "draw", "seed"], columns="variant", values="value")
        yield benchmark, runs, unit


def effects(study, draws=None):
    """Each pair of variants -> its effects and 95 % intervals, as printed, on models and on all."""
    found = defaultdict(set)
    for benchmark, runs, unit in base_model_accuracies(study):
        if draws is not None:
            runs = runs[runs.index.get_level_values("draw").isin(draws)]
        values = runs.groupby(level=["model", *unit], sort=False).mean()
        models = values.index.get_level_values("model")
        samples = {model: values[models == model] for model in dict.fromkeys(models)}
        if len(samples) > 1 and unit == ["draw"]:
            samples["all models"] = values
        for model, sample in samples.items():
            complete = sample.dropna(axis="columns")
            names, table = list(complete), complete.to_numpy()
            n = len(table)
            differences = table[:, :, None] - table[:, None, :]
            mean, spread = differences.mean(0), differences.std(0, ddof=1)
            half = stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n)
            for i, j in itertools.permutations(range(len(names)), 2):
                ends = (mean[i, j], mean[i, j] - half[i, j], mean[i, j] + half[i, j])
                found[benchmark, model, names[i], names[j]].add(printed(*ends))
    return found


def intervals_of(text):
    """Effect and ends of each interval of 95 % that a page prints with one decimal."""
    for effect, low, high, level in INTERVAL.findall(text):
        if not level and all(len(n.partition(".")[2]) == 1 for n in (effect, low, high)):
            yield tidied(effect), tidied(low), tidied(high)


@pytest.mark.parametrize("page", PAGES)
def test_an_interval_on_a_page_is_that_of_the_shipped_runs(page):
    known = set(NOT_SHIPPED.get(page, ()))
    for study, draws in itertools.product(PAGES[page], {None, SOME_DRAWS.get(page)}):
        known |= {each for of in effects(study, draws).values() for each in of}
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [*intervals_of(text)]
    assert len(found) >= {"README.md": 1, "docs/claims.md": 4}.get(page, 8)
    assert not [each for each in found if each not in known]


def test_the_headline_is_the_ledger_s_on_each_page():
    """GeoSD − FwdKL at one rate, over all families: its ends are those of the claim."""
    ledger = pd.read_csv(FIGURES / "miniature_all/claims_all.csv")
    rows = ledger[(ledger["claim"] == "geosd-above-fwdkl-at-one-rate")]
    (row,) = rows[rows["model"] == "all models"].to_dict("records")
    expected = printed(row["effect"], row["low"], row["high"])
    assert row["confidence"] == 0.95
    names = ("README.md", "docs/miniature.md", "figures/miniature/claims.md")
    for name in (*names, "figures/miniature_all/claims_all.md", "docs/results/miniature.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        same = {each for each in intervals_of(text) if each[0] == expected[0]}
        assert expected in same, name
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {each for each in intervals_of(text) if each[0] == expected[0]} == {expected}


def ledger_tables(text):
    """Rows of the tables of a page that have a column `quantity`, each a dict by heading."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *lines = (
            [c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()
        )
        if "quantity" in head:
            yield from (dict(zip(head, line, strict=True)) for line in lines)


OWN = re.compile(r" \((?P<quantity>[^()]*(?:\([^()]*\)[^()]*)*)\)$")


def test_a_quantity_of_a_ledger_has_the_same_digits_on_every_page():
    digits = defaultdict(set)
    count = 0
    for folder in SHIPPED:
        for name in ("claims.md", "claims_all.md"):
            if not (folder / name).exists():
                continue
            text = (folder / name).read_text(encoding="utf-8")
            # The part before the first study is of the main one.
            parts = re.split(r"^### Study (\w+)$", text, flags=re.M)
            studies = [folder.name.removesuffix("_all"), *parts[1::2]]
            for study, part in zip(studies, parts[::2], strict=True):
                (model,) = re.findall(r"^Model: (.*)\.$", part, re.M)[:1] or [None]
                for row in ledger_tables(part):
                    for heading in row.keys() - {"word", "claim", "quantity", "paper", "n"}:
                        cell, own = row[heading], OWN.search(row[heading])
                        quantity = own["quantity"] if own else row["quantity"]
                        for effect, low, high, level in INTERVAL.findall(cell):
                            count += 1
                            of = (study, model if heading == "effect" else heading)
                            key = (*of, quantity, level or USUAL)
                            digits[key].add(tuple(map(float, map(tidied, (effect, low, high)))))
    assert count > 250
    assert not {key: seen for key, seen in digits.items() if not agree(seen)}


def agree(seen):
    """Whether intervals are one, some of them with more decimals where these decide a word."""
    return all(max(ends) - min(ends) <= 0.051 for ends in zip(*seen, strict=True))


def test_each_ledger_row_says_its_quantity():
    shown = pd.read_csv(FIGURES / "miniature_all/claims_all.csv").query("word != 'not exercised'")
    text = (FIGURES / "miniature_all/claims_all.md").read_text(encoding="utf-8")
    rows = {row["claim"]: row for row in ledger_tables(text)}
    of_claim = shown[~shown["unit"].isna()].drop_duplicates("claim")
    assert len(of_claim) > 60
    for claim in of_claim.to_dict("records"):
        quantity = rows[claim["statement"]]["quantity"]
        assert claim["metric"].partition("_states")[0] in quantity or "gradient" in quantity
    weakest = "Without the proximal term OOD accuracy is the lowest of the ablations, and pass@16"
    (row,) = (row for claim, row in rows.items() if claim.startswith(weakest))
    assert row["quantity"] == "OOD pass@k: geosd_no_prox - geosd"


def test_the_table_of_significance_has_the_interval_of_the_ledger():
    text = (FIGURES / "miniature/table_significance.md").read_text(encoding="utf-8")
    known = effects("miniature")
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()]
    rows = [row for row in rows if row and row[0].startswith("mini-")]
    assert len(rows) == 3
    for model, _, _, baseline, _, *ends in rows:
        rival = {"π₀": "pi_0"}.get(baseline, baseline.lower())
        (expected,) = known["ood_avg", model, "geosd", rival]
        assert tuple(map(tidied, ends[:3])) == expected
