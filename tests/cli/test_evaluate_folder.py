"""`geosd evaluate FOLDER`: any checkpoint as a study evaluates it."""

import csv
import re
from collections import defaultdict
from statistics import fmean

import pytest

from geosd.cli import command, evaluate_folder
from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import load_model
from geosd.problems.records import SampleRecord


@pytest.fixture
def evaluated(small, tmp_path):
    """Evaluate a folder by the small study; the folder that was written."""

    def call(folder, out="out", **more):
        params = small.shared["params"]
        evaluate_folder.main(folder, "quick", out=tmp_path / out, params=params, **more)
        return tmp_path / out

    return call


def in_parts(source, folder):
    """The same checkpoint as the hub has large ones: in several files with an index."""
    model, tokenizer = load_model(source)
    model.save_pretrained(folder, max_shard_size="100KB")
    tokenizer.save_pretrained(folder)
    assert not (folder / "model.safetensors").exists()
    return folder


def row(out):
    (only,) = csv.DictReader((out / "evaluation.csv").open())
    return {name: float(value) for name, value in only.items() if "." in name}


def test_a_folder_in_parts_has_the_samples_of_the_workflow_and_their_scores_in_a_row(
    small, evaluated, tmp_path, capsys
):
    out = evaluated(in_parts(small.base, tmp_path / "run/checkpoint-4"))
    workflow = small.sampled(tmp_path / "workflow")
    assert (out / "samples.jsonl").read_bytes() == (workflow / "samples.jsonl").read_bytes()
    shown, found = capsys.readouterr().out, row(out)
    assert "run-checkpoint-4" in shown and "OOD avg." in shown and "evaluation.csv" in shown
    right, cut = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for sample in read_jsonl(out / "samples.jsonl", SampleRecord):
        right[sample.benchmark][sample.problem_id].append(sample.correct)
        cut[sample.benchmark].append(sample.finish == "length")
    for name, problems in right.items():
        assert found[f"{name}.avg@4"] == pytest.approx(100 * fmean(map(fmean, problems.values())))
        assert found[f"{name}.pass@4"] == pytest.approx(100 * fmean(map(any, problems.values())))
        assert found[f"{name}.cut"] == pytest.approx(100 * fmean(cut[name]))
    others = [found[f"{name}.avg@4"] for name in right if name != "id"]
    assert len(others) == 4 and found["ood_avg.avg@4"] == pytest.approx(fmean(others))
    assert not (out / "checkpoint").exists()


@pytest.mark.slow
def test_samples_that_are_there_are_scored_again_and_those_of_another_call_are_kept(
    small, evaluated, monkeypatch
):
    first = row(evaluated(small.base))
    monkeypatch.setattr(evaluate_folder.evaluate, "main", None)  # nothing is sampled
    assert row(evaluated(small.base)) == first
    with pytest.raises(SystemExit, match="(?s)samples of another checkpoint.*\nHint: .*--out"):
        evaluated(small.base, seed=1)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("adapter_config.json", "adapters.*merge_and_unload"),
        ("fsdp_config.json", "verl.*model_merger"),
        ("README.md", "holds no config.json.*hf download"),
    ],
)
def test_a_folder_without_a_whole_checkpoint_says_how_to_have_one(evaluated, tmp_path, file, words):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / file).write_text("{}")
    with pytest.raises(SystemExit, match=f"(?s)given .*{words}"):
        evaluated(tmp_path / "given")
    with pytest.raises(SystemExit, match="(?s)owner/name is no folder.*Hint: .*hf download"):
        evaluated(tmp_path / "owner/name")


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("evaluate FOLDER --protocol quick", evaluate_folder),
        ("evaluate FOLDER --out my--variant", evaluate_folder),
        ("evaluate my--study --out out/--variant/--study", evaluate_folder),
        ("evaluate FOLDER --model a--study --variant", evaluate_folder),
        ("evaluate --help", evaluate_folder),
        ("evaluate", evaluate_folder),
        ("evaluate-run --help", evaluate_folder.evaluate),
        ("evaluate-run --study s --variant pi_0", evaluate_folder.evaluate),
        ("evaluate --study s --model m --variant pi_0", evaluate_folder.evaluate),
        ("evaluate --study=s --variant=pi_0", evaluate_folder.evaluate),
    ],
)
def test_people_type_evaluate_and_jobs_of_a_study_run_evaluate_run(monkeypatch, line, program):
    called = []
    monkeypatch.setattr(command, "_arguments", lambda name, words: {})
    monkeypatch.setattr(command, "_called", lambda function, arguments: called.append(function))
    monkeypatch.setattr("sys.argv", ["geosd", *line.split()])
    with pytest.raises(SystemExit):
        command.main()
    assert called == [program.main]


def test_the_rule_s_command_line_runs_its_program(root):
    rule = (root / "workflow/rules/evaluate.smk").read_text(encoding="utf-8")
    (line,) = re.findall(r"python -m geosd ([\w-]+ --study)", rule)
    name, *words = line.split()
    assert command.PROGRAMS[command.command_program(name, words)] == ("evaluate", "main")
