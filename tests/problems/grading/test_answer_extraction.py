import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.grading.answer_extraction import extract_answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"so \boxed{7}.", "7"),
        (r"\boxed{3}, no, wait: \boxed{4}", "4"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{x : x > \frac12\right\}}", r"\left\{x : x > \frac12\right\}"),
        (r"the cut-off \boxed{5} and \boxed{6", "5"),
        (r"\fbox{9}", "9"),
        (r"\boxed 9", "9"),
        (r"$x = -\boxed{256}$", "-256"),
        (r"$3 -\boxed{2}$", "3 -2"),
        (r"$2\boxed{3}=6$", "2(3)"),
        (r"$\boxed{3}5$", "(3)5"),
        (r"$2\,\boxed{x}$", r"2\,(x)"),
        (r"\boxed{\boxed{8}}", r"\boxed{8}"),
        (r"\\boxed{\\frac{1}{2}}", r"\\frac{1}{2}"),
    ],
)
def test_the_last_whole_box_is_the_answer(response, answer):
    assert extract_answer(response) == answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (r"\boxed{1} and \boxed{2}", "1, 2"),
        (r"$\boxed{(1, 2)}$, $\boxed{(2, 1)}$", "(1, 2), (2, 1)"),
        (r"\boxed{7} or \boxed{8}", "7, 8"),
        (r"\boxed{840} \boxed{840}", "840"),
        (r"first \boxed{1}, then x, \boxed{2}", "2"),
    ],
)
def test_boxes_side_by_side_are_one_list(response, answer):
    assert extract_answer(response) == answer


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("... \nAnswer: 12", "12"),
        ("... \n**Answer:** 12\n", "12"),
        ("### Final Answer: $\\frac{1}{2}$.", r"\frac{1}{2}"),
        ("Answer: 3\nno\nAnswer: 4", "4"),
        ("7 + 8 = 15\nA: 15", "15"),
        ("Final Answer: The final answer is $x+1$. I hope it is correct.", "x+1"),
        ("Answer：12", "12"),
        ("The answer is 130.", "130"),
        ("The answer is $57.00.", "$57.00"),
        ("so the answer to the question is 5 cm. That was easy.", "5 cm"),
        ("The answer is 3, no: the answer is 7.", "7"),
    ],
)
def test_without_a_box_the_stated_answer_counts(response, answer):
    assert extract_answer(response) == answer


def test_a_box_goes_before_an_answer_line():
    assert extract_answer("\\boxed{1}\nAnswer: 2") == "1"


def test_only_what_follows_the_thoughts_counts():
    assert extract_answer(r"<think>maybe \boxed{1}</think> It is \boxed{2}.") == "2"
    assert extract_answer(r"<think>\boxed{1}</think> I do not know.") is None


def test_a_number_that_is_not_called_an_answer_counts_only_as_a_guess():
    response = "Then $x = 4$, and 4 + 1 is 5"
    assert extract_answer(response) is None
    assert extract_answer(response, guess=True) == "5"
    assert extract_answer("so that $x = 4$.", guess=True) == "x = 4"
    assert extract_answer("no numbers", guess=True) is None


@given(st.text(alphabet="\\{}boxed answer:A$.,()0123-\n*"), st.booleans())
def test_no_text_breaks_the_extraction(text, guess):
    found = extract_answer(text, guess=guess)
    assert found is None or isinstance(found, str)


@given(st.recursive(st.just("x"), lambda inner: st.builds("{{{}}}y{{{}}}".format, inner, inner)))
def test_what_is_in_a_box_comes_out_of_it(content):
    assert extract_answer(f"therefore $\\boxed{{{content}}}$ .") == content


@pytest.mark.parametrize("text", [r"\boxed{" * 5000, "\n" * 50000, "answer: " * 4000, "$" * 30000])
def test_a_loop_of_a_model_is_not_slow(text):
    start = time.monotonic()
    extract_answer(text, guess=True)
    assert time.monotonic() - start < 5
