import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geosd.training.packing import pack

tokens = st.lists(st.integers(1, 50), max_size=6)
filled = st.lists(st.integers(1, 50), min_size=1, max_size=6)


@given(st.lists(st.tuples(filled, filled, tokens), min_size=1, max_size=5))
def test_every_position_is_one_before_its_response_token(rows):
    students, teachers, responses = zip(*rows, strict=True)
    for prompts in (students, teachers):
        packed = pack(prompts, responses, pad_id=0)
        predicted = packed.ids[packed.row, packed.column + 1]
        assert torch.equal(predicted, packed.token)
        assert packed.token.tolist() == [token for response in responses for token in response]


@given(st.lists(st.tuples(filled, filled, tokens), min_size=1, max_size=5))
def test_student_and_teacher_list_the_same_tokens_in_the_same_order(rows):
    students, teachers, responses = zip(*rows, strict=True)
    student, teacher = pack(students, responses, 0), pack(teachers, responses, 0)
    assert torch.equal(student.token, teacher.token)
    assert torch.equal(student.row, teacher.row)


def test_the_first_response_token_is_predicted_at_the_last_prompt_token():
    packed = pack([[5, 6, 7], [5]], [[8, 9], [4]], pad_id=0)
    assert packed.column.tolist() == [2, 3, 0]
    assert packed.row.tolist() == [0, 0, 1]
    assert packed.ids.tolist() == [[5, 6, 7, 8, 9], [5, 4, 0, 0, 0]]
    assert packed.mask.sum(1).tolist() == [5, 2]


def test_an_empty_prompt_is_refused_because_nothing_predicts_its_first_token():
    with pytest.raises(ValueError, match="prompt 1 is empty.*\n?.*Hint"):
        pack([[1], []], [[2], [3]], pad_id=0)


def test_a_missing_response_is_refused():
    with pytest.raises(ValueError, match="2 prompts but 1 responses"):
        pack([[1], [2]], [[3]], pad_id=0)


@given(st.lists(tokens, min_size=1, max_size=4), tokens)
def test_the_common_prefix_is_the_longest_that_all_rows_begin_with(rows, start):
    rows = [[*start, *row] for row in rows]
    length = pack([[*row, 1] for row in rows], [[1]] * len(rows), pad_id=0).common_prefix
    assert length >= len(start)
    assert all(row[:length] == rows[0][:length] for row in rows)
    assert any(row[: length + 1] != rows[0][: length + 1] or len(row) == length for row in rows)


def test_the_token_that_predicts_a_response_is_no_part_of_the_common_prefix():
    assert pack([[5, 6, 7], [5, 6, 7]], [[8, 9], [4]], pad_id=0).common_prefix == 2
    assert pack([[5, 6, 7], [5]], [[8, 9], [4]], pad_id=0).common_prefix == 0
