"""avg@k counts every problem alike, and refuses files in which problems are not alike."""

from __future__ import annotations

import pytest

from geosd.problems.records import SampleRecord
from geosd.scores.avg_and_pass_at_k import avg_at_k
from geosd.scores.samples_by_problem import ProblemCounts, UnevenSamplesError, count_correct


def sample(problem: str, number: int, correct: bool, benchmark: str = "id") -> SampleRecord:
    return SampleRecord(benchmark, problem, number, "text", 3, "1", correct, "stop")


def test_avg_at_k_is_the_mean_over_problems_of_the_share_correct():
    rows = [sample("a", 0, True), sample("a", 1, False), sample("b", 0, True), sample("b", 1, True)]
    assert count_correct(rows) == [ProblemCounts("id", "a", 2, 1), ProblemCounts("id", "b", 2, 2)]
    assert avg_at_k(count_correct(rows)) == 0.75


def test_problems_of_the_same_id_in_two_benchmarks_are_two_problems():
    rows = [sample("a", 0, True), sample("a", 0, False, "long")]
    assert count_correct(rows) == [ProblemCounts("id", "a", 1, 1), ProblemCounts("long", "a", 1, 0)]


def test_a_missing_sample_is_named():
    rows = [sample("a", 0, True), sample("a", 1, True), sample("b", 0, True)]
    with pytest.raises(UnevenSamplesError, match="(?s)1 for b of id; 2 for a of id.*Hint:"):
        count_correct(rows)


def test_a_repeated_sample_is_named():
    with pytest.raises(UnevenSamplesError, match="(?s)problem a of id.*twice.*Hint:"):
        count_correct([sample("a", 0, True), sample("a", 0, True)])


def test_no_problems_is_an_error_not_a_zero():
    with pytest.raises(ValueError, match="Hint:"):
        avg_at_k([])
