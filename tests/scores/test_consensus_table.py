"""The consensus table, against counts by hand and against the scores of the same samples."""

from __future__ import annotations

import random

import pytest

from geosd.problems.records import SampleRecord
from geosd.scores import consensus as agreement
from geosd.scores import score_table as scores
from geosd.scores.tidy import COLUMNS, read_tidy, tidy_rows_of_runs


def problem(benchmark: str, number: int, answers: str, gold: str = "a") -> list[SampleRecord]:
    """Samples of one problem; a dot is no answer."""
    return [
        SampleRecord(
            benchmark, f"{benchmark}-{number}", k, "", 3, None if a == "." else a, a == gold, "stop"
        )
        for k, a in enumerate(answers)
    ]


BY_HAND = [
    *problem("id", 0, "bbbb"),  # in distribution: counts nowhere
    *problem("long", 0, "bbbc"),  # C = .75, wrong: false consensus
    *problem("long", 1, "aaab"),  # C = .75, right
    *problem("easy", 0, "aaaa"),  # C = 1
    *problem("easy", 1, "bb.."),  # C = .5, wrong
    *problem("easy", 2, "...."),  # C = 0
    *problem("easy", 3, "aabc"),  # C = .5, right
]


def test_by_hand():
    rows = agreement.consensus_rows(BY_HAND, first=4)
    assert [row for row in rows if row[0] == "false_consensus"] == [
        ("false_consensus", 0.75, 6, pytest.approx(100 * (1 / 2 + 0 / 4) / 2))
    ]
    assert [row[1:] for row in rows if row[0] == "majority_accuracy"] == [
        (0.0, 1, 0.0),
        (0.5, 2, 50.0),
        (0.75, 2, 50.0),
        (1.0, 1, 100.0),
    ]
    passed = {row[1]: row[3] for row in rows if row[0] == "pass@k"}
    assert list(passed) == [1, 2, 3, 4]
    assert passed[1] == pytest.approx(100 * ((3 / 4) / 2 + (1 + 1 / 2) / 4) / 2)
    assert passed[4] == pytest.approx(100 * (1 / 2 + 2 / 4) / 2)


def test_samples_beyond_the_first_count_for_coverage_alone():
    rows = agreement.consensus_rows(problem("long", 0, "bbbcaa"), first=4)
    assert [row[2:] for row in rows if row[0] == "false_consensus"] == [(1, 100.0)]
    assert [row[1:] for row in rows if row[0] == "majority_accuracy"] == [(0.75, 1, 0.0)]
    passed = {row[1]: row[3] for row in rows if row[0] == "pass@k"}
    assert list(passed) == [1, 2, 3, 4, 5, 6]
    assert passed[1] == pytest.approx(100 * 2 / 6) and passed[5] == pytest.approx(100)


def test_it_agrees_with_the_scores_of_the_same_samples(tmp_path):
    draw = random.Random(3)
    rows = [
        sample
        for benchmark in ("id", "long", "easy")
        for p in range(8)
        for sample in problem(benchmark, p, "".join(draw.choices("aabc.", k=16)))
    ]
    run = scores.ScoredRun("m", "geosd", 0)
    table = tidy_rows_of_runs("consensus", {run: agreement.consensus_rows(rows, first=16)})
    table.to_csv(tmp_path / "consensus.csv", index=False)
    table = read_tidy("consensus", tmp_path / "consensus.csv").set_index(["quantity", "x"])["value"]
    scored = scores.collect_scores({run: scores.score_run(rows, (1, 4, 16))})
    for k in (1, 4, 16):
        expected = scores.scores_by_seed(scored, "m", "geosd", "ood_avg", "pass@k", k)[0]
        assert table["pass@k", k] == pytest.approx(expected)
    false = scores.scores_by_seed(scored, "m", "geosd", "ood_avg", "false_consensus")[0]
    assert table["false_consensus", 0.75] == pytest.approx(false)


def test_a_selection_has_no_ood_problem_and_so_no_row():
    agreed = agreement.consensus_rows(problem("select_validation", 0, "ab"), first=2)
    table = tidy_rows_of_runs("consensus", {scores.ScoredRun("m", "geosd", 0): agreed})
    assert table.empty and list(table.columns) == list(COLUMNS["consensus"])
