import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.miniature.prompts import MiniaturePrompts
from geosd.problems.miniature.tokenizer import build_tokenizer
from geosd.problems.search.documents import BLIND, VOCABULARY
from geosd.problems.search.equations import BENCHMARKS, draw_question
from geosd.problems.search.policies import search

PROMPTS = MiniaturePrompts()
TOKENIZER = build_tokenizer(VOCABULARY)


def solved(seed):
    draw = random.Random(seed)
    question = draw_question(draw.choice(BENCHMARKS), draw)
    return str(question), search(question, BLIND, draw)


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_student_and_teacher_prompts_begin_and_end_alike(seed, fraction):
    question, solution = solved(seed)
    student = TOKENIZER(PROMPTS.student(question)).input_ids
    teacher = TOKENIZER(
        PROMPTS.teacher(question, PROMPTS.truncate_solution(solution, fraction))
    ).input_ids
    assert student[-1] == teacher[-1] == TOKENIZER.convert_tokens_to_ids("S:")
    assert student[:-1] == teacher[: len(student) - 1]


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_what_is_revealed_is_a_prefix_of_whole_steps(seed, fraction):
    _, solution = solved(seed)
    revealed = PROMPTS.truncate_solution(solution, fraction)
    steps = solution.split(" ; ")
    shown = revealed.split(" ; ") if revealed else []
    assert steps[: len(shown)] == shown
    assert abs(len(shown) - fraction * len(steps)) <= 1


@given(st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_more_privilege_never_reveals_less(seed, first, second):
    _, solution = solved(seed)
    less, more = sorted((first, second))
    assert PROMPTS.truncate_solution(solution, more).startswith(
        PROMPTS.truncate_solution(solution, less)
    )


@given(st.integers(0, 2**32), st.floats(0, 1, exclude_max=True))
def test_only_full_privilege_reveals_the_answer(seed, fraction):
    _, solution = solved(seed)
    assert PROMPTS.truncate_solution(solution, 1.0) == solution
    assert "A:" not in PROMPTS.truncate_solution(solution, fraction)


def test_no_privilege_reveals_nothing():
    assert PROMPTS.truncate_solution("1 + 1 = 2 ; A: 2", 0.0) == ""
    assert PROMPTS.teacher("1 + 1", "") == "Q: 1 + 1 R: S:"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_outside_the_unit_interval_is_refused(fraction):
    with pytest.raises(ValueError, match="privilege is .*"):
        PROMPTS.truncate_solution("1 + 1 = 2 ; A: 2", fraction)
