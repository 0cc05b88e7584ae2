"""Majority, strength and false consensus, by hand and where the paper leaves a choice."""

from __future__ import annotations

from geosd.problems.records import SampleRecord
from geosd.scores.consensus import consensus, false_consensus_rate, majority_accuracy


def problem(name: str, answers: list[str | None], gold: str) -> list[SampleRecord]:
    return [
        SampleRecord("long", name, i, "", 1, a, a is not None and float(a) == float(gold), "stop")
        for i, a in enumerate(answers)
    ]


def test_strength_is_the_share_of_all_samples_with_the_majority_answer():
    [found] = consensus(problem("x", ["3", "3", "4", None], "3"))
    assert (found.majority, found.strength, found.correct) == ("3", 0.5, True)


def test_three_of_four_on_a_wrong_answer_is_false_consensus_at_the_papers_threshold():
    [found] = consensus(problem("x", ["4", "4", "4", "3"], "3"))
    assert found.strength == 0.75 and found.is_false()
    assert not found.is_false(threshold=0.76)


def test_twelve_of_sixteen_counts_and_eleven_does_not():
    for wrong, expected in ((12, True), (11, False)):
        [found] = consensus(problem("x", ["4"] * wrong + ["3"] * (16 - wrong), "3"))
        assert found.is_false() is expected


def test_agreeing_on_no_answer_is_no_consensus():
    [found] = consensus(problem("x", [None] * 4, "3"))
    assert (found.majority, found.strength, found.correct) == (None, 0.0, False)
    assert not found.is_false()
    [found] = consensus(problem("x", [None, None, None, "4"], "3"))
    assert (found.majority, found.strength) == ("4", 0.25)


def test_correct_answers_are_one_answer_however_they_are_written():
    [found] = consensus(problem("x", ["4", "4", "3", "3.0", "03"], "3"))
    assert (found.majority, found.correct, found.strength) == ("3", True, 0.6)


def test_a_tie_goes_to_the_answer_seen_first():
    [found] = consensus(problem("x", ["4", "3", "3", "4"], "3"))
    assert (found.majority, found.correct) == ("4", False)


def test_rates_are_shares_of_problems():
    rows = (
        problem("x", ["3"] * 4, "3") + problem("y", ["4"] * 4, "3") + problem("z", ["5"] * 4, "3")
    )
    found = consensus(rows + problem("w", ["4", "5", "6", "3"], "3"))
    assert majority_accuracy(found) == 0.25
    assert false_consensus_rate(found) == 0.5
