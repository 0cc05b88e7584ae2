import random

from geosd.problems.held_out import is_held_out
from geosd.problems.search.equations import BENCHMARKS, draw_question
from geosd.problems.sources import get_data_source

SIZES = {
    "train": 40,
    "select_train": 10,
    "select_validation": 10,
    "test_id": 20,
    "test_per_benchmark": 10,
    "seed": 3,
}


def test_every_problem_of_the_search_world_is_held_out():
    splits = get_data_source("search").prepare(SIZES)
    problems = [*splits.train, *splits.select, *splits.test]
    assert len(problems) == 120
    assert all(is_held_out(problem.question) for problem in problems)


def test_one_question_in_eight_is_held_out_in_each_benchmark():
    rng = random.Random(0)
    for benchmark in BENCHMARKS:
        drawn = [is_held_out(str(draw_question(benchmark, rng))) for _ in range(4000)]
        # Four standard errors of a share of 1/8 in 4,000 draws.
        assert abs(sum(drawn) / len(drawn) - 1 / 8) < 0.021
