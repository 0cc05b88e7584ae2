"""From checkpoints to the scored responses of a study, and to the page that shows them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
import yaml
from scipy.special import softmax
from transformers import AutoModelForCausalLM

from geosd.cli import samples_page, token_probabilities
from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import load_tokenizer
from geosd.problems.encoding import encoding_of
from geosd.problems.records import Problem
from geosd.scores.scored_responses import ScoredResponse


@pytest.fixture(scope="module")
def study(small, tmp_path_factory):
    """Study quick with two methods, and the student of one of them."""
    folder = tmp_path_factory.mktemp("scored")
    values = yaml.safe_load(small.shared["params"].read_text())
    values["studies"]["quick"] |= {"methods": ["pi_0", "geosd"], "seeds": [0]}
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    small.trained(folder / "student", params=params)
    return folder


def scored(small, study, out):
    token_probabilities.main(
        study="quick",
        model="mini-qwen3",
        checkpoints=(small.base, study / "student"),
        problems=small.train,
        pool=small.folder / "pool.jsonl",
        out=out,
        scratch=out / "scratch",
        params=study / "params.yaml",
    )
    return out / "token_probabilities.jsonl"


@pytest.fixture(scope="module")
def file(small, study):
    return scored(small, study, study / "first")


def test_both_methods_answer_the_same_problems_once(file):
    rows = read_jsonl(file, ScoredResponse)
    of = {name: [row for row in rows if row.variant == name] for name in ("pi_0", "geosd")}
    problems = [row.problem_id for row in of["pi_0"]]
    assert problems == [row.problem_id for row in of["geosd"]] and len(set(problems)) > 2
    for row in rows:
        assert len(row.tokens) == len(row.student) == len(row.teacher) == row.length
    kept = [path for path in (file.parent / "scratch").rglob("*") if path.is_file()]
    assert kept == [], "a complete job forgets what it kept"


def test_the_bytes_are_the_same_each_time(small, study, file, tmp_path):
    assert scored(small, study, tmp_path).read_bytes() == file.read_bytes()


def test_probabilities_are_those_of_a_plain_pass_with_and_without_the_solution(small, study, file):
    """The student's prompt has no solution, and the teacher's has the one that the row names."""
    checkpoint = study / "student"
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    settings = {"source": "search", "thinking": False}
    encoding = encoding_of(settings, *load_tokenizer(checkpoint))
    problems = {problem.id: problem for problem in read_jsonl(small.train, Problem)}
    rows = [row for row in read_jsonl(file, ScoredResponse) if row.variant == "geosd"]
    apart = 0.0
    for row in rows:
        problem = problems[row.problem_id]
        text = "".join(row.tokens)
        ids = encoding.response(text) if row.finish == "stop" else encoding.response(text)[:-1]
        assert len(ids) == row.length
        for prompt, found in (
            (encoding.student(problem), row.student),
            (encoding.teacher(problem, row.solution), row.teacher),
        ):
            with torch.no_grad():
                logits = model(torch.tensor([[*prompt, *ids]])).logits[0].double().numpy()
            plain = softmax(logits, axis=-1)[len(prompt) - 1 : -1][np.arange(len(ids)), ids]
            np.testing.assert_allclose(found, plain, rtol=1e-3, atol=1e-6)
        apart = max(apart, np.abs(np.subtract(row.student, row.teacher)).max())
    assert apart > 1e-2, "the teacher reads more than the student"


def test_the_page_shows_the_scored_responses(file, tmp_path):
    page = tmp_path / "samples.html"
    samples_page.main(study="quick", tables=(file,), out=page)
    block = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    data = json.loads(block)
    rows = read_jsonl(file, ScoredResponse)
    assert len(data["problems"]) * 2 == len(rows)
    first = data["problems"][0]["responses"]["pi_0"]
    assert tuple(first["tokens"]) == rows[0].tokens


def test_settings_name_the_methods_and_one_seed(file):
    manifest = json.loads((file.parent / "manifest.json").read_text())
    assert manifest["settings"]["methods"] == ["pi_0", "geosd"]
    assert manifest["seed"] == manifest["settings"]["run_seed"] == 0


def test_a_study_that_is_not_finished_gets_a_hint(monkeypatch, capsys):
    monkeypatch.setattr(samples_page, "snakemake", lambda *words: sys.exit(1))
    with pytest.raises(SystemExit):
        samples_page.samples("paper")
    assert "Hint: where files are missing" in capsys.readouterr().err


def test_the_command_may_run_no_rule_that_trains(monkeypatch, tmp_path, capsys):
    seen = []
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "results/quick/samples.html"
    page.parent.mkdir(parents=True)
    page.write_text("x" * 1500)
    monkeypatch.setattr(samples_page, "snakemake", lambda *words: seen.append(words))
    samples_page.samples()
    rules = ("token_probabilities", "samples_page")
    assert seen == [("quick", "--allowed-rules", *rules, "--", "samples_page")]
    assert "results/quick/samples.html (2 kB)" in capsys.readouterr().out
