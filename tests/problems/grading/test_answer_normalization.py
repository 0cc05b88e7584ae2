import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.grading.answer_comparison import units_agree
from geosd.problems.grading.answer_normalization import answer_as_words, normalize_answer


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ("$7$.", "7"),
        (r"\(7\)", "7"),
        (r"\[ 7 \]", "7"),
        (r"\boxed{7}", "7"),
        ("**73**", "73"),
        ("−3", "-3"),
        ("７", "7"),
        ("1,000", "1000"),
        (r"10{,}000", "10000"),
        (r"11,\! 111,\! 111", "11111111"),
        (r"32\,348", "32348"),
        ("118 000", "118000"),
        (r"\$32,\!348", "32348"),
        ("$57.00", "57.00"),
        (r"50\%", "50"),
        ("50 percent", "50"),
        (r"145^\circ", "145"),
        ("145°", "145"),
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\frac1{72}", r"\frac{1}{72}"),
        (r"\\frac{1}{2}", r"\frac{1}{2}"),
        (r"\left( 1, 2 \right)", "(1, 2)"),
        ("x²", "x^{2}"),
        (r"1\text{ and }2", "1, 2"),
        ("1 or 2", "1, 2"),
        (r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}", r"\begin{pmatrix}1\\-2\end{pmatrix}"),
        (r"1-\frac{1}{\mathrm{e}}", r"1-\frac{1}{e}"),
        ("(1,000)", "(1, 000)"),
        ("1,2,345", "1, 2, 345"),
        (r"\sin(60^\circ)", r"\sin(\frac{60\pi}{180})"),
        ("3 pi", r"3\pi"),
        (r"0.1\overline{6}", r"\frac{1}{6}"),
        ("(((x+1)))", "(x+1)"),
        (r"\textcolor{blue}{7}", "7"),
    ],
)
def test_presentation_is_taken_away_and_nothing_else(written, body):
    assert normalize_answer(written).body == body


@pytest.mark.parametrize(
    ("written", "body", "unit"),
    [
        (r"12\text{ cm}", "12", "cm"),
        (r"864 \mbox{ inches}^2", "864", "square inch"),
        (r"5.4 \text{ cents}", "5.4", "cent"),
        ("12 km/h", "12", "km per hour"),
        (r"\frac{1}{2} hour", r"\frac{1}{2}", "hour"),
        (r"12^{\mathrm{th}} \text{ grade}", "12", "grade"),
        ("2516_8", "2516", "base 8"),
    ],
)
def test_a_unit_is_set_apart(written, body, unit):
    form = normalize_answer(written)
    assert (form.body, form.unit, form.units_known) == (body, unit, True)


@pytest.mark.parametrize(
    ("gold", "answer", "agree"),
    [
        (r"12\text{ cm}", "12", True),
        ("12", r"12\text{ cm}", True),
        ("3 inches", "3 inch", True),
        ("12 km/h", "12 kilometers per hour", True),
        (r"12\text{ cm}", r"12\text{ m}", False),
        (r"12\text{ cm}", r"12\text{ cm}^2", False),
        ("2516_8", "2516_9", False),
        ("2516_8", "2516", True),
        ("2516", "2516_8", False),
        ("12", r"12\text{ million}", None),
        (r"12\text{ million}", r"12\text{ million}", True),
        (r"12\text{ million}", "12", False),
        (r"12\text{ grade }", "12", True),
    ],
)
def test_a_unit_may_be_left_out_and_neither_replaced_nor_multiply(gold, answer, agree):
    assert units_agree(normalize_answer(gold), normalize_answer(answer)) is agree


@pytest.mark.parametrize(
    "sign", ["€", r"\$", r"\text{ }", r"\,\,", "~", "\N{ZERO WIDTH SPACE}", "$$"]
)
def test_nothing_that_is_removed_joins_two_numbers(sign):
    assert normalize_answer(f"12{sign}13").body != "1213"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (r"\text{Evelyn}", "Evelyn"),
        (r"\text{(C)}", "C"),
        ("(C)", "C"),
        ("east", "east"),
        (r"\text{no real roots}", "no real roots"),
        ("x+1", None),
        ("7", None),
        ("(1, 2)", None),
    ],
)
def test_an_answer_of_letters_is_a_word(body, word):
    assert answer_as_words(body) == word


@given(st.text(max_size=60))
def test_no_text_breaks_it_and_twice_is_once(text):
    body = normalize_answer(text).body
    assert isinstance(body, str)


@given(st.integers(-(10**12), 10**12))
def test_thousands_separators_of_every_kind_are_joined(number):
    grouped = f"{number:,}"
    for separator in (",", "{,}", r",\!", r"\,"):
        assert normalize_answer(grouped.replace(",", separator)).body == str(number)
