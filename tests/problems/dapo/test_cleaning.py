import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.dapo.raw_files import DamagedRowError, RawProblem
from geosd.problems.dapo.splits import clean_problems

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
    with pytest.raises(DamagedRowError, match="names two different rows(.|\n)*Hint:"):
        clean_problems([RawProblem("a", "Find $x$.", "1"), RawProblem("a", "Find $y$.", "1")])


@given(st.integers())
def test_the_order_of_the_rows_does_not_matter(seed):
    shuffled = random.Random(seed).sample(ROWS, len(ROWS))
    cleaned, of_shuffled = clean_problems(ROWS), clean_problems(shuffled)
    assert list(cleaned.rows.items()) == list(of_shuffled.rows.items())
    assert (cleaned.excluded, cleaned.conflicts) == (of_shuffled.excluded, of_shuffled.conflicts)
