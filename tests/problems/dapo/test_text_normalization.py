import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geosd.problems.dapo.near_duplicates import normalize_text, word_tokens
from geosd.problems.dapo.splits import is_english

# Text in which each rule of the normalisation has something to do, and can undo another's work.
AWKWARD = st.text(
    st.one_of(
        st.sampled_from(
            " \t\n\u00a0\u200b\u00ad\u0301\u00a8\ufb01\u0130\u00df\u03c2\u2019\uff04\u2212"
        ),
        st.characters(),
    )
)


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
    assert not is_english(text)


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
    assert is_english(text)


def test_the_filter_agrees_with_every_labelled_case(shared_data):
    lines = (shared_data / "train/lang_filter_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) > 150 and len({case["script"] for case in cases}) == 3
    wrong = [c["id"] for c in cases if is_english(c["problem"]) != c["expect_english"]]
    assert wrong == []


@given(AWKWARD)
def test_normalising_twice_changes_nothing_more(text):
    assert normalize_text(normalize_text(text)) == normalize_text(text)


@example("T\u00a8")
@given(AWKWARD)
def test_the_normal_form_has_no_white_space_and_no_compatibility_forms(text):
    form = normalize_text(text)
    assert not any(c.isspace() for c in form)
    assert unicodedata.normalize("NFKC", form) == form


@given(st.text(st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_is_the_long_way(text):
    # An accented letter sends a text the long way and is its own normal form.
    assert normalize_text(text + "\u00e9") == normalize_text(text) + "\u00e9"


def test_what_a_copy_may_differ_in_does_not_count():
    text = "Let $ f( x ) $ be Ana\u2019s \ufb01rst function \u2212 say.\r\n"
    assert normalize_text(text) == normalize_text("let $f(x)$ be Ana's first function - say.")


@pytest.mark.parametrize("other", ["Compute $5-3$.", "Compute $5+4$.", "Compute $5+3!$."])
def test_signs_and_numbers_distinguish_problems(other):
    assert normalize_text("Compute $5+3$.") != normalize_text(other)


def test_tokens_are_words_numbers_and_commands():
    assert word_tokens("Find $\\Frac{x_1}{12}$ of \uff13\ufb01gs!") == [
        *("find", "frac", "x", "1", "12", "of", "3", "figs")
    ]
