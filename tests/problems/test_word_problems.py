"""Word problems are right: an independent reading of their text gives their answer."""

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.sources import get_data_source
from geosd.problems.sources.word_problems import IN_DISTRIBUTION, KINDS, draw_story

GROWS = "buys|picks|earns|gets \\d|get on|finds|gives [A-Z]\\w+ \\d+ stamps|arrive|adds"
SHRINKS = "eats|gives \\d|spends|pays|loses|trades|get off|fly away|takes"
SIZES = {"train": 60, "select_train": 5, "select_validation": 5}
SETTINGS = {**SIZES, "test_id": 20, "test_per_benchmark": 10, "seed": 0}


def read(question):
    """The answer that follows from the question's words alone."""
    *statements, last = re.split(r"(?<=[.?]) ", question)
    assert last.startswith("How many")
    value = int(re.search(r"\d+", statements[0])[0])
    for sentence in statements[1:]:
        if found := re.search("doubles|triples", sentence):
            value *= {"doubles": 2, "triples": 3}[found[0]]
            continue
        n = int(re.search(r"\d+", sentence)[0])
        grows, shrinks = re.search(GROWS, sentence), re.search(SHRINKS, sentence)
        assert bool(grows) != bool(shrinks), sentence
        value += n if grows else -n
        assert value > 0
    return value


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_the_answer_is_what_the_words_say(kind, seed):
    story = draw_story(kind, random.Random(seed))
    assert str(read(story.question)) == story.answer


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_every_calculation_of_the_worked_solution_is_right_and_the_grader_agrees(kind, seed):
    story = draw_story(kind, random.Random(seed))
    steps = re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)", story.solution)
    assert kind.steps[0] <= len(steps) <= kind.steps[1]
    for before, sign, n, after in steps:
        result = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[sign](int(before), int(n))
        assert result == int(after)
    assert any(sign == "*" for _, sign, *_ in steps) == kind.multiplied
    verdict = TypedGrader()(story.solution, story.answer)
    assert verdict.reason == "correct"


def test_splits_share_no_question_and_are_what_their_names_say():
    prepared = get_data_source("word-problems").prepare(SETTINGS)
    everything = (*prepared.train, *prepared.select, *prepared.test)
    assert len({problem.question for problem in everything}) == len(everything)
    assert Counter(problem.benchmark for problem in everything) == {
        **SIZES,
        "id": 20,
        **dict.fromkeys(("large", "times", "scenes"), 10),
    }
    for problem in everything:
        assert read(problem.question) == int(problem.answer)
        solution = prepared.card["worked_solutions"][problem.id]
        assert solution.endswith(f"Answer: {problem.answer}")


def test_a_larger_training_set_leaves_the_test_problems_alone():
    test = get_data_source("word-problems").prepare(SETTINGS).test
    assert get_data_source("word-problems").prepare({**SETTINGS, "train": 90}).test == test
    assert get_data_source("word-problems").prepare({**SETTINGS, "seed": 1}).test != test


@pytest.mark.parametrize("sizes", [{"test_per_benchmark": None}, {"train": 10**7}])
def test_what_cannot_be_drawn_is_refused(sizes, monkeypatch):
    monkeypatch.setattr("geosd.problems.problem_splits.FRUITLESS", 0)
    with pytest.raises(ValueError, match="Hint:"):
        get_data_source("word-problems").prepare({**SETTINGS, **sizes})


def test_numbers_lie_where_the_kind_says():
    for kind in KINDS:
        draw = random.Random(0)
        found = [
            int(n) for _ in range(200) for n in re.findall(r"\d+", draw_story(kind, draw).question)
        ]
        assert min(found) >= kind.numbers[0] and max(found) <= kind.numbers[1]
    assert IN_DISTRIBUTION is KINDS[0]
