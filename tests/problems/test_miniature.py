"""The miniature's grader, prompts, tokenizer and held-out questions."""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from geosd.problems.miniature import (
    END,
    PAD,
    MiniatureGrader,
    MiniaturePrompts,
    build_miniature_tokenizer,
    is_held_out_of_miniature,
)
from geosd.problems.search.corpora import BLIND, VOCABULARY, draw_corpus_solution
from geosd.problems.search.equations import SEARCH, draw_equations
from geosd.problems.sources import get_data_source

PROMPTS = MiniaturePrompts()
TOKENIZER = build_miniature_tokenizer(VOCABULARY)
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


def solved(seed):
    draw = random.Random(seed)
    question = draw_equations(draw.choice(SEARCH.benchmarks), draw)
    return str(question), draw_corpus_solution(question, BLIND, draw)


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_student_and_teacher_prompts_begin_and_end_alike(seed, fraction):
    question, solution = solved(seed)
    student = TOKENIZER(PROMPTS.student(question)).input_ids
    teacher = TOKENIZER(
        PROMPTS.teacher(question, PROMPTS.revealed_solution(solution, fraction))
    ).input_ids
    assert student[-1] == teacher[-1] == TOKENIZER.convert_tokens_to_ids("S:")
    assert student[:-1] == teacher[: len(student) - 1]


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_what_is_revealed_is_a_prefix_of_whole_steps(seed, fraction):
    _, solution = solved(seed)
    revealed = PROMPTS.revealed_solution(solution, fraction)
    steps = solution.split(" ; ")
    shown = revealed.split(" ; ") if revealed else []
    assert steps[: len(shown)] == shown
    assert abs(len(shown) - fraction * len(steps)) <= 1


@given(st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_more_privilege_never_reveals_less(seed, first, second):
    _, solution = solved(seed)
    less, more = sorted((first, second))
    assert PROMPTS.revealed_solution(solution, more).startswith(
        PROMPTS.revealed_solution(solution, less)
    )


@given(st.integers(0, 2**32), st.floats(0, 1, exclude_max=True))
def test_only_full_privilege_reveals_the_answer(seed, fraction):
    _, solution = solved(seed)
    assert PROMPTS.revealed_solution(solution, 1.0) == solution
    assert "A:" not in PROMPTS.revealed_solution(solution, fraction)


def test_no_privilege_reveals_nothing():
    assert PROMPTS.revealed_solution("1 + 1 = 2 ; A: 2", 0.0) == ""
    assert PROMPTS.teacher("1 + 1", "") == "Q: 1 + 1 R: S:"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_outside_the_unit_interval_is_refused(fraction):
    with pytest.raises(ValueError, match="privilege is .*"):
        PROMPTS.revealed_solution("1 + 1 = 2 ; A: 2", fraction)


def test_unknown_words_are_marked_and_never_dropped():
    assert TOKENIZER("7 plus 8").input_ids[1] == TOKENIZER.unk_token_id


def test_the_saved_tokenizer_is_the_same_tokenizer(tmp_path):
    TOKENIZER.save_pretrained(tmp_path)
    opened = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert opened.convert_tokens_to_ids(list(VOCABULARY)) == list(range(len(VOCABULARY)))
    assert (opened.pad_token, opened.eos_token) == (PAD, END)
    text = "Q: 7 + 8 S: 7 + 8 = 5 ; A: 5"
    ids = opened(text).input_ids
    assert opened.decode([*ids, opened.eos_token_id], skip_special_tokens=True) == text


@pytest.mark.parametrize("name", ["search", "search-wide"])
def test_every_problem_of_a_search_world_is_held_out_and_worked_where_pi_0_cannot(name):
    sizes = dict(train=40, select_train=10, select_validation=10, test_id=20, test_per_benchmark=10)
    splits = get_data_source(name).prepare({**sizes, "seed": 3})
    problems = [*splits.train, *splits.select, *splits.test]
    assert len(problems) == 120
    assert all(is_held_out_of_miniature(problem.question) for problem in problems)
    worked = splits.card.get("worked_solutions", {})
    assert len(worked) == (120 if name == "search-wide" else 0)
    grade = MiniatureGrader()
    assert all(grade(worked[p.id], p.answer).correct for p in problems if worked)
    if name == "search":  # those of the shipped studies
        text = repr((splits.train, splits.test))
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == "2541cb6e70941c10"


def test_one_question_in_eight_is_held_out_in_each_benchmark():
    rng = random.Random(0)
    for benchmark in SEARCH.benchmarks:
        drawn = [is_held_out_of_miniature(str(draw_equations(benchmark, rng))) for _ in range(4000)]
        # Four standard errors of a share of 1/8 in 4,000 draws.
        assert abs(sum(drawn) / len(drawn) - 1 / 8) < 0.021
