from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.grading.answer_comparison import _stated_value, compare_answers, compare_exactly
from geosd.problems.grading.exact_numbers import LONGEST_NUMBER, is_integer, read_number


@given(st.integers(-(10**30), 10**30), st.integers(0, 5))
def test_an_integer_is_read_exactly_in_every_form(number, zeros):
    sign, digits = ("-" if number < 0 else ""), str(abs(number))
    forms = [
        str(number),
        f"{sign}{'0' * zeros}{digits}",
        f"{number}.0" + "0" * zeros,
        f"{number}/1",
        rf"\frac{{{number * 3}}}{{3}}",
        f"x = {number}",
        f"f(x) = {number}",
        f"m + n = {number}",
        f"{{{number}}}",
    ]
    assert {read_number(_stated_value(form)) for form in forms} == {Fraction(number)}


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**6))
def test_a_ratio_is_read_exactly(top, bottom):
    assert read_number(f"{top}/{bottom}") == Fraction(top, bottom)
    assert read_number(rf"\frac{{{top}}}{{{bottom}}}") == Fraction(top, bottom)


def test_neighbours_of_a_large_integer_stay_apart():
    assert read_number("105263157894736842") != read_number("105263157894736848")
    assert read_number(str(2**53)) != read_number(str(2**53 + 1))


def test_a_mixed_number_is_a_sum():
    assert read_number(r"918\frac{1}{2}") == read_number("918 1/2") == Fraction(1837, 2)
    assert read_number(r"-1\frac{1}{2}") == Fraction(-3, 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1/0",
        r"\frac{1}{0}",
        "2e",
        "e3",
        "1e",
        "1,2",
        r"\sqrt{2}",
        "x^2 = 4",
        "2x + y = 0",
        "a=1, b=2",
    ]
    + ["x >= 5", "1 2", "٣x", "9" * (LONGEST_NUMBER + 1), "__import__('os')"],
)
def test_anything_else_is_not_read(text):
    assert read_number(text) is None


@given(st.text(max_size=40))
def test_no_text_breaks_it(text):
    assert read_number(text) is None or isinstance(read_number(text), Fraction)


def test_a_gold_is_an_integer_only_as_plain_digits():
    assert is_integer("0") and is_integer(" -12 ") and is_integer("070")
    assert not any(map(is_integer, ["2.0", "1/2", "", "x", r"336^\circ", "1,000"]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2^{10}", 1024),
        (r"\sqrt{49}", 7),
        (r"\frac{1}{2^{99}}", Fraction(1, 2**99)),
        ("5!", 120),
        (r"\binom{5}{2}", 10),
        ("3(4+1)", 15),
        (r"2\sqrt{\frac{9}{4}}", 3),
        ("-2^2", -4),
        ("10^{-2}", Fraction(1, 100)),
        ("1.5+.5", 2),
        ("1e3", 1000),
        ("-4.5E-02", Fraction(-9, 200)),
        ("2/1e3", Fraction(1, 500)),
        (r"\binom{90000}{2}", 4049955000),
    ],
)
def test_arithmetic_is_computed_exactly(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text", ["10^{10^{10}}", "9^{9^{9}}", "2^{20001}", "999!^{99}", "1e99999", "3000!"]
)
def test_a_number_too_large_for_an_answer_is_not_computed(text):
    with pytest.raises(OverflowError):
        read_number(text)
    assert compare_exactly(r"\frac{1}{2}", text) == "unreadable"


@pytest.mark.parametrize("text", ["1(2", "print(1)", "2**3", "1 if 2 else 3", "0x10", "1_0", "()"])
def test_arithmetic_is_no_python(text):
    assert read_number(text) in (None, 8)


@pytest.mark.parametrize(
    "answer",
    [
        r"1+\frac{x}{1+" * 11 + "2" + "}" * 11,
        "x^{" * 5 + "2" + "}" * 5,
        r"\sin(" * 6 + "x" + ")" * 6,
    ]
    + ["((" * 6 + "x+1)^2+1)" * 6, r"\sqrt{2+" * 11 + "2" + "}" * 11],
)
def test_beyond_ten_levels_nothing_is_read(answer):
    assert compare_answers(r"\frac{x}{3}", answer) == "unreadable"
