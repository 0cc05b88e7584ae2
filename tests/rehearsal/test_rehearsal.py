"""The parts of the rehearsal that need no cluster: studies, stand-ins, the table of jobs."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from cases import decoder
from checkpoints import FEWER_HEADS, HEAD_WIDTH, NARROWER, PUBLISHED, documents, learn
from jobs import parse_jobs, planned_rules
from paper_models import load_narrow
from schedule import simulated
from small_studies import LEFT_OUT, SECTIONS, STUDIES, shrink

from geosd.cli.snakemake_runs import SnakemakeJob
from geosd.config import load, resolve_study
from geosd.problems.encoding import encoding_of
from geosd.problems.grading import judge_response
from geosd.problems.records import Problem
from geosd.problems.sources import get_data_source

VOCABULARY = 4000


@pytest.fixture(scope="module")
def small(root, tmp_path_factory):
    """The true params.yaml, and that of the rehearsal."""
    project = tmp_path_factory.mktemp("project")
    (project / "profiles/slurm").mkdir(parents=True)
    shutil.copy(root / "params.yaml", project)
    shrink(project, project / "raw", project / "released", "vllm")
    return load(root / "params.yaml"), load(project / "params.yaml")


@pytest.mark.parametrize("study", STUDIES)
def test_a_small_study_has_models_outputs_and_kind_of_the_true_one(small, study):
    true, rehearsed = (resolve_study(params, study) for params in small)
    assert [*rehearsed.models] == [name for name in true.models if name != LEFT_OUT]
    assert rehearsed.outputs == true.outputs
    assert rehearsed.overlay.kind == true.overlay.kind
    assert rehearsed.overlay.keep == true.overlay.keep == "samples"
    for model in rehearsed.models:
        for section in ("base", "rollout"):
            of_true, of_rehearsed = (one.section(section, model) for one in (true, rehearsed))
            assert of_rehearsed.keys() == of_true.keys()
            for key in ("source", "engine", "precision", "process"):
                assert of_rehearsed.get(key) == of_true.get(key)


@pytest.mark.parametrize("model", PUBLISHED)
def test_two_processes_train_beside_a_worker_and_on_as_many_nodes_as_the_true_one(small, model):
    true, rehearsed = (params.resources_of(model).train for params in small)
    assert rehearsed.trainers == 2 and 1 <= rehearsed.inference_gpus <= true.inference_gpus
    assert rehearsed.nodes == true.nodes


def test_the_models_of_the_studies_are_those_with_a_stand_in(small):
    assert {model for study in STUDIES for model in resolve_study(small[0], study).models} == {
        *PUBLISHED
    }


def test_a_stand_in_gives_either_answer_half_of_the_time_and_nothing_else():
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96}
    model = decoder("Llama", **sizes, num_attention_heads=2, head_dim=32)
    prompts = torch.randint(VOCABULARY, (6, 30)).tolist()
    answers = [[100 + i, 1] for i in range(6)]
    pairs = [(p, answers[(i + k) % 6]) for i, p in enumerate(prompts) for k in (0, 1)]
    assert learn(model, pairs) < 1.0
    with torch.no_grad():
        shares = model(torch.tensor(prompts)).logits[:, -1].softmax(-1)  # of the whole vocabulary
    for i in range(6):
        right, wrong = shares[i, 100 + i], shares[i, 100 + (i + 1) % 6]
        assert 0.25 < right < 0.75 and 0.25 < wrong < 0.75 and right + wrong > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("model", ["qwen3-8b", "olmo-3-7b-think", "ds-r1-llama-8b"])
def test_half_of_a_stand_ins_responses_are_right(shared_data, model):
    """Of each family; the prompts of two of them end inside a thought."""
    narrow, tokenizer = load_narrow(shared_data, model, NARROWER, FEWER_HEADS, HEAD_WIDTH)
    problems = [Problem(f"p{i}", "train", f"What is {i}?", str(i)) for i in (3, 40)]
    recipe = {"source": "dapo-math", "thinking": True}
    encoding = encoding_of(recipe, tokenizer, narrow.generation_config)
    pairs = documents(narrow, tokenizer, problems)
    grade = get_data_source("dapo-math").grader()
    verdicts = [
        judge_response(
            encoding.text(response),
            problems[i // 2].answer,
            grade,
            truncated=len(response) > SECTIONS["pool"]["response_tokens"],
            opened_thought=encoding.opens_thought,
        ).reason
        for i, (_, response) in enumerate(pairs)
    ]
    grade.close()
    assert verdicts == ["correct", "wrong answer"] * 2


def test_jobs_are_counted_by_rule_and_those_of_other_folders_are_not():
    started, ended = "2026-01-02T03:04:05", "2026-01-02T03:04:17"
    listed = "\n".join(
        f"{number}|{comment}|{started}|{ended}|{folder}|{of_node}"
        for number, comment, folder, of_node in (
            (2, "rule_evaluate_pi_0_wildcards_qwen3-8b_pi_0-4a_0", "/a", "2|gres/gpu:h100:3|2G"),
            (1, "rule_data", "/a", "1|N/A|500M"),
            (3, "rule_data", "/b", "1|N/A|500M"),
            (4, "(null)", "/a", "1|N/A|500M"),
        )
    )
    jobs = parse_jobs(listed, Path("/a")).drop(columns=["start", "end"])
    assert jobs.to_dict("list") == {
        "rule": ["data", "evaluate_pi_0"],
        "wildcards": ["", "qwen3-8b_pi_0-4a_0"],
        "seconds": [12.0, 12.0],
        "gpus": [0, 6],
        "megabytes": [500, 4096],
    }


def test_a_schedule_is_simulated_with_the_seconds_of_alike_jobs_and_compared_with_slurms():
    """Two trainings of 10 and 30 s, one at a time, then what waits for them; by hand."""
    rows = [
        ("base", "a", 100, 105, 0, 1),
        ("train", "a_geosd-1_0", 106, 116, 2, 1),
        ("train", "a_geosd-1_1", 117, 147, 2, 1),
        ("evaluate", "a_geosd-1_0", 118, 125, 1, 1),
        ("evaluate", "a_geosd-1_1", 149, 156, 1, 1),
    ]
    columns = ["rule", "wildcards", "start", "end", "gpus", "megabytes"]
    measured = pd.DataFrame(rows, columns=columns).eval("seconds = end - start")
    jobs = [SnakemakeJob("base", "a", 0, False, []), SnakemakeJob("page", "", 0, True, [4, 5])]
    jobs += [SnakemakeJob("train", "a", 1, False, [0])] * 2
    jobs += [SnakemakeJob("evaluate", "a", 2, False, [training]) for training in (2, 3)]
    bounds = {"jobs": 2, "trainings": 1, "gpus": 4, "megabytes": 9}
    outcome = simulated(jobs, measured, {"page": 3.0}, bounds)
    # The simulated second training and first evaluation start at once: 9 of 10 pairs have an order.
    order = round(9 / (9 * 10) ** 0.5, 2)
    assert outcome == {"jobs": 5, "simulated": 5 + 20 + 20 + 7, "measured": 56, "order": order}


def test_the_rules_of_a_plan_are_read_from_snakemakes_table():
    table = "job    count\n-----  -----\ntrain     27\npage       5\nall        1\ntotal     33\n"
    assert planned_rules(table) == {"train", "page"}
