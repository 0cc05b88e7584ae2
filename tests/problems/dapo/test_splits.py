import json
import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.dapo.near_duplicates import NearDuplicateIndex, normalize_for_duplicates
from geosd.problems.dapo.raw_files import DamagedRawRowError, RawFiles, RawProblem, read_raw_files
from geosd.problems.dapo.splits import _is_english, clean_and_split, clean_problems

PAPER = dict(train=1000, select_train=100, select_validation=200, test_id=500)
SIZES = dict(train=10, select_train=3, select_validation=4, test_id=5)
COMMON = dict(test_per_benchmark=None, overlaps="exclude", seed=0)


def split(raw, **settings):
    return clean_and_split(raw, {**COMMON, **SIZES, **settings})


@pytest.fixture(scope="module")
def raw(shared_data):
    return read_raw_files(shared_data)


@pytest.fixture(scope="module")
def prepared(raw):
    return split(raw, **PAPER)


def made_up_raw_files(number=40):
    """Problems of unlike words, one of which is a benchmark's with a word more."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=6)) for _ in range(2000)]
    texts = [" ".join(draw.sample(words, 12)) for _ in range(number)]
    rows = [RawProblem(f"row-{k}", text, str(k)) for k, text in enumerate(texts)]
    benchmarks = {
        "amc23": [RawProblem("amc-1", texts[0] + " please", "0"), RawProblem("amc-2", "Why?", "9")]
    }
    return RawFiles(rows, benchmarks, {"file": "hash"})


def everything(prepared):
    return [*prepared.train, *prepared.select, *prepared.test]


# The published files: facts that were found without this code.


@pytest.mark.slow
def test_the_published_set_has_its_known_rows_texts_and_faults(raw):
    texts = [row.text for row in raw.training]
    english = [text for text in texts if _is_english(text)]
    assert (len(texts), len(set(texts)), len(english)) == (17917, 17255, 14485)
    assert len(set(english)) == 14042
    assert len({"".join(text.split()) for text in english}) == 13795
    assert len({normalize_for_duplicates(text) for text in english}) == 13790
    chinese = [len(re.findall("[\u4e00-\u9fff]", t)) for t in texts if not _is_english(t)]
    assert (len(chinese), sum(n <= 2 for n in chinese)) == (3432, 57)
    assert sum(abs(int(row.answer)) > 2**53 for row in raw.training) == 5
    answers: dict[str, set[str]] = {}
    for row in raw.training:
        answers.setdefault(normalize_for_duplicates(row.text), set()).add(row.answer)
    assert sum(len(found) > 1 for found in answers.values()) == 15


@pytest.mark.slow
def test_every_published_row_is_accounted_for(raw, prepared):
    card = prepared.card
    assert card["rows"] == 17917
    assert card["rows"] == card["eligible"] + sum(card["excluded"].values())
    assert card["excluded"] == {
        "copy of a row": 0,
        "not English": 3432,
        "answer not an integer": 0,
        "answer beyond 2^53": 4,  # the fifth is Chinese
        "same text, different answers": 28,
        "repeated text": 681,
        "in a benchmark": 65,
    }
    assert len(card["same text, different answers"]) == 14  # the fifteenth is Chinese
    assert Counter(problem.benchmark for problem in everything(prepared)) == card["kept"]
    assert card["kept"] == {
        **{"train": 1000, "select_train": 100, "select_validation": 200, "id": 500},
        **{"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500},
    }


@pytest.mark.slow
def test_half_of_amc_and_a_few_of_math_500_are_in_the_set_and_none_of_aime(prepared):
    overlaps = prepared.card["overlaps"]
    assert prepared.card["benchmark problems in the training set"] == {"amc23": 24, "math500": 24}
    same = {(o["benchmark"], o["benchmark_id"]) for o in overlaps if o["same_answer"]}
    assert Counter(benchmark for benchmark, _ in same) == {"amc23": 21, "math500": 12}
    exact = {(o["benchmark"], o["benchmark_id"]) for o in overlaps if o["kind"] == "exact"}
    assert Counter(benchmark for benchmark, _ in exact) == {"amc23": 6, "math500": 4}
    assert {o["kind"] for o in overlaps if not o["same_answer"]} == {"near"}


def test_no_text_is_in_two_splits_or_in_a_benchmark_even_nearly(prepared):
    texts = [normalize_for_duplicates(problem.question) for problem in everything(prepared)]
    assert len(set(texts)) == len(texts)
    assert len({problem.id for problem in everything(prepared)}) == len(texts)
    index = NearDuplicateIndex()
    for problem in prepared.test:
        index.add(problem.id, problem.question)
    trained = [*prepared.train, *prepared.select]
    assert not [p.id for p in trained if index.find(p.question)]
    assert len(prepared.card["near another split"]) == 22  # passed over


# Properties, on problems made up.


@pytest.mark.parametrize("overlaps", ["exclude", "keep"])
def test_the_seed_names_the_splits_whatever_the_order_of_the_rows(overlaps):
    raw = made_up_raw_files()
    reordered = replace(
        raw, training=random.Random(1).sample(list(raw.training), len(raw.training))
    )
    splits = split(raw, overlaps=overlaps, seed=3)
    assert splits == split(reordered, overlaps=overlaps, seed=3)
    assert splits.train != split(raw, overlaps=overlaps, seed=4).train


def test_a_larger_training_set_keeps_every_other_set():
    small = split(made_up_raw_files())
    large = split(made_up_raw_files(), train=20)
    assert (small.test, small.select) == (large.test, large.select)
    assert large.train[:10] == small.train


def test_overlapping_problems_are_drawn_only_where_they_are_to_be_kept():
    raw = made_up_raw_files(22)
    excluded = split(raw, train=9)
    assert excluded.card["excluded"]["in a benchmark"] == 1
    assert "row-0" not in {problem.id for problem in everything(excluded)}
    kept = split(raw, train=10, overlaps="keep")
    assert kept.card["excluded"]["in a benchmark"] == 0
    assert "row-0" in {problem.id for problem in everything(kept)}
    assert kept.card["overlaps"] == excluded.card["overlaps"] != []


def test_a_problem_near_to_one_of_another_split_is_left_out_and_reported():
    raw = made_up_raw_files(12)
    near_copies = [RawProblem(f"copy-{r.id}", r.text + " again", r.answer) for r in raw.training]
    raw = replace(raw, training=[*raw.training, *near_copies], benchmarks={})
    sizes = {"train": 3, "select_train": 2, "select_validation": 2, "test_id": 3}
    prepared = split(raw, **sizes)
    of = {p.id.removeprefix("copy-"): set() for p in everything(prepared)}
    for problem in everything(prepared):
        of[problem.id.removeprefix("copy-")].add(problem.benchmark)
    assert all(len(benchmarks) == 1 for benchmarks in of.values())
    dropped = {pair["problem"] for pair in prepared.card["near another split"]}
    assert dropped and dropped.isdisjoint(problem.id for problem in everything(prepared))


def test_a_benchmark_can_be_cut():
    prepared = split(made_up_raw_files(), test_per_benchmark=1)
    assert [p.benchmark for p in prepared.test].count("amc23") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": 100}, "'train'; wanted are 112 in all"),
        ({"test_per_benchmark": 3}, "'amc23' has 2 problems"),
    ],
)
def test_too_few_problems_are_an_error_that_says_so(change, message):
    with pytest.raises(ValueError, match=f"{message}(.|\n)*Hint:"):
        split(made_up_raw_files(), **change)


def test_the_representative_of_a_text_is_one_of_its_rows(raw):
    by_id = {row.id: row.text for row in raw.training}
    assert all(by_id[row.id] == row.text for row in clean_problems(raw.training).rows.values())


# Cleaning.

ROWS = [
    RawProblem("a", "Find $x$.", "1"),
    RawProblem("b", "find $ x $.", "01"),  # the same, written otherwise
    RawProblem("c", "\u8bbe $x$.", "1"),
    RawProblem("d", "Find $y$.", "1/2"),
    RawProblem("e", "Find $z$.", "105263157894736848"),
    RawProblem("f", "Find $z$.", "105263157894736842"),
    RawProblem("g", "Find $w$.", "3"),
    RawProblem("h", "Find $W$.", "4"),
    RawProblem("i", "Find $v$.", "-7"),
    RawProblem("j", "Find $u$.", str(2**53)),
    RawProblem("k", "Find $t$.", str(-(2**53) - 1)),
]


def test_each_row_is_kept_or_counted_under_one_reason():
    cleaned = clean_problems([*ROWS, ROWS[0], ROWS[0]])
    assert sorted(row.id for row in cleaned.rows.values()) == ["a", "i", "j"]
    assert cleaned.excluded == {
        "copy of a row": 2,
        "not English": 1,
        "answer not an integer": 1,
        "answer beyond 2^53": 3,
        "same text, different answers": 2,
        "repeated text": 1,
    }
    assert cleaned.conflicts == [("g", "h")]
    assert len(cleaned.rows) + sum(cleaned.excluded.values()) == len(ROWS) + 2


def test_answers_are_kept_in_their_shortest_form():
    (row,) = clean_problems([RawProblem("a", "Find $x$.", " +007 ")]).rows.values()
    assert row.answer == "7"


def test_a_damaged_answer_does_not_condemn_a_sound_row_of_the_same_text():
    rows = [
        RawProblem("a", "Find $x$.", "5"),
        RawProblem("b", "Find $x$.", "22099999999999998951424"),
    ]
    assert [row.id for row in clean_problems(rows).rows.values()] == ["a"]


def test_a_hundred_copies_are_one_problem():
    once, often = clean_problems(ROWS), clean_problems(ROWS * 100)
    assert often.rows == once.rows
    assert often.excluded == {**once.excluded, "copy of a row": 99 * len(ROWS)}


def test_one_id_for_two_rows_is_an_error():
    with pytest.raises(DamagedRawRowError, match="names two different rows(.|\n)*Hint:"):
        clean_problems([RawProblem("a", "Find $x$.", "1"), RawProblem("a", "Find $y$.", "1")])


@given(st.integers())
def test_the_order_of_the_rows_does_not_matter(seed):
    shuffled = random.Random(seed).sample(ROWS, len(ROWS))
    cleaned, of_shuffled = clean_problems(ROWS), clean_problems(shuffled)
    assert list(cleaned.rows.items()) == list(of_shuffled.rows.items())
    assert (cleaned.excluded, cleaned.conflicts) == (of_shuffled.excluded, of_shuffled.conflicts)


@pytest.mark.parametrize(
    "text",
    [
        "\u8bbe $f(x)=x^2$, find $f(1)$.",
        "$x+1=2$, \u5219 $x=$",
        "\u041d\u0430\u0439\u0442\u0438 $x$.",
        "\u3042 $x$",
        "\u1100\u1161 $x$",
        "\uff71 $x$",
        "\U00020000 $x$",
    ],
)
def test_one_foreign_letter_is_caught(text):
    assert not _is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Ana\u2019s \u201csum\u201d costs \uff045\uff0c\u20ac3 or \uffe51\uff1a find it\uff09",
        "The \ufb01rst di\ufb00erent na\u00efve \u00c9ric",
        "\u03b1 \u2264 \u03b2 \u00d7 \u2113 \u2212 1 \u2208 \u2135",
        "Find $x$\u3002",
        "$\\frac{2020}{6063}$",
    ],
)
def test_signs_ligatures_and_accents_are_not(text):
    assert _is_english(text)


def test_the_filter_agrees_with_every_labelled_case(shared_data):
    lines = (shared_data / "train/lang_filter_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) > 150 and len({case["script"] for case in cases}) == 3
    wrong = [c["id"] for c in cases if _is_english(c["problem"]) != c["expect_english"]]
    assert wrong == []
