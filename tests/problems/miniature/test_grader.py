import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.miniature.grader import MiniatureGrader

grade = MiniatureGrader()


@given(st.integers(-999, 999), st.integers(-999, 999))
def test_a_response_is_correct_exactly_when_its_integer_is_the_gold_one(answer, gold):
    verdict = grade(f"7 + 8 = 5 ; A: {answer}", str(gold))
    assert verdict.correct == (answer == gold)
    assert verdict.answer == str(answer)


@pytest.mark.parametrize("text", ["A: 6", "A : 6", "A:6", "A: 06", "5 ; A: 6", "A: 6 extra words"])
def test_the_form_of_the_answer_does_not_matter(text):
    assert grade(text, "6").correct


def test_the_last_answer_counts():
    assert grade("A: 3 ; A: 6", "6").correct
    assert grade("A: 6 ; A: 3", "6").reason == "wrong answer"


@pytest.mark.parametrize("text", ["", "7 + 8 = 6", "6", "A:", "A: x", "7 + 8 = 6 ; A", "A: 6x"])
def test_a_response_without_an_answer_is_wrong_and_says_so(text):
    verdict = grade(text, "6")
    assert (verdict.answer, verdict.correct, verdict.reason) == (None, False, "no answer")


@given(st.text())
def test_no_text_breaks_the_grader(text):
    assert grade(text, "6").reason in ("correct", "wrong answer", "no answer")


def test_a_gold_answer_that_is_no_integer_is_refused():
    with pytest.raises(ValueError, match="'seven'.*\n?.*Hint"):
        grade("A: 7", "seven")
