import random
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geosd.problems.dapo.near_duplicates import (
    RATIO,
    RUN,
    NearDuplicateIndex,
    duplicate_token_ratio,
    duplicate_word_tokens,
    normalize_for_duplicates,
)
from geosd.problems.dapo.raw_files import RawProblem, read_raw_files

WORDS = "one two three four five six seven eight nine ten eleven twelve".split()


def index_of(**texts):
    index = NearDuplicateIndex()
    for name, text in texts.items():
        index.add(name, text)
    return index


def test_a_reworded_copy_is_found_and_its_ratio_is_the_share_of_common_tokens():
    text = " ".join(WORDS)
    found = index_of(a=text).find(text.replace("twelve", "dozen"))
    assert found == {"a": pytest.approx(11 / 12)}


def test_the_same_words_in_another_order_share_no_run():
    assert index_of(a=" ".join(WORDS)).find(" ".join(reversed(WORDS))) == {}


def test_a_run_in_common_is_not_enough():
    text = " ".join(WORDS[:RUN])
    assert index_of(a=text).find(text + " " + "other words entirely " * 3) == {}


def test_the_ratio_is_reached_at_its_bound():
    # 8 of 8 + 12 tokens: 2 * 8 / 20 = 0.8 exactly.
    shared = " ".join(WORDS[:8])
    assert index_of(a=shared).find(" ".join(WORDS)) == {"a": RATIO}


def test_short_texts_match_only_whole_and_signs_alone_match_nothing():
    index = index_of(a="Compute $1+2$.", b="$+$")
    assert list(index.find("compute \\(1 + 2\\)")) == ["a"]
    assert index.find("Compute $1+2+3$.") == {}
    assert index.find("$-$") == {} and duplicate_token_ratio(Counter(), Counter()) == 0


def test_the_nearest_come_first():
    text = " ".join(WORDS)
    index = index_of(b=text, a=text, c=text + " more")
    assert list(index.find(text)) == ["a", "b", "c"]


def shortened(row, draw):
    """The row with some of its words left out: few enough to stay near, or too many."""
    keep = draw.uniform(0.5, 1.0)
    words = [word for word in row.text.split() if draw.random() < keep]
    return RawProblem(f"shortened {row.id}", " ".join(words), row.answer)


@pytest.mark.slow
def test_the_search_finds_what_comparing_all_pairs_finds(shared_data):
    raw = read_raw_files(shared_data)
    draw = random.Random(0)
    bench = [*raw.benchmarks["amc23"], *draw.sample(list(raw.benchmarks["math500"]), 60)]
    queries = draw.sample(list(raw.training), 700) + [shortened(row, draw) for row in bench]
    index = NearDuplicateIndex()
    for row in bench:
        index.add(row.id, row.text)
    known = [(row.id, duplicate_word_tokens(row.text)) for row in bench]
    expected = {
        (row.id, name)
        for row in queries
        for words in [duplicate_word_tokens(row.text)]
        for name, others in known
        if near_by_definition(words, others)
    }
    found = {(row.id, name) for row in queries for name in index.find(row.text)}
    assert found == expected
    assert 20 < len(found) < 100  # of the shortened ones some are near, others not


def near_by_definition(words, others):
    if 2 * min(len(words), len(others)) < RATIO * (len(words) + len(others)):
        return False  # if all words of the shorter were in the longer
    common = sum(min(words.count(word), others.count(word)) for word in set(words))
    if 2 * common < RATIO * (len(words) + len(others)):
        return False
    length = min(RUN, len(words), len(others))
    if length < RUN:
        return bool(words) and words == others
    return any(
        words[i : i + RUN] == others[k : k + RUN]
        for i in range(len(words) - RUN + 1)
        for k in range(len(others) - RUN + 1)
    )


# Text in which each rule of the normalisation has something to do, and can undo another's work.
AWKWARD = st.text(
    st.one_of(
        st.sampled_from(
            " \t\n\u00a0\u200b\u00ad\u0301\u00a8\ufb01\u0130\u00df\u03c2\u2019\uff04\u2212"
        ),
        st.characters(),
    )
)


@given(AWKWARD)
def test_normalising_twice_changes_nothing_more(text):
    assert normalize_for_duplicates(normalize_for_duplicates(text)) == normalize_for_duplicates(
        text
    )


@example("T\u00a8")
@given(AWKWARD)
def test_the_normal_form_has_no_white_space_and_no_compatibility_forms(text):
    form = normalize_for_duplicates(text)
    assert not any(c.isspace() for c in form)
    assert unicodedata.normalize("NFKC", form) == form


@given(st.text(st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_is_the_long_way(text):
    # An accented letter sends a text the long way and is its own normal form.
    assert normalize_for_duplicates(text + "\u00e9") == normalize_for_duplicates(text) + "\u00e9"


def test_what_a_copy_may_differ_in_does_not_count():
    text = "Let $ f( x ) $ be Ana\u2019s \ufb01rst function \u2212 say.\r\n"
    assert normalize_for_duplicates(text) == normalize_for_duplicates(
        "let $f(x)$ be Ana's first function - say."
    )


@pytest.mark.parametrize("other", ["Compute $5-3$.", "Compute $5+4$.", "Compute $5+3!$."])
def test_signs_and_numbers_distinguish_problems(other):
    assert normalize_for_duplicates("Compute $5+3$.") != normalize_for_duplicates(other)


def test_tokens_are_words_numbers_and_commands():
    assert duplicate_word_tokens("Find $\\Frac{x_1}{12}$ of \uff13\ufb01gs!") == [
        *("find", "frac", "x", "1", "12", "of", "3", "figs")
    ]
