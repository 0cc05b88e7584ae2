from collections import Counter
from dataclasses import replace

import pytest

from geosd.problems.problem_splits import SplitProblem, generate_splits
from geosd.problems.search.equations import SEARCH
from geosd.problems.sources.search import Search

SIZES = dict(train=120, select_train=30, select_validation=40, test_id=60, test_per_benchmark=50)


def draw_splits(**settings):
    return Search().prepare(settings)


def test_every_split_has_its_size_and_no_question_or_id_appears_twice():
    splits = draw_splits(**SIZES, seed=1)
    everything = [*splits.train, *splits.select, *splits.test]
    counts = Counter(problem.benchmark for problem in everything)
    assert counts == {
        "train": 120,
        "select_train": 30,
        "select_validation": 40,
        "id": 60,
        **{kind.name: 50 for kind in SEARCH.outside},
    }
    assert len({problem.question for problem in everything}) == len(everything)
    assert len({problem.id for problem in everything}) == len(everything)


def test_a_seed_names_its_splits():
    assert draw_splits(**SIZES, seed=1) == draw_splits(**SIZES, seed=1)
    assert draw_splits(**SIZES, seed=1).test != draw_splits(**SIZES, seed=2).test


def test_more_training_problems_leave_the_test_problems_as_they_were():
    more = draw_splits(**{**SIZES, "train": 200}, seed=1)
    assert more.test == draw_splits(**SIZES, seed=1).test


def draw_few(number):
    """Splits of `number` problems of a benchmark that has 22 questions."""
    sizes = dict.fromkeys(("train", "select_train", "select_validation", "test_id"), 0)
    return generate_splits(
        lambda kind, rng: SplitProblem(str(rng.randrange(22)), "0"),
        [SEARCH.in_distribution(), replace(SEARCH.in_distribution(), name="tiny")],
        {**sizes, "test_per_benchmark": number, "seed": 0},
        "few",
    )


def test_repeated_questions_are_dropped_and_counted():
    splits = draw_few(20)
    assert len({problem.question for problem in splits.test}) == 20
    counts = splits.card["benchmarks"]["tiny"]
    assert counts["duplicates_dropped"] > 0
    assert counts["generated"] - counts["duplicates_dropped"] == counts["kept"] == 20


def test_more_questions_than_there_are_is_an_error_with_a_hint():
    with pytest.raises(ValueError, match="'tiny' gave 22 different questions(.|\n)*Hint"):
        draw_few(23)


def test_an_exhausted_world_is_given_up_after_so_many_draws_however_many_are_wanted():
    drawn = []

    def draw_problem(kind, rng):
        drawn.append(rng.randrange(100))
        return SplitProblem(str(drawn[-1]), "0")

    sizes = dict.fromkeys(("test_id", "test_per_benchmark", "select_train", "select_validation"), 5)
    kinds = [SEARCH.in_distribution()] * 2
    generate_splits(draw_problem, kinds, {**sizes, "train": 80, "seed": 0}, "few")
    assert len(set(drawn)) == 100
    drawn.clear()
    with pytest.raises(ValueError, match="'train' gave 80 different .* the last 500 none; 1000000"):
        generate_splits(draw_problem, kinds, {**sizes, "train": 10**6, "seed": 0}, "few")
    assert len(drawn) < 2500
