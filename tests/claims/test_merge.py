"""One ledger over several studies judges each claim once and corrects over all."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from geosd.claims.claim import Claim, ComputedNumber
from geosd.claims.evidence import Evidence
from geosd.claims.ledger import ledger
from geosd.claims.merge import merge_ledgers
from geosd.claims.metrics import accuracy
from geosd.claims.verdicts import COSTS, judge_claims
from geosd.config import load, resolve, settings
from geosd.reporting.claims_page import ledger_markdown, write_ledger
from geosd.scores.tidy_columns import COLUMNS
from geosd.steps import merge_claims

UP = accuracy("geosd") > accuracy("pi_0")
DOWN = accuracy("geosd") < accuracy("pi_0")


def claim(name: str, study_kind: str, comparison=UP) -> Claim:
    return Claim(name, f"Claim {name}", "place", "quote", study_kind, [comparison])


CLAIMS = [
    claim("up", "main"),
    claim("down", "main", DOWN),
    claim("ladder-up", "ladder"),
    claim("swept", "stepsize"),
    Claim("cost", "Cost", "place", "quote", "main", computed=[ComputedNumber("ratio", "1.2")]),
]


def scores(*models: str) -> pd.DataFrame:
    runs = {"geosd": (60, 61, 63), "pi_0": (50, 51, 52)}
    rows = [
        (model, variant, seed, 0, "ood_avg", "OOD", "avg@k", 16, value)
        for model in models
        for variant, values in runs.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def gather(claims, ledgers):
    return merge_ledgers(claims, ledgers, {"tiny": "main", "tiny_ladder": "ladder"}.__getitem__)


@pytest.fixture
def ledgers(tmp_path):
    """The ledgers of a main study of two models and of a ladder of three."""
    found = []
    for study, models in (("tiny", ("m1", "m2")), ("tiny_ladder", ("s", "m", "l"))):
        evidence = Evidence(scores(*models), costs={"ratio": 1.23})
        write_ledger(judge_claims(CLAIMS, evidence), study, tmp_path / study)
        found.append(tmp_path / study / "claims.csv")
    return found


def test_each_claim_is_judged_by_the_kind_of_study_it_is_designed_for(ledgers):
    found = [(f.claim.id, f.study, f.model, f.verdict) for f in gather(CLAIMS, ledgers)]
    assert found == [
        ("up", "tiny", "m1", "reproduced"),
        ("up", "tiny", "m2", "reproduced"),
        ("down", "tiny", "m1", "not reproduced"),
        ("down", "tiny", "m2", "not reproduced"),
        ("ladder-up", "tiny_ladder", "s", "reproduced"),
        ("ladder-up", "tiny_ladder", "m", "reproduced"),
        ("ladder-up", "tiny_ladder", "l", "reproduced"),
        ("swept", "", "stepsize", "not tested"),
        ("cost", "tiny", COSTS, "reproduced"),
    ]


def test_holm_runs_over_all_studies(ledgers):
    apart = pd.read_csv(ledgers[0]).query("claim == 'up'").iloc[0]
    whole = gather(CLAIMS, ledgers)[0]
    assert whole.p == apart["p"]
    # Five rows of `up` and `ladder-up` share the smallest p, two of `down` have p near one.
    assert whole.p_holm == pytest.approx(7 * whole.p)
    assert apart["p_holm"] == pytest.approx(4 * whole.p)


def test_what_was_reproduced_in_its_study_may_be_undetermined_over_all(ledgers):
    table = pd.read_csv(ledgers[0])
    table.loc[table["claim"] == "up", "p"] = 0.02
    table.to_csv(ledgers[0], index=False)
    found = gather(CLAIMS, ledgers)[0]
    assert found.verdict == "undetermined" and 0.05 < found.p_holm < 0.2


def test_a_claim_whose_study_has_no_ledger_says_so(ledgers):
    swept = next(f for f in gather(CLAIMS, ledgers) if f.claim.id == "swept")
    assert swept.note == "needs the ledger of a study of kind stepsize"
    assert math.isnan(swept.p_holm)
    text = ledger_markdown(gather(CLAIMS, ledgers), None)
    assert "- needs the ledger of a study of kind stepsize: `swept`." in text
    assert "## m1, study tiny" in text and "## l, study tiny_ladder" in text


def test_two_studies_of_one_kind_and_strange_claims_are_refused(ledgers):
    with pytest.raises(ValueError, match="(?s)both of kind main.*Hint:"):
        gather(CLAIMS, [ledgers[0], ledgers[0]])
    with pytest.raises(ValueError, match="(?s)claim cost, down is not in the ledger.*Hint:"):
        gather([c for c in CLAIMS if c.id not in ("cost", "down")], ledgers)


def test_the_program_writes_both_files_and_names_what_no_study_has(tmp_path):
    merge_claims.main(tmp_path)
    table = pd.read_csv(tmp_path / "claims_all.csv")
    assert set(table["verdict"]) == {"not tested"}
    assert len(table) == len(ledger())
    assert "## Not tested" in (tmp_path / "claims_all.md").read_text()


def test_every_kind_of_study_that_claims_need_is_in_params_and_shows_claims():
    params = load(Path(__file__).parents[2] / "params.yaml")
    names = [n for n in params.studies if n.startswith("miniature") and "selection" not in n]
    judged = [study for n in names if "claims" in (study := resolve(params, n)).outputs]
    by_kind = {settings("claims", study)["kind"]: study for study in judged}
    assert len(by_kind) == len(judged)
    for entry in ledger():
        study = by_kind[entry.study_kind]
        swept = {variant for variant, _ in study.candidates.values()}
        assert set(entry.variants()) <= {*study.methods, *swept}, entry.id
