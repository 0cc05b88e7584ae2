"""The ledger as people read it."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import pandas as pd
import pytest

from geosd.claims.claim import claim_near
from geosd.claims.computed_costs import computed_costs
from geosd.claims.evidence import Evidence
from geosd.claims.finding import (
    ALL_MODELS,
    COSTS,
    NOT_JUDGED,
    WORDS,
    Finding,
    findings_without_words,
)
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.claims.metrics import (
    ID,
    accuracy_metric,
    drift_metric,
    drift_metric_at,
    gain_metric,
    pass_at_k_metric,
)
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.reporting.claims_forest import COLOURS, LARGE_MARGIN, plot_forest
from geosd.reporting.claims_numbers import numbers_of_interval, numbers_of_quantity
from geosd.reporting.claims_page import (
    claims_page_by_model,
    claims_page_frame,
    claims_page_markdown,
    write_claims_page,
)
from geosd.reporting.claims_sentences import claims_counts_sentence, finding_sentence
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
    text = claims_page_markdown(found, "quick")
    rows = {cells(line)[1]: cells(line) for line in text.splitlines() if line.startswith("| ")}
    exercised = [f for f in found if f.exercised]
    assert 10 <= len(exercised) < len(found)
    for finding in found:
        assert text.count(f"(`{finding.claim.id}`)") == 1, finding.claim.id
        if finding.exercised:
            assert rows[finding.claim.statement][0] == finding.word


def test_the_primary_claims_come_first_then_how_many_others_have_each_word(make):
    found = findings(make)
    text = claims_page_markdown(found, "quick")
    titles = ("**agrees**", "](claims.svg)", "## The primary", "Of the other", "## The other")
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    others = [f for f in found if f.part == "other"]
    said = dict(
        (word.removeprefix("are ").removeprefix("is "), int(n))
        for n, word in re.findall(
            r"(\d+) ([a-z ]+?)(?:,| and|\.)", claims_counts_sentence(claims_page_frame(others))
        )
        if not word.endswith("rows")
    )
    plural = {"agrees": "agree"}
    for word in {f.word for f in others}:
        assert said[plural.get(word, word)] == sum(f.word == word for f in others)


@pytest.fixture
def two_models(make):
    """Findings of the gain in distribution, with several draws of two base models."""
    scores = make(models=("mini-qwen3", "mini-olmo3"), variants=QUICK, seeds=4)
    main = [claim for claim in ledger() if claim.id == "geosd-id-gain"]
    return judge_claims(main, Evidence(scores.assign(draw=scores["seed"] % 2)))


def test_a_claim_has_one_row_with_a_column_a_model_the_one_over_all_first(two_models):
    assert [f.model for f in two_models] == [ALL_MODELS, "mini-qwen3", "mini-olmo3"]
    head, _, row = map(cells, claims_page_by_model(claims_page_frame(two_models)).splitlines())
    columns = ["word", "claim", "quantity", ALL_MODELS, "mini-qwen3", "mini-olmo3", "paper", "n"]
    assert head == columns
    assert row[:2] == [two_models[0].word, "GeoSD raises ID accuracy above the base model"]
    assert row[2] == "ID avg@k: geosd - pi_0"
    for finding, cell in zip(two_models, row[3:6], strict=True):
        assert cell.startswith(
            {"agrees": "✓", "opposite": "✗", "too small to tell": "?"}[finding.word]
        )
        assert f"{finding.effect:+.1f} [" in cell


def test_without_a_row_over_all_models_a_word_needs_them_all(two_models):
    of_models = claims_page_frame(two_models)[1:]
    for words, said in ((["agrees"] * 2, "agrees"), (["agrees", "opposite"], "by model")):
        assert cells(claims_page_by_model(of_models.assign(word=words)).splitlines()[-1])[0] == said


def test_the_finding_has_effect_interval_runs_and_the_papers_number(make):
    rows = claims_page_frame(findings(make)).query("claim in ('geosd-id-gain', 'geosd-ood-gain')")
    inside = {"effect": 10.93, "low": 9.74, "high": 12.12, "paper_effect": 21.1}
    out = {"effect": -5.66, "low": -6.72, "high": -4.61, "paper_effect": 7.3}
    more = {"model": ALL_MODELS, "n_a": 36, "n_b": 36, "units": 18, "study": "s"}
    by_claim = {"geosd-id-gain": inside, "geosd-ood-gain": out}
    rows = pd.DataFrame(
        [{**row, **more, **by_claim[row["claim"]]} for row in rows.to_dict("records")]
    )
    assert finding_sentence(rows) == (
        "Against the base model GeoSD gains in distribution, +10.9 points [+9.7, +12.1], and loses"
        " out of distribution, -5.7 points [-6.7, -4.6] (36 runs on 18 base models; the paper:"
        " +21.1 and +7.3)."
    )
    unsure = finding_sentence(rows.assign(low=-20.0, high=30.0, paper_effect=math.nan))
    assert unsure.count("may gain or lose") == 2 and unsure.endswith("(36 runs on 18 base models).")
    first = finding_sentence(rows.assign(designed_for="ablation", claim=["a", "b"], word=WORDS[:2]))
    assert first.startswith(
        "Of this study's claims 1 agrees and 1 is opposite; the first, agrees: "
    )
    assert finding_sentence(rows.assign(word="not exercised")) == ""


def test_the_forest_has_a_line_a_claim_in_the_colour_of_its_word(make):
    found = claims_page_frame(findings(make))
    drawn = found[(found["word"] != "not exercised") & (found["part"] != "computed")]
    figure = plot_forest(found)
    labels = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert [" ".join(label.split()) for label in labels] == sorted(
        drawn["statement"], key=[" ".join(label.split()) for label in labels].index
    )
    for axes in figure.axes:
        names = [" ".join(text.get_text().split()) for text in axes.get_yticklabels()]
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        for dot, name in zip(dots, names, strict=True):
            row = drawn[drawn["statement"] == name].iloc[0]
            assert dot.get_color() == COLOURS[row["word"]]
            assert dot.get_xdata()[0] == row["effect"]
            large = LARGE_MARGIN < row["claimed_from"] < math.inf
            assert large == (axes.get_xlim()[0] > 0)


@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_labels_of_any_length_stand_apart_in_the_forest(make, lines):
    found = claims_page_frame(findings(make))
    found.loc[::2, "statement"] = [" ".join([f"claim{n:03}"] * 6 * lines) for n in found.index[::2]]
    figure = plot_forest(found)
    figure.draw_without_rendering()
    for axes in figure.axes:
        texts = axes.get_yticklabels()
        assert lines in {text.get_text().count("\n") + 1 for text in texts}
        boxes = [text.get_window_extent() for text in texts]
        point = figure.dpi / 72
        for upper, lower in itertools.pairwise(boxes):
            assert upper.y0 >= lower.y1 + 2 * point


def test_the_forests_legend_names_the_papers_number_where_one_is_drawn(make):
    found = claims_page_frame(findings(make))
    for frame, named in ((found, True), (found.assign(paper_effect=math.nan), False)):
        words = [text.get_text() for text in plot_forest(frame).legends[0].get_texts()]
        assert ("the paper's number" in words) is named


def test_a_forest_without_a_claim_says_so(make):
    figure = plot_forest(claims_page_frame(findings(make)).assign(word="not exercised"))
    assert figure.texts[0].get_text() == "no claim was exercised"


def test_what_holds_by_construction_stands_apart_with_its_reason_and_is_not_counted():
    mismatch = replace(found_by_construction(), model="mini-qwen3")
    text = claims_page_markdown([mismatch], "quick")
    apart = text.split("## Claims that hold by construction")[1]
    assert "| More than 5 % of states " in apart
    assert "kept only if 10 to 100 %" in " ".join(apart.split())
    assert claims_counts_sentence(claims_page_frame([mismatch])) == ""
    elsewhere = replace(mismatch, model="smollm2-135m")
    assert elsewhere.part == "other"
    assert claims_counts_sentence(claims_page_frame([elsewhere])) == "Of the other claims 1 agrees."


def found_by_construction():
    claim = next(claim for claim in ledger() if claim.id == "mismatch-is-no-tail")
    bounds = {"claimed_from": 5.0, "claimed_to": math.inf}
    return Finding(claim, "m", "pi_0 > 5", "mismatch", 16.0, 15.0, 17.0, 0.95, **bounds, n_a=9)


def test_a_study_that_is_not_meant_for_it_has_the_estimates_alone(make):
    judged = findings(make)
    found = findings_without_words(judged)
    assert [f.effect for f in found] == pytest.approx([f.effect for f in judged], nan_ok=True)
    text = claims_page_markdown(found, "quick")
    assert "not meant to judge" in text.splitlines()[2]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    printed = {cell.strip(" *") for row in rows for cell in row.split("|")}
    assert not {"agrees", "opposite", "too small to tell"} & printed and "✓" not in text
    head = text.split("## The other claims")[1].split("\n| claim ")[1].splitlines()[0]
    assert cells("claim " + head) == ["claim", "quantity", "effect", "paper", "n"]
    assert set(claims_page_frame(found)["word"]) == {"not exercised", NOT_JUDGED}


def test_costs_are_computed_and_counted_apart(make):
    costs = computed_costs(UpdateOperationsSize(8, 4096), 1024, 16, 0.125)
    main = [claim for claim in ledger() if claim.computed]
    found = judge_claims(main, Evidence(make(variants=("pi_0",)), costs=costs))
    text = claims_page_markdown(found, None)
    assert "## Costs, computed" in text
    assert all(
        f.model == COSTS and f" {f.claim.statement} |" in " ".join(text.split()) for f in found
    )
    agree, opposite = (sum(f.word == word for f in found) for word in WORDS[:2])
    assert agree >= 7 and agree + opposite == len(main)
    said = f"Of the costs {agree} agree and {opposite} {'are' if opposite > 1 else 'is'} opposite."
    assert claims_counts_sentence(claims_page_frame(found)) == said


def test_an_interval_has_the_decimals_that_show_what_it_decides():
    row = {"unit": "points", "claimed_from": 0.0, "claimed_to": math.inf, "paper_effect": math.nan}
    assert (
        numbers_of_interval({**row, "effect": 1.0, "low": 0.04, "high": 2.0})[1] == "[+0.04, +2.00]"
    )
    assert (
        numbers_of_interval({**row, "effect": 1.0, "low": 0.14, "high": 2.0})[1] == "[+0.1, +2.0]"
    )
    assert numbers_of_interval({**row, "effect": -0.02, "low": -0.5, "high": 0.4})[0] == "+0.0"
    near = {**row, "paper_effect": 2.0, "effect": 1.0, "low": 0.14, "high": 1.96}
    assert numbers_of_interval(near) == ("+1.00", "[+0.14, +1.96]")


@pytest.mark.parametrize(
    ("confidence", "words"),
    [
        (0.95, ""),
        ("0.95", ""),
        (math.nan, ""),
        (1 - 0.05 / 8, " at 99.38 %"),
        (0.975, " at 97.5 %"),
    ],
)
def test_an_interval_says_its_confidence_where_it_is_not_the_usual_one(confidence, words):
    row = {"unit": "points", "claimed_from": -9.0, "claimed_to": math.inf, "paper_effect": math.nan}
    row |= {"effect": 1.0, "low": 0.14, "high": 2.0, "confidence": confidence}
    assert numbers_of_interval(row) == ("+1.0", f"[+0.1, +2.0]{words}")


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (accuracy_metric("geosd") > accuracy_metric("pi_0"), "OOD avg@k: geosd - pi_0"),
        (
            pass_at_k_metric("geosd_no_prox") < pass_at_k_metric("geosd"),
            "OOD pass@k: geosd_no_prox - geosd",
        ),
        (accuracy_metric("geosd", ID) > accuracy_metric("jsd", ID) - 1.7, "ID avg@k: geosd - jsd"),
        (gain_metric("geosd") > 3.5, "OOD avg@k over pi_0: geosd"),
        (
            claim_near(accuracy_metric("jsd"), accuracy_metric("pi_0"), within=2.5),
            "OOD avg@k: jsd - pi_0",
        ),
        (drift_metric("geosd") < drift_metric("fwdkl"), "drift/pi_0: geosd - fwdkl"),
        (
            accuracy_metric("geosd", ID) > accuracy_metric("geosd"),
            "avg@k: geosd (id) - geosd (ood_avg)",
        ),
        (
            drift_metric_at("geosd", 1.0) < 1.5 * drift_metric_at("geosd", 0.5),
            "drift_path: geosd (at 1) - 1.5 x geosd (at 0.5)",
        ),
    ],
)
def test_a_row_names_its_quantity(comparison, words):
    assert numbers_of_quantity({"comparison": str(comparison)}) == words


def test_a_cell_of_another_quantity_than_its_row_names_its_own(two_models):
    rows = claims_page_frame(two_models)
    rows.loc[2, "comparison"] = "geosd - pi_0 > 0, avg@k of hmmt"
    *_, row = map(cells, claims_page_by_model(rows).splitlines())
    assert row[5].endswith(" (avg@k of hmmt: geosd - pi_0)") and "(" not in row[3] + row[4]


def test_lines_fit_a_terminal_and_tables_are_aligned(make):
    lines = claims_page_markdown(findings(make), "quick").splitlines()
    assert max(len(line) for line in lines if line[:1] not in ("|", "!")) <= 100
    tables = "\n".join(lines).split("\n\n")
    for table in (table.splitlines() for table in tables if table.startswith("|")):
        assert len({len(line) for line in table}) == 1


def test_claims_that_are_not_exercised_say_what_they_need(make):
    text = claims_page_markdown(findings(make), "quick")
    listed = text.split("## Not exercised")[1]
    sentences = " ".join(listed.split())
    assert (
        "kind privilege has what these need: FwdKL and RevKL have a lower OOD average" in sentences
    )
    assert re.search(r"which no rule measures: [A-Z][^;]+ \(`cost-wall-clock`\)\.", sentences)


def test_a_claim_that_the_study_is_designed_for_says_what_is_missing(make):
    text = claims_page_markdown(findings(make), "miniature", "main")
    listed = text.split("## Not exercised")[1]
    assert re.search(r"- needs tropd, tip: [^;]+ \(`filtering-gain`\); ", " ".join(listed.split()))


def test_csv_has_a_row_per_claim_and_model_at_full_precision(make, tmp_path):
    claims = [c for c in ledger() if c.primary or c.study_kind == "ladder" or c.unmeasured]
    found = judge_claims(claims, Evidence(make(models=("mini-qwen3", "mini-olmo3"))))
    write_claims_page(found, "quick", tmp_path, "main")
    table = pd.read_csv(tmp_path / "claims.csv")
    assert len(table) == 2 * 3 + (len(claims) - 3)
    assert table["effect"].iloc[0] == found[0].effect
    assert set(table["word"]) <= set(WORDS)
    assert (tmp_path / "claims.md").read_text() == claims_page_markdown(found, "quick", "main")


def test_a_study_of_single_runs_decides_nothing_and_says_why(make):
    found = findings(make, seeds=1)
    assert {f.word for f in found} == {"too small to tell", "not exercised"}
    assert "a single run has no interval" in " ".join(claims_page_markdown(found, "quick").split())
