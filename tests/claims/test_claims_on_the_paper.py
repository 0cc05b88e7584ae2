"""The ledger's rules on the paper's own numbers: what ten published runs a cell do decide.

Runs are made up with exactly the published means and deviations, and in an order drawn for each
cell, as if a seed shared nothing: so the rules meet the data that the claims were written from.
Only a test: no number of these reaches a report.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geosd.claims import published as paper
from geosd.claims.evidence import Evidence
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.scores.tidy import COLUMNS

SHAPE = np.array([-1.5, -1.1, -0.7, -0.3, -0.1, 0.1, 0.3, 0.7, 1.1, 1.5])
SHAPE = SHAPE / SHAPE.std(ddof=1)
MODELS = ("qwen3-8b", "olmo-3-7b-think", "ds-r1-llama-8b")


@pytest.fixture(scope="module")
def findings():
    rows, draw = [], np.random.default_rng(0)
    for model in MODELS:
        name = paper.published_family(model)
        for table in ("main_id_ood", "ood_per_bench"):
            for variant, cells in paper.published()[table]["families"][name].items():
                for benchmark, cell in cells.items():
                    if benchmark != "delta_ood":
                        split = "ID" if benchmark == "id" else "OOD"
                        for seed, value in enumerate(cell[0] + cell[1] * draw.permutation(SHAPE)):
                            rows.append(
                                (model, variant, seed, 0, benchmark, split, "avg@k", 16, value)
                            )
    scores = pd.DataFrame(rows, columns=list(COLUMNS["scores"]))
    found = judge_claims(ledger(), Evidence(scores))
    return {(f.claim.id, f.model): f for f in found}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "claim",
    [
        "geosd-ood-gain",
        "geosd-id-gain",
        "fwdkl-id-gain",
        "fwdkl-ood-loss",
        "revkl-ood-loss",
        "revkl-id-gain",
        "geosd-ood-lead",
        "softer-less-degraded",
    ],
)
def test_the_papers_main_claims_follow_from_its_own_numbers(findings, claim, model):
    assert findings[claim, model].word == "agrees"


def test_intervals_hold_the_papers_numbers_where_they_are_its_own(findings):
    held = {f.holds_paper for f in findings.values() if f.exercised}
    assert held <= {"yes", "no number"} and "yes" in held


def test_none_of_the_papers_claims_is_refuted_by_its_own_numbers(findings):
    assert [key for key, f in findings.items() if f.word == "opposite"] == []


def test_best_on_every_benchmark_is_within_the_noise_on_ds_r1s_aime24(findings):
    finding = findings["geosd-each-benchmark-best", "ds-r1-llama-8b"]
    assert finding.word == "too small to tell"
    assert finding.comparison == "geosd - tip > 0, avg@k of aime24"
    assert finding.effect == pytest.approx(0.4)


def test_a_gain_within_the_noise_or_near_its_margin_is_too_small_to_tell(findings):
    # Other methods gain up to 3.2 points in the paper, and 3.5 would be substantial.
    assert {findings["geosd-alone-gains-both", m].word for m in MODELS} == {"too small to tell"}
    assert findings["softer-no-gain", "qwen3-8b"].word == "agrees"
    assert findings["softer-no-gain", "ds-r1-llama-8b"].word == "too small to tell"  # -2.2 of 2.5
    assert findings["grpo-ood-gain", "olmo-3-7b-think"].word == "too small to tell"  # +0.4
    grpo = findings["grpo-ood-gain", "ds-r1-llama-8b"]
    assert grpo.word == "too small to tell" and grpo.comparison.startswith("grpo - pi_0 < 3")
