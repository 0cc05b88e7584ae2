"""Files and tokenizers that do not fit a study are named before its first job."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from geosd.cli import data as data_step
from geosd.cli import doctor, plan
from geosd.cli.study_inputs import (
    check_study_inputs,
    study_input_tokenizer,
    study_inputs_need_check,
)
from geosd.config import load, resolve_study
from geosd.models.load_and_save import load_tokenizer
from geosd.provenance.manifest import write_manifest

ROWS = [
    {
        "question": f"A jar holds {i} beans. How many?",
        "answer": str(i),
        "solution": rf"\boxed{{{i}}}",
    }
    for i in range(1, 31)
]
SIZES = {"train": 12, "select_train": 4, "select_validation": 4, "test_id": 8}
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }} {{ eos_token }}{% endfor %}"


@pytest.fixture
def study(root, tmp_path, monkeypatch):
    """A study of 30 problems on a copy of mini-qwen3 with a chat template, to be spoilt."""
    for name in ("base_models", "profiles", "envs"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "base_models/mini-qwen3/0", "models/small-chat")
    Path("models/small-chat/chat_template.jinja").write_text(TEMPLATE)

    def made(rows=ROWS, template=TEMPLATE, pool=None, data=None, lines=(), **sections):
        Path("data/own").mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows) + "".join(lines)
        Path("data/own/train.jsonl").write_text(text)
        Path("data/own/hard.jsonl").write_text(
            json.dumps({"question": "Which number is two?", "answer": "2"}) + "\n"
        )
        if template is None:
            Path("models/small-chat/chat_template.jinja").unlink(missing_ok=True)
        values: dict[str, Any] = yaml.safe_load((root / "params.yaml").read_text())
        values["models"]["small-chat"] = {
            "about": "A copy.",
            "base": {"source": "released", "checkpoint": {"folder": "models/small-chat"}},
        }
        quick = values["studies"]["quick"]
        own = {
            **{key: quick[key] for key in ("rollout", "pool", "training", "evaluation")},
            "about": "Own problems.",
            "kind": "main",
            "models": ["small-chat"],
            "methods": ["pi_0", "geosd"],
            "seeds": [0],
            "outputs": ["table_main"],
        }
        thinking = {"student": False, "teacher": False, "evaluation": False}
        own["data"] = {"source": "jsonl", "raw": "data/own", "thinking": thinking, **SIZES}
        own["data"] |= {"test_per_benchmark": None, **(data or {})}
        own["training"] = {**own["training"], "final_rollouts": 8}
        own["pool"] = {**own["pool"], **(pool or {})}
        for name, section in sections.items():
            own[name] = {**own[name], **section}
        values["studies"] = {"quick": quick, "own": own}
        Path("params.yaml").write_text(yaml.safe_dump(values))
        return resolve_study(load("params.yaml"), "own")

    return made


def found(study) -> dict[str, list]:
    """The checks of a study by their subject."""
    by_subject: dict[str, list] = {}
    for check in check_study_inputs(study, study.models):
        by_subject.setdefault(check.subject, []).append(check)
    return by_subject


@pytest.mark.slow
def test_a_study_that_can_run_is_ok(study):
    whole = study(pool={"solutions": "given"})
    assert study_inputs_need_check(whole)
    checks = [check for of in found(whole).values() for check in of]
    assert {check.state for check in checks} == {"ok"}, checks
    assert {check.subject for check in checks} == {
        "problems",
        "solutions",
        "prompts of small-chat",
        "context of small-chat",
    }


@pytest.mark.slow
def test_too_few_problems_are_named_as_the_job_names_them(study, tmp_path, capsys):
    few = study(data={"train": 100})
    with pytest.raises(ValueError) as error:
        data_step.main("own", tmp_path / "out")
    (check,) = found(few)["problems"]
    words, _, hint = str(error.value).partition("\nHint: ")
    assert (check.state, check.found, check.cure) == ("missing", words, hint)
    assert "30 problems fill only 14 of the 100 wanted" in check.found
    Path("jobs.json").write_text("[]")
    with pytest.raises(SystemExit, match="cannot run as it is: problems.\nHint: "):
        plan.main("own", planned=Path("jobs.json"))
    assert "fill only 14 of the 100" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit, match="missing: problems"):
        doctor.main("own", only_inputs=True)
    assert "fill only 14 of the 100" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_model_without_a_chat_template_is_named_with_one_that_has_it(study):
    (check,) = found(study(template=None))["prompts of small-chat"]
    assert check.state == "missing" and "has no chat template" in check.found
    assert "smollm2-135m" in check.cure and "search" not in check.cure


@pytest.mark.slow
def test_the_longest_prompt_and_its_response_must_fit_the_context(study):
    long = {"question": "word " * 500, "answer": "1", "solution": r"\boxed{1}"}
    every = [{**row, "question": f"{row['question']} {long['question']}"} for row in ROWS]
    whole = study(rows=every)
    tokenizer, _ = load_tokenizer(study_input_tokenizer(whole, "small-chat"))
    assert len(tokenizer(long["question"]).input_ids) == 500
    (check,) = found(whole)["prompts of small-chat"]
    assert check.state == "missing" and "its context is 512" in check.found
    assert "the student of problem" in check.found


@pytest.mark.slow
def test_a_long_given_solution_must_fit_the_teachers_context(study):
    rows = [{**row, "solution": "word " * 500 + row["solution"]} for row in ROWS]
    (check,) = found(study(rows=rows, pool={"solutions": "given"}))["prompts of small-chat"]
    assert check.state == "missing" and "the teacher of problem train-" in check.found


@pytest.mark.slow
def test_problems_without_a_given_solution_are_named(study):
    rows = [
        row if i % 2 else {k: row[k] for k in ("question", "answer")} for i, row in enumerate(ROWS)
    ]
    ok, note = found(study(rows=rows, pool={"solutions": "given"}))["solutions"]
    lacking = 12 - int(ok.found.split()[0])
    assert (ok.state, note.state) == ("ok", "note") and 0 < lacking < 12
    assert "train-000" in note.found and "no training sees them" in note.found
    rows = [{k: row[k] for k in ("question", "answer")} for row in ROWS]
    (none,) = found(study(rows=rows, pool={"solutions": "given"}))["solutions"]
    assert none.state == "missing" and "no worked solution of any" in none.found


@pytest.mark.slow
def test_too_few_given_solutions_are_refused_as_the_training_refuses_them(study):
    rows = [
        row if i < 6 else {k: row[k] for k in ("question", "answer")} for i, row in enumerate(ROWS)
    ]
    checks = found(study(rows=rows, pool={"solutions": "given", "least_share": 0.9}))["solutions"]
    assert (
        checks[0].state == "missing"
        and "pool.least_share allows no less than 90" in checks[0].found
    )


@pytest.mark.slow
def test_what_is_taken_and_perhaps_not_meant_is_named_by_file_and_line(study, capsys, tmp_path):
    more = [
        {"question": "A  jar holds 3 beans. How many?", "answer": "3"},
        {"question": "How much is it?", "answer": "ninety-seven dollars"},
    ]
    _, repeated, worded = found(study(rows=[*ROWS, *more]))["problems"]
    assert "train.jsonl:31 repeats line 3" in repeated.found
    assert "1 of 33 answers are words" in worded.found
    assert "train.jsonl:32 'ninety-seven dollars'" in worded.found
    data_step.main("own", tmp_path / "out")
    assert "note: " in capsys.readouterr().out
    assert "params.yaml" not in repeated.found


@pytest.mark.slow
def test_numbers_names_and_formulas_are_no_words(study):
    answers = [
        "1/2",
        "x+1",
        "ab",
        r"\frac{1}{2}",
        "97 dollars",
        "(1, 2)",
        r"\text{no}",
        "B",
        "3 km",
    ]
    rows = [{"question": f"Number {i}?", "answer": answer} for i, answer in enumerate(answers)]
    assert len(found(study(rows=[*ROWS, *rows]))["problems"]) == 1


@pytest.mark.slow
def test_a_key_twice_in_a_line_is_refused(study):
    line = '{"question": "How many?", "answer": "1", "answer": "2"}\n'
    (check,) = found(study(lines=[line]))["problems"]
    assert check.state == "missing" and "train.jsonl:31: answer stands twice" in check.found


@pytest.mark.slow
def test_what_was_drawn_from_files_that_are_no_younger_is_not_drawn_again(study):
    whole = study()
    drawn = Path(plan.RunFolders(whole).train_problems)
    data_step.main("own", drawn.parent)
    assert "problems" not in found(whole)
    Path("data/own/train.jsonl").touch()
    assert "problems" in found(whole)


def test_the_search_world_needs_no_look(study):
    assert not study_inputs_need_check(
        resolve_study(load("params.yaml"), "quick") if study() else None
    )


@pytest.mark.slow
def test_the_plan_shows_what_jobs_of_other_settings_took(study, capsys):
    study()
    jobs = [["pool", "small-chat", 0, False, []], ["train", "small-chat", 1, False, [0]]]
    Path("jobs.json").write_text(json.dumps(jobs))
    plan.main("own", planned=Path("jobs.json"))
    assert "no job of these models has ended here" in " ".join(capsys.readouterr().out.split())
    for seconds, folder in ((600, "a/0"), (1200, "b/0")):
        manifest = Path("results/train/small-chat", folder, "manifest.json")
        manifest.parent.mkdir(parents=True)
        content = {"code": {}, "packages": {}, "device": {}, "wall_s": float(seconds)}
        content |= {"peak_memory_bytes": {}, "inputs": {}, "outputs": {}, "settings": {}}
        write_manifest(manifest, content)
    plan.main("own", planned=Path("jobs.json"))
    said = " ".join(capsys.readouterr().out.split())
    assert "train of small-chat 15 min (2)" in said and "pool of small-chat" not in said


def test_the_plan_counts_the_problems_of_own_benchmarks(study):
    own = study()
    work = plan.plan_model_workload(own, "small-chat", plan.DEFAULTS)
    assert work.evaluation.prompts == 8 + 1  # not the 600 of the paper's benchmarks
