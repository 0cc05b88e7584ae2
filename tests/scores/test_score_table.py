"""Scores of a sample file small enough to count by hand."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from geosd.files import DamagedFileError
from geosd.json_lines import write_jsonl
from geosd.problems.records import SampleRecord
from geosd.scores import score_table as scores
from geosd.scores.sample_tables import check_sample_problems, read_sample_table
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import COLUMNS, read_tidy


def rows(benchmark: str, problem: str, answers: str, gold: str, cut: int = 0) -> list[SampleRecord]:
    """One sample per character; `-` is no answer; the first `cut` samples met the cap."""

    def reason(i, answer):
        if i < cut or answer == "-":
            return "truncated" if i < cut else "no answer"
        return "correct" if answer == gold else "wrong answer"

    return [
        SampleRecord(benchmark, problem, i, "", 10 + i, None if a == "-" else a, a == gold,
               "length" if i < cut else "stop", reason(i, a))
        for i, a in enumerate(answers)
    ]  # fmt: skip


SAMPLES = [
    *rows("id", "i1", "1112", "1"),
    *rows("id", "i2", "-222", "1", cut=1),
    *rows("long", "l1", "3333", "3"),
    *rows("long", "l2", "4453", "3"),
    *rows("easy", "e1", "777-", "7"),
]


@pytest.fixture
def table(tmp_path) -> pd.DataFrame:
    run, file = ScoredRun("m", "geosd", 3), tmp_path / "samples.jsonl"
    write_jsonl(file, SAMPLES)
    return scores.collect_scores({run: scores.score_run(read_sample_table(run, file), [1, 2, 4])})


def of(table, benchmark, metric, k=4):
    chosen = table.query("benchmark == @benchmark and metric == @metric and k == @k")
    assert len(chosen) == 1
    return chosen["value"].item()


def test_every_metric_of_a_benchmark_by_hand(table):
    assert of(table, "id", "avg@k") == pytest.approx(100 * (3 / 4 + 0) / 2)
    assert of(table, "long", "avg@k") == pytest.approx(100 * (1 + 1 / 4) / 2)
    assert of(table, "long", "pass@k", 2) == pytest.approx(100 * (1 + 1 / 2) / 2)
    assert of(table, "long", "pass@k", 4) == 100
    assert of(table, "id", "maj@k") == 50
    assert of(table, "id", "false_consensus") == 50  # i2: three of four say 2, wrong
    assert of(table, "long", "false_consensus") == 0  # l2: two of four
    assert of(table, "id", "truncated") == 12.5 and of(table, "id", "no_answer") == 0
    assert of(table, "easy", "truncated") == 0 and of(table, "easy", "no_answer") == 25
    assert of(table, "ood_avg", "no_answer") == 12.5
    assert of(table, "id", "tokens") == pytest.approx(11.5)


def test_the_ood_average_is_over_benchmarks_and_leaves_id_out(table):
    assert of(table, "ood_avg", "avg@k") == pytest.approx((62.5 + 75) / 2)
    assert set(table.query("benchmark == 'ood_avg'")["split"]) == {"OOD"}
    assert dict(zip(table["benchmark"], table["split"], strict=True))["id"] == "ID"


def test_the_table_is_tidy_and_reads_back_equal(table, tmp_path):
    assert list(table.columns) == list(COLUMNS["scores"])
    assert not table.duplicated(["model", "variant", "seed", "benchmark", "metric", "k"]).any()
    table.to_csv(tmp_path / "scores.csv", index=False)
    pd.testing.assert_frame_equal(
        read_tidy("scores", tmp_path / "scores.csv"), table, check_dtype=False, rtol=1e-12
    )


COUNTS = {
    **{"problems": 8, "problems_trained_on": 6, "rollouts_drawn": 32, "rollouts_verified": 20},
    "rollouts_by_reason": {"correct": 20, "truncated": 8, "no answer": 3, "unreadable": 1},
}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"problems": "8"}, "problems: "),
        ({"problems": 0, "problems_trained_on": 0}, "0 of 0"),
        ({"problems_trained_on": 9}, "problems_trained_on is 9 of 8"),
        ({"rollouts_drawn": 33}, "32 of 33 rollouts have a reason"),
        ({"rollouts_by_reason": {"luck": 32}}, "rollouts_by_reason"),
        ({"rollouts_by_reason": None}, "rollouts_by_reason"),
    ],
)
def test_counts_of_a_pool_that_contradict_each_other_are_named(tmp_path, changed, problem):
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS | changed))
    with pytest.raises(DamagedFileError, match=f"(?s)counts.json: .*{problem}.*Hint:"):
        scores.score_pool(tmp_path / "counts.json")


def test_the_pool_of_a_run_has_rows_of_its_own(tmp_path):
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS))
    rows = scores.score_pool(tmp_path / "counts.json")
    assert set(rows["benchmark"]) == {"pool"} and set(rows["split"]) == {"train"}
    assert dict(zip(rows["metric"], rows["value"], strict=True)) == {
        **{"with_solution": 75.0, "truncated": 25.0, "no_answer": 9.375, "unreadable": 3.125},
        **{"timeout": 0.0, "crash": 0.0},
    }
    assert set(rows["k"]) == {4}


def test_values_are_per_seed_and_take_the_largest_k():
    scored = scores.score_run(SAMPLES, [1, 4])
    table = scores.collect_scores({ScoredRun("m", "geosd", seed): scored for seed in (1, 0)})
    assert scores.scores_by_seed(table, "m", "geosd", "long", "pass@k").to_dict() == {
        0: 100,
        1: 100,
    }
    assert scores.scores_by_seed(table, "m", "geosd", "long", "pass@k", 1).to_dict() == {
        0: 62.5,
        1: 62.5,
    }
    assert scores.scores_by_seed(table, "m", "absent", "long", "pass@k").empty
    assert scores.scored_ood_benchmarks(table, "m") == ["long", "easy"]


def test_a_missing_sample_file_names_the_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)fwdkl, seed 2, on m.*Hint:"):
        read_sample_table(ScoredRun("m", "fwdkl", 2), tmp_path / "samples.jsonl")


def test_runs_on_other_benchmarks_are_not_averaged_together():
    whole = scores.score_run(SAMPLES, [1])
    part = scores.score_run([s for s in SAMPLES if s.benchmark != "easy"], [1])
    with pytest.raises(ValueError, match="(?s)seed=1.* has benchmarks.*easy.*Hint:"):
        scores.collect_scores({ScoredRun("m", "geosd", 0): whole, ScoredRun("m", "geosd", 1): part})


def test_a_table_without_its_columns_is_refused(tmp_path):
    (tmp_path / "scores.csv").write_text("model,value\nm,1\n")
    with pytest.raises(ValueError, match="(?s)missing column variant.*Hint:"):
        read_tidy("scores", tmp_path / "scores.csv")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda rows: rows.clear(), ": holds no sample"),
        (lambda rows: rows.pop(1), ":2: sample is 2; expected 1 of i1"),
        (lambda rows: rows.append(rows[0]), ":21: sample is 0; expected 4 of i1"),
        (lambda rows: put(rows, 2, tokens=-1), ":3: tokens is -1; expected 0 or more"),
        (lambda rows: put(rows, 0, reason="wrong answer"), ":1: correct is True; expected what"),
        (lambda rows: put(rows, 3, reason="correct"), ":4: correct is False; expected what"),
        (lambda rows: put(rows, 1, finish="length"), ":2: answer is '1'; expected none of a trunc"),
    ],
)
def test_samples_that_contradict_each_other_are_named(tmp_path, change, problem):
    run, file = ScoredRun("m", "geosd", 3), tmp_path / "samples.jsonl"
    damaged = list(SAMPLES)
    change(damaged)
    write_jsonl(file, damaged)
    with pytest.raises(DamagedFileError, match=f"^{file}{problem}(.|\\n)*Hint: `rm {file}`"):
        read_sample_table(run, file)


def put(rows, at, **changes):
    rows[at] = replace(rows[at], **changes)


def test_a_file_that_lacks_samples_of_another_run_is_named():
    whole = Counter((s.benchmark, s.problem_id) for s in SAMPLES)
    check_sample_problems({Path("a"): whole, Path("b"): whole.copy()})
    half = Counter((s.benchmark, s.problem_id) for s in SAMPLES[:10])
    with pytest.raises(DamagedFileError, match="^b: lacks 10 samples .* the first 2 of l1 of long"):
        check_sample_problems({Path("a"): whole, Path("b"): half})


def test_benchmarks_of_unequal_samples_have_a_mean_and_no_pass_at_k_that_one_lacks():
    def samples(benchmark, right, of):
        return [
            SampleRecord(
                benchmark,
                f"{benchmark}1",
                i,
                "",
                5,
                "1",
                i < right,
                "stop",
                "correct" if i < right else "wrong answer",
            )
            for i in range(of)
        ]

    table = scores.score_run([*samples("aime24", 1, 8), *samples("math500", 2, 4)], [1, 2, 8])
    found = table.set_index(["benchmark", "metric", "k"])["value"]
    assert found["ood_avg", "avg@k", 4] == (100 / 8 + 50) / 2
    assert found["aime24", "avg@k", 8] == 100 / 8 and found["aime24", "pass@k", 8] == 100
    assert ("math500", "pass@k", 8) not in found.index
    assert ("ood_avg", "pass@k", 8) not in found.index and ("ood_avg", "pass@k", 2) in found.index
