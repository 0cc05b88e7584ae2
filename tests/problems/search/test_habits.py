"""Habits of responses that are written by hand, and of those that a policy writes."""

import random
import time

import pytest

from geosd.problems.records import SampleRecord
from geosd.problems.search.corpora import CorpusPolicy, draw_corpus_solution
from geosd.problems.search.equations import EquationPair
from geosd.problems.search.habits import HABITS, habit_shares, read_habit_trials
from geosd.scores.sample_tables import sample_habit_rows

QUESTION = EquationPair((6, 3, 5), (7, 1, 14))  # x is 11; 3 solves the first equation too


def sample(text, benchmark="id", finish="stop", number=0):
    return SampleRecord(benchmark, "p", number, text, len(text.split()), None, False, finish)


@pytest.mark.parametrize(
    ("text", "trials"),
    [
        ("7 10 13 ; 3 2 5 ok A: 3", "7 fails, 3 passes"),
        ("7 10  13 ; 3 2 5 ok A: 3 7 10 13 ;", "7 fails, 3 passes"),  # nothing after the answer
        (
            "3 2 5 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11",
            "3 repeat passes check check_fails, 11 passes check",
        ),
        ("3 2 5 ok 5", "3 passes"),  # cut in the check
        ("3 2 5 ok", "3 passes"),  # cut before it
        ("7 10 13 ; 3 2", "7 fails"),  # cut in a trial
        ("7 10 13 ; A: 7", "7 fails"),
        ("7 10 ; 3 2 5 ok A: 3", ""),  # no trial: a number is missing
        ("; ok 3 2 5 ok", ""),
        ("A: 3", ""),
        ("", ""),
    ],
)
def test_trials_are_read_with_their_verdicts(text, trials):
    kinds = ("repeat", "fails", "passes", "check", "check_fails")
    found = [[t["x"], *(kind for kind in kinds if t[kind])] for t in read_habit_trials(text)]
    assert ", ".join(map(" ".join, found)) == trials


def test_a_long_response_without_an_end_takes_linear_time():
    text = "1 " * 200_000
    started = time.process_time()
    assert list(read_habit_trials(text)) == []
    assert time.process_time() - started < 1


def test_each_habit_is_a_share_of_its_occasions():
    shares = habit_shares(
        [
            sample("7 10 13 ; 7 10 13 10 13 ; 3 2 5 ok A: 3"),  # 7 is retried and repeated
            sample("3 2 5 ok 5 6 ; 3 2 5 ok A: 3"),  # 3 failed its check, and is not checked again
            sample("12 8 11 ; 13 14 1 ;", finish="length"),
            sample("13 14 1 ; 1", finish="length"),
        ]
    )
    assert shares == pytest.approx(
        {
            "first_low": 100 * 1 / 4,  # 3 of 7, 3, 12, 13
            "first_high": 100 * 2 / 4,
            "repeats": 100 * 1 / 8,
            "checks": 100 * 1 / 3,
            "retries": 100 * 2 / 4,  # of 7, 3 / 3 / 13
            "truncated": 100 * 2 / 4,
        }
    )
    assert list(shares) == list(HABITS)


def test_a_habit_without_occasion_has_no_share():
    assert habit_shares([sample("ok ok ok", finish="length")]) == {"truncated": 100.0}


def test_the_habits_of_a_policy_are_its_probabilities():
    policy, rng = CorpusPolicy((1.0,) * 16, check=0.25, repeat=0.4), random.Random(0)
    shares = habit_shares(
        [sample(draw_corpus_solution(QUESTION, policy, rng)) for _ in range(1500)]
    )
    assert shares["retries"] == shares["truncated"] == 0  # no policy of the world retries
    # Five standard errors of a share of 1,500 are at most 6.5 points.
    expected = {"first_low": 37.5, "first_high": 25.0, "repeats": 40.0, "checks": 25.0}
    assert {name: shares[name] for name in expected} == pytest.approx(expected, abs=6.5)


def test_ood_habits_are_means_of_benchmarks_that_all_have_them():
    rows = sample_habit_rows(
        [
            sample("7 10 13 ; 7 10 13 ;", "mixed", "length"),
            sample("7 10 13 ; 3 2 5 ok A: 3", "mixed", number=1),
            sample("3 2 5 ok A: 3", "large"),
            sample("12 8 11 ;", "id"),
        ]
    )
    of_ood = {habit: value for name, habit, value in rows if name == "ood_avg"}
    assert of_ood == pytest.approx(
        {"first_low": 50, "first_high": 0, "repeats": 0, "checks": 0, "truncated": 25}
    )  # no trial follows a failed one in `large`, so there is no mean of retries
    assert {name for name, *_ in rows} == {"mixed", "large", "id", "ood_avg"}
