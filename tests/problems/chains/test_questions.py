"""Answers are computed again here by tables of counted steps, not by the world's arithmetic."""

import random

from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.chains.questions import BENCHMARKS, MULTIPLIERS, draw_question, evaluate, solve
from geosd.problems.grading.miniature_grader import MiniatureGrader

RING = "0123456789" * 10


def counted(chain):
    """Walks around a ring of ten digits: no operator of Python's touches a value."""
    words = chain.split()
    at = RING.index(words[0])
    for operator, digit in zip(words[1::2], words[2::2], strict=True):
        if operator == "+":
            for _ in range(int(digit)):
                at = RING.index(RING[at + 1])
        elif operator == "-":
            for _ in range(int(digit)):
                at = RING.index(RING[at + 9])
        else:
            walked = 0
            for _ in range(int(digit)):
                for _ in range(at):
                    walked = RING.index(RING[walked + 1])
            at = walked
    return at


questions = st.builds(
    lambda kind, seed: draw_question(kind, random.Random(seed)),
    st.sampled_from(BENCHMARKS),
    st.integers(0, 2**32),
)
seeds = st.integers(0, 2**32)


@given(questions)
def test_answers_are_those_of_counting_around_the_ring(question):
    assert evaluate(question) == counted(question)


@given(questions, seeds)
def test_every_step_of_a_solution_is_true_and_the_chain_is_consumed_in_order(question, seed):
    *steps, final = solve(question, random.Random(seed), (0.5, 0.35, 0.15)).split(" ; ")
    consumed, value = [], question.split()[0]
    for step in steps:
        chain, result = step.split(" = ")
        assert chain.split()[0] == value
        assert str(counted(chain)) == result
        assert 1 <= len(chain.split()) // 2 <= 3
        consumed += chain.split()[1:]
        value = result
    assert consumed == question.split()[1:]
    assert final == f"A: {value}"


@given(questions, seeds)
def test_every_solution_passes_the_grader(question, seed):
    solution = solve(question, random.Random(seed), (0.5, 0.35, 0.15))
    assert MiniatureGrader()(solution, str(counted(question))).correct


def test_a_jump_distribution_with_one_length_gives_steps_of_that_length():
    draw = random.Random(0)
    assert solve("1 + 2 + 3", draw, (1.0, 0.0, 0.0)) == "1 + 2 = 3 ; 3 + 3 = 6 ; A: 6"
    assert solve("1 + 2 + 3", draw, (0.0, 1.0, 0.0)) == "1 + 2 + 3 = 6 ; A: 6"


def test_questions_have_the_length_and_the_share_of_products_that_their_benchmark_says():
    for kind in BENCHMARKS:
        drawn = [draw_question(kind, random.Random(seed)).split() for seed in range(2000)]
        lengths = {len(words) // 2 for words in drawn}
        assert (min(lengths), max(lengths)) == kind.operations
        operators = [word for words in drawn for word in words[1::2]]
        # 2000 chains of at least two operations: four standard errors are below .04.
        assert abs(operators.count("*") / len(operators) - kind.times) < 0.04


def test_multiplication_never_forgets_its_factor():
    for multiplier in MULTIPLIERS:
        assert len({evaluate(f"{value} * {multiplier}") for value in range(10)}) == 10
