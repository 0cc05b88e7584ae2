"""The printed interval decides: a word is agrees or opposite if and only if it holds no margin."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geosd.claims.claim import Claim, claim_near
from geosd.claims.computed_costs import ComputedNumber
from geosd.claims.evidence import Evidence
from geosd.claims.finding import WORDS
from geosd.claims.judging import judge_claims
from geosd.claims.metrics import ID, accuracy_metric, gain_metric, strongest_metric
from geosd.reporting.claims_numbers import numbers_of_interval
from geosd.reporting.claims_page import claims_page_frame, claims_page_markdown
from geosd.scores.tidy import COLUMNS

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(
    file
    for shipped in ROOT.glob("figures/*/shipped.json")
    for file in shipped.parent.glob("claims*.csv")
)
NAMES = ("pi_0", "geosd", "fwdkl", "tip")


def check(row: dict, markdown: str) -> str:
    """Hold one row of a ledger to the rule, by its printed interval; the word that it has."""
    word, (effect, interval) = row["word"], numbers_of_interval(row)
    ends = [float(end) for end in re.findall(r"[-+][\d.]+", interval)]
    claimed = [float(row[name] or "nan") for name in ("claimed_from", "claimed_to")]
    margins = [end for end in claimed if math.isfinite(end)]
    if not ends:  # nothing is known, so nothing is decided
        expected = "not exercised" if row["effect"] == "" else "too small to tell"
        assert word == expected, row
        return word
    low, high = ends
    decided = not any(low <= margin <= high for margin in margins)
    assert (word in ("agrees", "opposite")) == decided, row
    if decided:
        middle = (low + high) / 2
        assert (word == "agrees") == (claimed[0] < middle < claimed[1]), row
    if row["part"] != "computed":
        assert interval in markdown and effect in markdown
        paper = float(row["paper_effect"] or "nan")
        held = "no number" if math.isnan(paper) else "yes" if low <= paper <= high else "no"
        assert row["holds_paper"] == held, row
    return word


def as_text(table: pd.DataFrame, path: Path) -> list[dict]:
    table.to_csv(path, index=False)
    return rows_of(path)


def rows_of(path: Path) -> list[dict]:
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.astype({"n_a": int, "n_b": int, "units": int}).to_dict("records")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_row_has_the_word_of_its_printed_interval(path):
    rows = rows_of(path)
    words = {check(row, path.with_suffix(".md").read_text()) for row in rows}
    assert len(SHIPPED) >= 8 and words <= set(WORDS) and len(words) >= 3


CLAIMS = [
    Claim(
        "up", "", "", "", "main", [accuracy_metric("geosd") > accuracy_metric("pi_0")], primary=True
    ),
    Claim(
        "down", "", "", "", "main", [accuracy_metric("fwdkl", ID) < accuracy_metric("pi_0", ID) + 1]
    ),
    Claim(
        "near",
        "",
        "",
        "",
        "main",
        [claim_near(accuracy_metric("tip"), accuracy_metric("pi_0"), within=2.5)],
    ),
    Claim(
        "best",
        "",
        "",
        "",
        "main",
        [accuracy_metric("geosd") > accuracy_metric(v) for v in ("fwdkl", "tip")],
    ),
    Claim(
        "lead", "", "", "", "main", [accuracy_metric("geosd") > strongest_metric(("fwdkl", "tip"))]
    ),
    Claim(
        "part",
        "",
        "",
        "",
        "main",
        [gain_metric("tip") < 0.5 * gain_metric("geosd"), gain_metric("geosd") > 0],
    ),
    Claim("absent", "", "", "", "main", [accuracy_metric("sft") > 5]),
    Claim("cost", "", "", "", "main", computed=[ComputedNumber("ratio", "1.27")]),
]


def study(draw: np.random.Generator) -> Evidence:
    """A study of random effects, spreads, numbers of runs, draws and models."""
    rows = []
    seeds, draws = draw.integers(1, 7), draw.integers(1, 4)
    spread = draw.choice([0.0, 0.3, 3.0, 30.0])
    for model in ("mini-qwen3", "mini-olmo3")[: draw.integers(1, 3)]:
        for variant in NAMES:
            for benchmark, split in (("id", "ID"), ("ood_avg", "OOD")):
                centre = 50 + draw.choice([0, 0.04, 1, 2.5, 8.6]) * draw.choice([-1, 1])
                for seed in range(seeds):
                    value = float(np.clip(centre + spread * draw.normal(), 0, 100))
                    head = (model, variant, seed, seed % draws, benchmark, split)
                    rows.append((*head, "avg@k", 16, value))
    costs = {"ratio": float(draw.uniform(1.2, 1.3))}
    return Evidence(pd.DataFrame(rows, columns=list(COLUMNS["scores"])), costs=costs)


def test_every_row_of_random_studies_has_the_word_of_its_printed_interval(tmp_path):
    draw = np.random.default_rng(5)
    words: Counter[str] = Counter()
    for _ in range(6):
        found = judge_claims(CLAIMS, study(draw))
        markdown = claims_page_markdown(found, "random")
        rows = as_text(claims_page_frame(found), tmp_path / "claims.csv")
        words.update(check(row, markdown) for row in rows)
    assert set(words) == set(WORDS) and min(words.values()) >= 3
