"""The ledger as people read it."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

from geosd.claims.computed_costs import computed_costs
from geosd.claims.evidence import Evidence
from geosd.claims.finding import ALL_MODELS, VERDICTS
from geosd.claims.ledger import ledger
from geosd.claims.verdicts import judge_claims, without_verdicts
from geosd.costs.update_operations import UpdateSize
from geosd.reporting.claims_page import (
    ledger_frame,
    ledger_markdown,
    verdict_counts,
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


def test_every_claim_stands_once_with_its_verdict(make):
    found = findings(make)
    text = ledger_markdown(found, "quick")
    tested = [f for f in found if f.verdict != "not tested"]
    assert 12 <= len(tested) < len(found)
    for finding in found:
        where = f"| {finding.claim.id} " if finding in tested else f"`{finding.claim.id}`"
        assert text.count(where) == 1, finding.claim.id
    for verdict in VERDICTS:
        count = sum(f.verdict == verdict for f in found if not f.claim.computed)
        assert f"{count} {verdict}" in text.splitlines()[2]


def test_a_study_that_is_not_meant_for_verdicts_has_the_estimates_alone(make):
    judged = findings(make)
    found = without_verdicts(judged)
    assert [f.effect for f in found] == pytest.approx([f.effect for f in judged], nan_ok=True)
    text = ledger_markdown(found, "quick")
    assert "not meant for verdicts" in text.splitlines()[2]
    assert not {"reproduced", "undetermined", "undecidable"} & set(re.findall(r"\w+", text))
    head = next(line for line in text.splitlines() if line.startswith("| claim "))
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        *("claim", "effect", "interval", "detects", "n", "paper")
    ]
    counts = verdict_counts(ledger_frame(found)).loc["mini-qwen3"]
    assert list(counts.index) == ["not tested", "not judged"]
    assert math.isnan(ledger_frame(found)["p_for"].max())


@pytest.mark.slow
def test_counts_are_of_one_model_of_all_models_and_of_arithmetic(make):
    main = [claim for claim in ledger() if claim.study_kind == "main"]
    costs = computed_costs(UpdateSize(8, 4096), 1024, 16, 0.125)
    scores = make(models=("mini-qwen3", "mini-olmo3"), seeds=4)
    found = judge_claims(main, Evidence(scores.assign(draw=scores["seed"] % 2), costs=costs))
    text = " ".join(ledger_markdown(found, None).split())
    of_runs = [f for f in found if not f.claim.computed]
    for head, rows in (
        ("paper's claims ", [f for f in of_runs if f.model != ALL_MODELS]),
        ("All models together: ", [f for f in of_runs if f.model == ALL_MODELS]),
    ):
        counts = [f"{sum(f.verdict == v for f in rows)} {v}" for v in VERDICTS]
        detects = np.nanmedian([f.detectable for f in rows])  # all are in points here
        words = f"{', '.join(counts)}; median smallest detectable effect {detects:.1f} points."
        assert head + words in text
    agree = sum(f.verdict == "agrees" for f in found)
    assert agree >= 7 and f"Arithmetic: {agree} agrees, " in text


@pytest.mark.slow
def test_several_draws_have_their_spread_beside_the_effect(make):
    table = make(variants=QUICK, seeds=6)
    undrawn = ledger_markdown(judge_claims(ledger(), Evidence(table)), "quick")
    drawn = judge_claims(ledger(), Evidence(table.assign(draw=table["seed"] % 3)))
    text = ledger_markdown(drawn, "quick")
    gain = next(f for f in drawn if f.claim.id == "geosd-ood-gain")
    [line] = [line for line in text.splitlines() if line.startswith("| geosd-ood-gain ")]
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[6] == f"{gain.draw_sd:.1f}" and cells[8] == "6/3"
    assert "| draws |" in text and "| draws |" not in undrawn


def test_lines_fit_a_terminal_and_tables_are_aligned(make):
    lines = ledger_markdown(findings(make), "quick").splitlines()
    assert max(map(len, lines)) <= 120
    assert len({len(line) for line in lines if line.startswith("|")}) == 1


def test_not_tested_claims_say_what_they_need(make):
    text = ledger_markdown(findings(make), "quick")
    listed = text.split("## Not tested in this study")[1]
    sentences = " ".join(listed.split())
    assert "kind privilege has what these need: `privilege-kl-declines`, " in sentences
    assert "which no rule measures: `cost-wall-clock`." in sentences


@pytest.mark.slow
def test_a_claim_that_the_study_is_designed_for_says_what_is_missing(make):
    text = ledger_markdown(findings(make), "miniature", "main")
    listed = text.split("## Not tested in this study")[1]
    assert "- needs tropd, tip: `filtering-gain`, " in " ".join(listed.split())


@pytest.mark.slow
def test_csv_has_a_row_per_claim_and_model_at_full_precision(make, tmp_path):
    models = ("mini-qwen3", "mini-olmo3")
    found = findings(make, models=models)
    write_ledger(found, "quick", tmp_path, "main")
    table = pd.read_csv(tmp_path / "claims.csv")
    once = sum(bool(c.computed or c.unmeasured or c.is_about_sizes) for c in ledger())
    assert len(table) == len(ledger()) * 2 - once
    assert table["effect"].iloc[0] == found[0].effect
    assert set(table["verdict"]) <= set(VERDICTS)
    assert (tmp_path / "claims.md").read_text() == ledger_markdown(found, "quick", "main")


def test_a_study_of_single_runs_decides_nothing_and_says_why(make):
    text = ledger_markdown(findings(make, seeds=1), "quick")
    assert "a single run has no spread" in " ".join(text.split())
    assert " 0 reproduced, 0 not reproduced, 0 undetermined, " in f" {text.splitlines()[2]}"
