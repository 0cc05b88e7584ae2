"""The same samples give the same bytes on every Python: no sum that is written hangs on `sum`.

Since Python 3.12 `sum` of floats is compensated, and before it is not.
"""

from __future__ import annotations

import builtins
import math
import random

import pytest

from geosd.problems.records import SampleRecord
from geosd.scores.avg_and_pass_at_k import avg_at_k, mean_pass_at_k, pass_at_k
from geosd.scores.consensus import consensus_rows
from geosd.scores.samples_by_problem import ProblemCounts
from geosd.scores.score_table import score_run
from geosd.scores.statistics import GroupStatistics, contrast_test


def added_in_turn(values, start=0):
    """`sum` of Python 3.11."""
    for value in values:
        start = start + value
    return start


def compensated(values, start=0):
    """`sum` of Python 3.12: Neumaier's, of floats; integers are exact in both."""
    values = list(values)
    if not any(isinstance(value, float) for value in values):
        return added_in_turn(values, start)
    total, lost = float(start), 0.0
    for value in map(float, values):
        added = total + value
        larger, smaller = (total, value) if abs(total) >= abs(value) else (value, total)
        lost += (larger - added) + smaller
        total = added
    return total + lost


def samples():
    draw = random.Random(2)
    return [
        SampleRecord(
            name, f"{name}-{problem}", k, "", draw.randrange(40), "1" if ok else "2", ok, "stop"
        )
        for name in ("id", "long", "easy")
        for problem in range(50)
        for k in range(12)
        for ok in [draw.random() < 0.4]
    ]


def written():
    """Every number that is written of the samples of a run, and of a test of three groups."""
    rows = samples()
    groups = [GroupStatistics.of([draw / 7 for draw in range(n, 2 * n)]) for n in (3, 5, 7)]
    return [
        score_run(rows, (1, 2, 4, 8)).to_csv(),
        consensus_rows(rows, 8),
        contrast_test(groups),
    ]


def test_what_is_written_is_the_same_whichever_way_python_adds(monkeypatch):
    shares = [0.1] * 10
    assert added_in_turn(shares) != compensated(shares) == math.fsum(shares)
    found = []
    for way in (added_in_turn, compensated):
        with monkeypatch.context() as patched:
            patched.setattr(builtins, "sum", way)
            found.append(written())
    assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_means_over_problems_are_those_of_exact_sums(k):
    draw = random.Random(1)
    counts = [ProblemCounts("id", str(n), 12, draw.randrange(13)) for n in range(200)]
    shares = [tally.c / 12 for tally in counts]
    assert added_in_turn(shares) != math.fsum(shares)
    assert avg_at_k(counts) == math.fsum(shares) / 200
    passed = [pass_at_k(12, tally.c, k) for tally in counts]
    assert mean_pass_at_k(counts, k) == math.fsum(passed) / 200
