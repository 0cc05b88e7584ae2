"""Samples in the files of lm-eval, as its source writes them, and back."""

import json

import pytest

from geosd.cli.grade import main
from geosd.json_lines import DamagedLineError, write_jsonl
from geosd.problems.records import Problem, SampleRecord

GOLD = "She sold 48/2 = <<48/2=24>>24 clips.\n#### 1,024"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def lm_eval_line(doc_id, response, filter_, correct, target=GOLD):
    """A line of `samples_gsm8k_*.jsonl`: gsm8k has two filters, so each response has two lines."""
    return {
        "doc_id": doc_id,
        "doc": {"question": "How many?", "answer": target},
        "target": target,
        "arguments": {
            "gen_args_0": {"arg_0": "Question: How many?\nAnswer:", "arg_1": {"until": []}}
        },
        "resps": [[response]],
        "filtered_resps": ["[invalid]"],
        "filter": filter_,
        "metrics": ["exact_match"],
        "doc_hash": "0" * 64,
        "prompt_hash": "0" * 64,
        "target_hash": "0" * 64,
        "exact_match": correct,
    }


def test_a_file_of_lm_eval_is_graded_and_each_filter_that_disagrees_is_named(tmp_path, capsys):
    source = tmp_path / "samples_gsm8k_cot_2026-01-31T12-00-00.000000.jsonl"
    responses = {0: "The answer is 1024.", 1: r"so \boxed{7}"}
    verdicts = {(0, "strict-match"): 0.0, (0, "flexible-extract"): 1.0}
    rows = [
        lm_eval_line(number, text, name, verdicts.get((number, name), 0.0))
        for name in ("strict-match", "flexible-extract")
        for number, text in responses.items()
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(source, tmp_path / "out.jsonl")
    first, second = lines(tmp_path / "out.jsonl")
    assert (first["benchmark"], first["problem_id"], first["gold"]) == ("gsm8k_cot", "0", "1,024")
    assert first["question"] == "Question: How many?\nAnswer:"
    assert (first["correct"], second["correct"], second["answer"]) == (True, False, "7")
    assert first["verdicts"] == {
        "exact_match,strict-match": 0.0,
        "exact_match,flexible-extract": 1.0,
    }
    assert first["disagrees"] == ["exact_match,strict-match"] and "disagrees" not in second
    said = capsys.readouterr().out
    assert "2 rows: 1 correct, 1 wrong answer" in said
    assert "1 of 4 verdicts of the file disagree" in said
    assert "gsm8k_cot 0: exact_match,strict-match 0, here 1: 1024 (correct); right is 1,024" in said


def test_of_several_responses_averages_alone_are_compared(tmp_path, capsys):
    source = tmp_path / "samples_aime24_2026-01-31T12-00-00.000000.jsonl"
    texts = [r"\boxed{204}", r"\boxed{204}", "none", r"\boxed{5}"]
    line = lm_eval_line(3, "", "none", 1.0, target=r"ANSWER: it is $\boxed{204}$.")
    line |= {"resps": [texts], "avg@4": 0.25, "pass@1": 0.5, "pass@16": 0.0}
    source.write_text(json.dumps(line) + "\n")
    main(source, tmp_path / "out.jsonl")
    rows = lines(tmp_path / "out.jsonl")
    assert [row["correct"] for row in rows] == [True, True, False, False]
    assert [row["sample"] for row in rows] == [0, 1, 2, 3]
    assert {(row["benchmark"], row["problem_id"], row["gold"]) for row in rows} == {
        ("aime24", "3", "204")  # of a worked solution its answer
    }
    said = capsys.readouterr().out
    assert "1 of 2 verdicts of the file disagree" in said
    assert "aime24 3: avg@4,none 0.25, here 0.5: 204 (correct)" in said


def test_samples_of_geosd_are_graded_by_the_answers_of_their_problems(tmp_path, capsys):
    problems = [
        Problem(f"{b}-{i}", b, f"What is {i}?", str(i)) for b in ("id", "far") for i in (0, 7)
    ]
    samples = [
        SampleRecord(p.benchmark, p.id, k, text, 9, *verdict)
        for p in problems
        for k, (text, verdict) in enumerate(
            [
                (r"é \boxed{7}", ("7", p.answer == "7", "stop", None)),
                (r"\boxed{7}", (None, False, "length", "truncated")),
                ("", (None, False, "stop", "no answer")),
            ]
        )
    ]
    write_jsonl(tmp_path / "samples.jsonl", samples)
    write_jsonl(tmp_path / "test.jsonl", problems)
    main(tmp_path / "samples.jsonl", tmp_path / "out.jsonl", problems=tmp_path / "test.jsonl")
    assert "0 of 12 verdicts of the file disagree" in capsys.readouterr().out
    rows = lines(tmp_path / "out.jsonl")
    assert [row["correct"] for row in rows] == [sample.correct for sample in samples]
    assert [row["question"] for row in rows[::3]] == [problem.question for problem in problems]


def test_what_is_not_as_its_format_has_it_is_named_with_its_row(tmp_path):
    out = tmp_path / "out.jsonl"
    (tmp_path / "rows.parquet").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(DamagedLineError, match=r"(?s)rows.parquet:1: .*Hint"):
        main(tmp_path / "rows.parquet", out)
    bad = tmp_path / "samples_x_y.jsonl"
    bad.write_text(json.dumps(lm_eval_line(0, "7", "none", 1.0) | {"resps": [[7]]}) + "\n")
    with pytest.raises(DamagedLineError, match=r"(?s)jsonl:1: .*resps.*Hint"):
        main(bad, out)
    sample = {"benchmark": "id", "problem_id": "a", "text": "7"}
    bad.write_text(json.dumps(sample) + "\n")
    with pytest.raises(DamagedLineError, match="(?s)hold no right answer: name their --problems"):
        main(bad, out)
    assert not out.exists()
