from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from geosd.problems.encoding import Encoding
from geosd.problems.grading import GradingVerdict
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts, build_miniature_tokenizer
from geosd.problems.records import Problem
from geosd.problems.search.corpora import VOCABULARY
from geosd.sampling.graded_sampler import GradedDraw, GradedSampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import Completion, SamplingParams
from geosd.sampling.solution_pool import (
    count_pool,
    graded_solutions,
    pool_solutions,
    pool_summary,
    require_pool_solutions,
)

PROBLEMS = [Problem("a", "train", "1 + 1", "2"), Problem("b", "train", "2 + 2", "4")]
CORRECT, LONGER, WRONG = "1 + 1 = 2 ; A: 2", "1 + 1 = 2 ; 2 + 0 = 2 ; A: 2", "1 + 1 = 3 ; A: 3"


class Scripted:
    """A sampler whose completions are given texts."""

    def __init__(self, texts, finish="stop"):
        self.texts, self.finish = texts, finish

    chunk = 1

    def sample_chunks(self, batches, sampling, finished):
        assert [len(batch.prompts) for batch in batches] == [len(self.texts)]
        ids = build_miniature_tokenizer(VOCABULARY)
        for place, text in enumerate(self.texts):
            yield {place: Completion(tuple(ids(text).input_ids), self.finish)}

    def record(self):
        return {}


def pool(texts, keep=10, finish="stop", grade=None, opens_thought=False):
    encoding = Encoding(build_miniature_tokenizer(VOCABULARY), MiniaturePrompts())
    encoding.opens_thought = opens_thought
    with TemporaryDirectory() as scratch:
        kept = KeptSamples(Path(scratch), "a job")
        drawn, grade = Scripted(texts, finish), grade or MiniatureGrader()
        sampler = GradedSampler(drawn, encoding, grade, kept)
        rollouts = sampler.draw([GradedDraw(PROBLEMS, range(4), 0)], SamplingParams(1.0, 1.0, 8))
    return pool_solutions(PROBLEMS, rollouts, keep)


def test_only_distinct_verified_solutions_are_kept_in_the_order_drawn():
    first, second = pool([WRONG, CORRECT, CORRECT, LONGER] + [WRONG] * 4)
    assert first.solutions == (CORRECT, LONGER)
    assert (first.drawn, first.verified) == (4, 3)
    assert second.solutions == ()


def test_given_solutions_are_graded_and_stand_before_rollouts():
    given = graded_solutions(PROBLEMS, {"a": LONGER, "b": WRONG}, MiniatureGrader())
    rollouts = [replace(given[0], text=CORRECT), replace(given[0], text=LONGER)]
    first, second = pool_solutions(PROBLEMS, [*given, *rollouts], 10)
    assert first.solutions == (LONGER, CORRECT) and (first.drawn, first.verified) == (3, 3)
    assert second.solutions == () and second.reasons == {"wrong answer": 1}
    with pytest.raises(
        ValueError, match=r"(?s)no worked solution of any.*Hint: set pool.solutions"
    ):
        graded_solutions(PROBLEMS, {"c": CORRECT}, MiniatureGrader())


def test_no_more_than_the_cap_are_kept():
    first, _ = pool([CORRECT, LONGER, CORRECT, LONGER] + [WRONG] * 4, keep=1)
    assert first.solutions == (CORRECT,)


def test_a_truncated_rollout_is_no_solution():
    first, _ = pool([CORRECT] * 4 + [WRONG] * 4, finish="length")
    assert first.solutions == () and first.verified == 0
    assert first.reasons == {"truncated": 4}


def test_a_rollout_in_a_thought_that_the_prompt_opened_is_judged_as_one():
    first, _ = pool([CORRECT] * 8, grade=TypedGrader(), opens_thought=True)
    assert first.reasons == {"no answer": 4}


def test_exclusions_are_counted():
    rows = pool([WRONG, CORRECT, CORRECT, LONGER] + [WRONG] * 4)
    assert count_pool(rows) == {
        "problems": 2,
        "problems_without_solution_excluded": 1,
        "problems_trained_on": 1,
        "rollouts_drawn": 8,
        "rollouts_undecided": 0,
        "rollouts_by_reason": {"correct": 3, "wrong answer": 5},
        "rollouts_verified": 3,
        "distinct_solutions_kept": 2,
    }


def test_answers_that_the_grader_cannot_decide_on_are_counted_and_not_kept():
    def undecided(response, gold):
        return GradingVerdict("2", False, "timeout" if response == CORRECT else "wrong answer")

    rows = pool([CORRECT, CORRECT, WRONG, LONGER] + [WRONG] * 4, grade=undecided)
    assert [(row.verified, row.undecided) for row in rows] == [(0, 2), (0, 0)]
    assert count_pool(rows)["rollouts_undecided"] == 2


def test_a_pool_with_solutions_of_too_few_problems_is_refused_and_says_how_it_was_judged():
    rows = pool([CORRECT, WRONG, "1 + 1", LONGER] + [WRONG] * 4)
    summary = pool_summary(rows)
    assert summary.startswith("1 of the 2 training problems have a verified solution;")
    assert summary.endswith("8 rollouts: 5 wrong answer, 2 correct, 1 no answer")
    require_pool_solutions(rows, 0.5)
    with pytest.raises(ValueError, match="(?s)1 of the 2 .*5 wrong answer.*50.0%.*51.0%.*Hint:"):
        require_pool_solutions(rows, 0.51)
