"""What the program of the criteria counts in a response."""

import importlib.util
import random
import sys
from collections import Counter

import pytest

from geosd.problems.search.corpora import CorpusPolicy, draw_corpus_solution
from geosd.problems.search.equations import EquationPair

QUESTION = EquationPair((6, 3, 5), (7, 1, 14))  # x is 11; 3 solves the first equation too


@pytest.fixture(scope="module")
def program(root):
    spec = importlib.util.spec_from_file_location(
        "search_criteria", root / "analysis/search_criteria.py"
    )
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counted(program, text):
    values, verdicts = Counter(), Counter()
    program.count_operations(QUESTION, text.split(), values, verdicts)
    return (values[True], values[False]), (verdicts[True], verdicts[False])


@pytest.mark.parametrize(
    ("text", "values", "verdicts"),
    [
        ("7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11", (10, 0), (5, 0)),
        ("7 10 13 10 13 ; 3 2 5 2 5 ok A: 3", (8, 0), (2, 0)),
        ("7 11 13 ; 3 2 5 ok A: 3", (3, 1), (2, 0)),  # a wrong product
        ("7 10 13 ok A: 7", (2, 0), (0, 1)),  # 13 is not 5
        ("3 2 5 ok 5 6 ok A: 3", (4, 0), (1, 1)),  # 6 is not 14
        ("3 2 5 ; 7 10 13", (2, 0), (0, 1)),  # 5 is 5, and the cap cut the second trial
        ("; 7 10 13 ;", (0, 1), (0, 0)),  # no trial at all
    ],
)
def test_numbers_and_comparisons_are_counted(program, text, values, verdicts):
    assert counted(program, text) == (values, verdicts)


def test_nothing_is_wrong_in_what_a_policy_writes(program):
    for seed in range(200):
        text = draw_corpus_solution(
            QUESTION, CorpusPolicy((1.0,) * 16, 0.5, 0.5), random.Random(seed)
        )
        (_, wrong), (_, false) = counted(program, text)
        assert wrong == false == 0


def test_consensus_is_false_from_three_quarters_on_of_all_samples(program):
    def sample(answer, right):
        return program.Sample(answer, right, answer is not None, (), "")

    wrong, right, cut = sample("3", False), sample("11", True), sample(None, False)
    assert program.falsely_agreed([wrong] * 12 + [cut] * 4)
    assert not program.falsely_agreed([wrong] * 11 + [cut] * 5)
    assert not program.falsely_agreed([right] * 16) and not program.falsely_agreed([cut] * 16)


def test_the_change_between_two_bases_is_paired_by_problem(program):
    first = program.Measured(accuracy={"a": [0.1, 0.5, 0.9], "b": [0.0, 0.2]})
    second = program.Measured(accuracy={"a": [0.2, 0.6, 1.0], "b": [0.1, 0.5]})
    change, error = program.difference(first, second, ["a", "b"])
    # Means of 10 and 20 points; the first has no spread, the second sd 14.14 of two problems.
    assert (change, error) == (pytest.approx(15.0), pytest.approx(5.0))
