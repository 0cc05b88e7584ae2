"""One ledger over several studies judges each claim once, as its own study does."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from geosd.claims.claim import Claim
from geosd.claims.computed_costs import ComputedNumber
from geosd.claims.evidence import Evidence
from geosd.claims.finding import COSTS, findings_without_words
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.claims.merge import merge_ledgers
from geosd.claims.metrics import accuracy_metric
from geosd.config import load, resolve_study, settings
from geosd.reporting import merged_ledger
from geosd.reporting.claims_page import claims_page_frame, claims_page_markdown, write_claims_page
from geosd.scores.tidy import COLUMNS, read_tidy

UP = accuracy_metric("geosd") > accuracy_metric("pi_0")
DOWN = accuracy_metric("geosd") < accuracy_metric("pi_0")


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


KINDS = {"tiny": "main", "tiny_ladder": "ladder"}


def gather(claims, ledgers, kinds=KINDS):
    """Merge ledgers by path: the folder of each bears the name of its study."""
    tables = {path.parent.name: read_tidy("claims", path) for path in ledgers}
    return merge_ledgers(claims, tables, kinds)


@pytest.fixture
def ledgers(tmp_path):
    """The ledgers of a main study of two models and of a ladder of three."""
    found = []
    for study, models in (("tiny", ("m1", "m2")), ("tiny_ladder", ("s", "m", "l"))):
        sizes = models if study == "tiny_ladder" else ()
        evidence = Evidence(scores(*models), sizes=sizes, costs={"ratio": 1.23})
        write_claims_page(judge_claims(CLAIMS, evidence), study, tmp_path / study)
        found.append(tmp_path / study / "claims.csv")
    return found


def test_each_claim_is_judged_by_the_kind_of_study_it_is_designed_for(ledgers):
    found = [(f.claim.id, f.study, f.model, f.word) for f in gather(CLAIMS, ledgers)]
    assert found == [
        ("up", "tiny", "m1", "agrees"),
        ("up", "tiny", "m2", "agrees"),
        ("down", "tiny", "m1", "opposite"),
        ("down", "tiny", "m2", "opposite"),
        ("ladder-up", "tiny_ladder", "s to l", "agrees"),
        ("swept", "", "no study", "not exercised"),
        ("cost", "tiny", COSTS, "agrees"),
    ]


def test_what_a_study_found_is_carried_over_to_the_last_digit(ledgers, tmp_path):
    claims_page_frame(gather(CLAIMS, ledgers)).to_csv(tmp_path / "all.csv", index=False)
    merged, *own = (
        pd.read_csv(path, keep_default_na=False, dtype=str)
        for path in (tmp_path / "all.csv", *ledgers)
    )
    kept = merged[["claim", "study", "model"]].merge(pd.concat(own))
    assert len(kept) == 6
    pd.testing.assert_frame_equal(kept, merged[merged["study"] != ""].reset_index(drop=True))


def test_a_claim_whose_study_has_no_ledger_says_so(ledgers):
    swept = next(f for f in gather(CLAIMS, ledgers) if f.claim.id == "swept")
    assert swept.note == "needs the ledger of a study of kind stepsize"
    assert math.isnan(swept.effect)
    text = claims_page_markdown(gather(CLAIMS, ledgers), None)
    assert (
        f"- needs the ledger of a study of kind stepsize: {swept.claim.statement} (`swept`)."
        in text
    )
    assert "### Study tiny\n" in text and "### Study tiny_ladder\n\nModel: s to l." in text


def test_a_ledger_of_estimates_has_no_word_to_merge(ledgers, tmp_path):
    found = findings_without_words(judge_claims(CLAIMS, Evidence(scores("m1"))))
    write_claims_page(found, "tiny", tmp_path / "tiny")
    with pytest.raises(ValueError, match="(?s)study tiny has estimates.*Hint:"):
        gather(CLAIMS, ledgers)


def test_two_studies_of_one_kind_and_strange_claims_are_refused(ledgers):
    with pytest.raises(ValueError, match="(?s)both of kind main.*Hint:"):
        gather(CLAIMS, ledgers, dict.fromkeys(KINDS, "main"))
    with pytest.raises(ValueError, match="(?s)tiny_ladder is that of tiny.*Hint:"):
        merge_ledgers(CLAIMS, {"tiny_ladder": read_tidy("claims", ledgers[0])}, KINDS)
    with pytest.raises(ValueError, match="(?s)claim cost, down is not in the ledger.*Hint:"):
        gather([c for c in CLAIMS if c.id not in ("cost", "down")], ledgers)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("word", "opposite"), ("low", "-3"), ("holds_paper", "yes"), ("part", "primary")],
)
def test_a_word_that_is_not_its_intervals_is_refused(ledgers, column, cell):
    table = pd.read_csv(ledgers[0], dtype=str, keep_default_na=False)
    table.loc[table["claim"] == "up", column] = cell
    table.to_csv(ledgers[0], index=False)
    with pytest.raises(ValueError, match="(?s)up on m1 has .* from its interval follows.*Hint:"):
        gather(CLAIMS, ledgers)


def test_the_files_of_a_merged_ledger_name_what_no_study_has(tmp_path):
    written = merged_ledger.save(merge_ledgers(ledger(), {}, {}), tmp_path, "claims_all")
    assert {path.suffix for path in written} >= {".csv", ".md", ".svg"}
    table = pd.read_csv(tmp_path / "claims_all.csv")
    assert set(table["word"]) == {"not exercised"}
    assert len(table) == len(ledger())
    assert "## Not exercised" in (tmp_path / "claims_all.md").read_text()


def test_every_kind_of_study_that_claims_need_is_in_params_and_shows_claims():
    params = load(Path(__file__).parents[2] / "params.yaml")
    names = [n for n in params.studies if n.startswith("miniature") and "selection" not in n]
    with_claims = [study for n in names if "claims" in (study := resolve_study(params, n)).outputs]
    by_kind = {settings("claims", study)["kind"]: study for study in with_claims}
    assert len(by_kind) == len(with_claims)
    for entry in ledger():
        study = by_kind[entry.study_kind]
        known = {*study.methods, *study.candidates}
        named = [] if callable(entry.holds) else [one.variants() for one in entry.holds]
        assert {variant for of in named for variant in of} <= known, entry.id
