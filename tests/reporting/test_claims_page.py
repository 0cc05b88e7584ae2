"""The ledger as people read it."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from geosd.claims.computed_costs import computed_costs
from geosd.claims.evidence import Evidence
from geosd.claims.judging import judge_claims, without_words
from geosd.claims.ledger import ledger
from geosd.claims.word import ALL_MODELS, COSTS, NOT_JUDGED, WORDS, Finding
from geosd.costs.update_operations import UpdateSize
from geosd.reporting.claims_page import (
    interval_words,
    ledger_frame,
    ledger_markdown,
    word_counts,
    write_ledger,
)
from geosd.scores.tidy import COLUMNS

QUICK = ("pi_0", "fwdkl", "revkl", "grpo", "geosd")


def findings(make, **changes):
    drift = pd.DataFrame(
        [("mini-qwen3", v, s, 0, "drift/pi_0", 0.1 * i + 0.01 * s)
         for i, v in enumerate(("geosd", "revkl", "fwdkl", "grpo")) for s in range(3)],
        columns=list(COLUMNS["drift"]),
    )  # fmt: skip
    return judge_claims(ledger(), Evidence(make(variants=QUICK, **changes), drift))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_claim_stands_once_with_its_word(make):
    found = findings(make)
    text = ledger_markdown(found, "quick")
    exercised = [f for f in found if f.exercised]
    assert 10 <= len(exercised) < len(found)
    for finding in found:
        where = f"| {finding.claim.id} " if finding.exercised else f"`{finding.claim.id}`"
        assert text.count(where) == 1, finding.claim.id
        if finding.exercised:
            line = next(line for line in text.splitlines() if line.startswith(where))
            assert cells(line)[1] == finding.word


def test_the_primary_claims_come_first_then_the_counts_of_the_four_words(make):
    found = findings(make)
    text = ledger_markdown(found, "quick")
    places = [text.index(title) for title in ("## The primary", "## How many", "## The other")]
    assert places == sorted(places)
    counts = word_counts(ledger_frame(found))
    assert list(counts) == list(WORDS)
    counted = [f for f in found if f.part == "other" and f.model == "mini-qwen3"]
    for word in WORDS:
        assert counts.loc["mini-qwen3", word] == sum(f.word == word for f in counted)
    head = text.split("## How many other rows have each word")[1].strip().splitlines()
    assert cells(head[0]) == ["model", *WORDS]


def test_the_row_over_all_models_is_first_and_names_the_claim(make):
    scores = make(models=("mini-qwen3", "mini-olmo3"), variants=QUICK, seeds=4)
    main = [claim for claim in ledger() if claim.id == "geosd-id-gain"]
    found = judge_claims(main, Evidence(scores.assign(draw=scores["seed"] % 2)))
    assert [f.model for f in found] == [ALL_MODELS, "mini-qwen3", "mini-olmo3"]
    rows = ledger_markdown(found, "two").split("## The other claims")[1].splitlines()
    table = [cells(line) for line in rows if line.startswith("|")][2:]
    assert [row[:2] for row in table] == [
        ["geosd-id-gain", ALL_MODELS], ["", "mini-qwen3"], ["", "mini-olmo3"],
    ]  # fmt: skip


def test_what_holds_by_construction_stands_apart_with_its_reason_and_is_not_counted():
    mismatch = replace(found_by_construction(), model="mini-qwen3")
    text = ledger_markdown([mismatch], "quick")
    apart = text.split("## Claims that hold by construction")[1]
    assert "| mismatch-is-no-tail " in apart and "kept only if 10 to 100 %" in " ".join(
        apart.split()
    )
    assert word_counts(ledger_frame([mismatch])).empty
    elsewhere = replace(mismatch, model="smollm2-135m")
    assert elsewhere.part == "other" and len(word_counts(ledger_frame([elsewhere]))) == 1


def found_by_construction():
    claim = next(claim for claim in ledger() if claim.id == "mismatch-is-no-tail")
    bounds = {"claimed_from": 5.0, "claimed_to": math.inf}
    return Finding(claim, "m", "pi_0 > 5", "mismatch", 16.0, 15.0, 17.0, 0.95, **bounds, n_a=9)


def test_a_study_that_is_not_meant_for_it_has_the_estimates_alone(make):
    judged = findings(make)
    found = without_words(judged)
    assert [f.effect for f in found] == pytest.approx([f.effect for f in judged], nan_ok=True)
    text = ledger_markdown(found, "quick")
    assert "not meant to judge" in text.splitlines()[2]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    printed = {cell.strip(" *") for row in rows for cell in row.split("|")}
    assert not {"agrees", "opposite", "too small to tell"} & printed
    head = text.split("## The other claims")[1].split("\n| claim ")[1].splitlines()[0]
    assert cells("claim " + head) == ["claim", "effect", "interval", "paper", "in interval", "n"]
    assert set(ledger_frame(found)["word"]) == {"not exercised", NOT_JUDGED}


def test_costs_are_computed_and_counted_apart(make):
    costs = computed_costs(UpdateSize(8, 4096), 1024, 16, 0.125)
    main = [claim for claim in ledger() if claim.computed]
    found = judge_claims(main, Evidence(make(variants=("pi_0",)), costs=costs))
    text = ledger_markdown(found, None)
    assert "## Costs, computed" in text and "| cost-memory " in text
    counts = word_counts(ledger_frame(found)).loc[COSTS]
    assert counts["agrees"] >= 7 and counts["agrees"] + counts["opposite"] == len(main)


def test_an_interval_has_the_decimals_that_show_what_it_decides():
    row = {"unit": "points", "claimed_from": 0.0, "claimed_to": math.inf, "paper_effect": math.nan}
    assert interval_words({**row, "effect": 1.0, "low": 0.04, "high": 2.0})[1] == "[+0.04, +2.00]"
    assert interval_words({**row, "effect": 1.0, "low": 0.14, "high": 2.0})[1] == "[+0.1, +2.0]"
    near = {**row, "paper_effect": 2.0, "effect": 1.0, "low": 0.14, "high": 1.96}
    assert interval_words(near) == ("+1.00", "[+0.14, +1.96]")


def test_lines_fit_a_terminal_and_tables_are_aligned(make):
    lines = ledger_markdown(findings(make), "quick").splitlines()
    assert max(map(len, lines)) <= 140
    tables = "\n".join(lines).split("\n\n")
    for table in (table.splitlines() for table in tables if table.startswith("|")):
        assert len({len(line) for line in table}) == 1


def test_claims_that_are_not_exercised_say_what_they_need(make):
    text = ledger_markdown(findings(make), "quick")
    listed = text.split("## Not exercised")[1]
    sentences = " ".join(listed.split())
    assert "kind privilege has what these need: `privilege-kl-declines`, " in sentences
    assert "which no rule measures: `cost-wall-clock`." in sentences


@pytest.mark.slow
def test_a_claim_that_the_study_is_designed_for_says_what_is_missing(make):
    text = ledger_markdown(findings(make), "miniature", "main")
    listed = text.split("## Not exercised")[1]
    assert "- needs tropd, tip: `filtering-gain`, " in " ".join(listed.split())


def test_csv_has_a_row_per_claim_and_model_at_full_precision(make, tmp_path):
    claims = [c for c in ledger() if c.primary or c.study_kind == "ladder" or c.unmeasured]
    found = judge_claims(claims, Evidence(make(models=("mini-qwen3", "mini-olmo3"))))
    write_ledger(found, "quick", tmp_path, "main")
    table = pd.read_csv(tmp_path / "claims.csv")
    assert len(table) == 2 * 3 + (len(claims) - 3)
    assert table["effect"].iloc[0] == found[0].effect
    assert set(table["word"]) <= set(WORDS)
    assert (tmp_path / "claims.md").read_text() == ledger_markdown(found, "quick", "main")


def test_a_study_of_single_runs_decides_nothing_and_says_why(make):
    found = findings(make, seeds=1)
    assert {f.word for f in found} == {"too small to tell", "not exercised"}
    assert "a single run has no interval" in " ".join(ledger_markdown(found, "quick").split())
