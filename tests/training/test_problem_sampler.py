from collections import Counter

import pytest

from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.training.rollouts import RolloutProblemSampler

PROBLEMS = [Problem(f"p{i}", "train", f"q{i}", str(i)) for i in range(10)]
POOL = [
    PooledSolutionsRecord(f"p{i}", tuple(f"s{i}{j}" for j in range(i % 4)), drawn=4, verified=i % 4)
    for i in range(10)
]


def test_problems_without_a_verified_solution_are_never_drawn():
    problem_sampler = RolloutProblemSampler(PROBLEMS, POOL, seed=0)
    seen = {problem.id for step in range(20) for problem in problem_sampler.batch(step, 3)}
    assert seen == {f"p{i}" for i in range(10) if i % 4}


def test_an_epoch_shows_each_problem_once_also_where_it_ends_inside_a_step():
    problem_sampler = RolloutProblemSampler(PROBLEMS, POOL, seed=1)
    drawn = [problem.id for step in range(7) for problem in problem_sampler.batch(step, 3)]
    for epoch in range(3):
        assert len(set(drawn[epoch * 7 : (epoch + 1) * 7])) == 7
    assert drawn[:7] != drawn[7:14]


def test_a_draw_depends_on_the_seed_and_the_step_alone():
    fresh = RolloutProblemSampler(PROBLEMS, POOL, seed=3).batch(5, 4)
    used = RolloutProblemSampler(PROBLEMS, POOL, seed=3)
    for step in range(5):
        used.batch(step, 4)
    assert used.batch(5, 4) == fresh
    assert RolloutProblemSampler(PROBLEMS, POOL, seed=4).batch(5, 4) != fresh


def test_solutions_of_a_problem_are_drawn_about_equally_often():
    problem_sampler, problem = RolloutProblemSampler(PROBLEMS, POOL, seed=0), PROBLEMS[3]
    counts = Counter(problem_sampler.solution(problem, step) for step in range(3000))
    # Three solutions, 3000 draws: standard deviation 26, so 5 of them are 130.
    assert set(counts) == {"s30", "s31", "s32"}
    assert all(abs(count - 1000) < 130 for count in counts.values())


def test_a_pool_without_any_solution_says_what_to_do():
    empty = [PooledSolutionsRecord(p.id, (), drawn=4, verified=0) for p in PROBLEMS]
    with pytest.raises(ValueError, match="none of the 10 training problems.*\n?.*Hint"):
        RolloutProblemSampler(PROBLEMS, empty, seed=0)
