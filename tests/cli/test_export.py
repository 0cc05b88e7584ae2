"""A run that was sampled is exported in the format Every Eval Ever, whose own schemas hold it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from geosd.cli import export
from geosd.json_lines import read_jsonl
from geosd.problems.records import Problem, SampleRecord
from geosd.provenance.manifest import read_manifest
from geosd.scores.every_eval_ever import Evaluator, exported_run
from geosd.scores.score_table import ScoredRun

SCHEMAS = Path(__file__).parents[1] / "scores/every_eval_ever"


def validator(name):
    """A validator of one of the format's schemas; each of the schemas is sound itself."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.fixture(scope="module")
def exported(small, tmp_path_factory):
    """The export of a run that was sampled, and what it was made of."""
    folder = small.sampled(tmp_path_factory.mktemp("export") / "evaluated")
    problems = read_jsonl(small.folder / "data/test.jsonl", Problem)
    samples = read_jsonl(folder / "samples.jsonl", SampleRecord)
    made = exported_run(
        "quick",
        ScoredRun("mini-qwen3", "pi_0", 0, 0),
        samples,
        problems,
        read_manifest(folder),
        Evaluator("Ada", "first_party"),
        7,
    )
    return SimpleNamespace(folder=folder, problems=problems, samples=samples, made=made)


@pytest.mark.slow
def test_aggregate_and_rows_are_as_the_schemas_say(exported):
    validator("eval").validate(exported.made.aggregate)
    rows = validator("instance_level_eval")
    for row in exported.made.rows:
        rows.validate(row)
    broken = {**exported.made.rows[0], "interaction_type": "none"}
    with pytest.raises(jsonschema.ValidationError):
        rows.validate(broken)


@pytest.mark.slow
def test_scores_are_the_shares_of_right_samples(exported):
    shares = defaultdict(lambda: defaultdict(list))
    for sample in exported.samples:
        shares[sample.benchmark][sample.problem_id].append(sample.correct)
    results = {
        each["evaluation_name"]: each for each in exported.made.aggregate["evaluation_results"]
    }
    assert results.keys() == shares.keys()
    for benchmark, of_problems in shares.items():
        means = [sum(each) / len(each) for each in of_problems.values()]
        details = results[benchmark]["score_details"]
        assert details["score"] == pytest.approx(sum(means) / len(means))
        assert details["uncertainty"]["num_samples"] == len(of_problems)


@pytest.mark.slow
def test_every_sample_has_its_row_with_question_text_and_verdict(exported):
    asked = {(each.benchmark, each.id): each for each in exported.problems}
    detailed = exported.made.aggregate["detailed_evaluation_results"]
    assert detailed["total_rows"] == len(exported.samples) == len(exported.made.rows)
    for sample, row in zip(exported.samples, exported.made.rows, strict=True):
        problem = asked[sample.benchmark, sample.problem_id]
        assert row["input"] == {"raw": problem.question, "reference": [problem.answer]}
        assert row["output"]["raw"] == [sample.text]
        assert row["evaluation"]["is_correct"] is sample.correct
        assert bool(row["answer_attribution"]) == (sample.answer is not None)
        assert "token_usage" not in row and "performance" not in row  # nobody measured them


@pytest.mark.slow
def test_the_program_writes_each_run_with_the_hash_of_its_rows(exported, tmp_path, monkeypatch):
    folder = exported.folder
    row = SimpleNamespace(model="mini-qwen3", variant="pi_0", seed=0, draw=0, evaluate=str(folder))
    monkeypatch.setattr(export, "read_run_folders", lambda index: [row])
    monkeypatch.setattr(export, "RESULTS", str(tmp_path / "results"))
    params = Path(__file__).parents[2] / "params.yaml"
    with pytest.raises(FileNotFoundError, match=r"(?s)quick is not finished.*Hint: make run"):
        export.main("quick", tmp_path / "out", "Ada", params=params)
    (tmp_path / "results/quick").mkdir(parents=True)
    (tmp_path / "results/quick/runs.csv").touch()
    export.main("quick", tmp_path / "out", "Ada", created=7, params=params)
    (aggregate,) = (tmp_path / "out").rglob("*.json")
    values = json.loads(aggregate.read_text(encoding="utf-8"))
    validator("eval").validate(values)
    detailed = values["detailed_evaluation_results"]
    rows = (tmp_path / "out" / detailed["file_path"]).read_bytes()
    assert hashlib.sha256(rows).hexdigest() == detailed["checksum"]
    assert len(rows.splitlines()) == detailed["total_rows"]
