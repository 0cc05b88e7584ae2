"""The programs from samples to ledger, on made-up samples of the quick study."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from geosd.cli import analyse, claims, render
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFoldersRow, write_run_folders
from geosd.json_lines import write_jsonl
from geosd.problems.records import SampleRecord
from geosd.scores.tidy import read_tidy

PARAMS = Path(__file__).parents[2] / "params.yaml"
SHOWN = ("table_main", "table_benchmarks", "table_significance", "figure_frontier")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder, draw = tmp_path_factory.mktemp("results"), random.Random(1)
    resolved, index = resolve_study(load(PARAMS), "quick"), []
    for model in resolved.models:
        for at, variant in enumerate(resolved.methods):
            for seed in resolved.seeds:
                rows = [
                    SampleRecord(
                        b, f"{b}-{p}", k, "3 2 5 ok A: 3", 9, "1" if ok else "2", ok, "stop"
                    )
                    for b in ("id", "long", "easy")
                    for p in range(4)
                    for k in range(16)
                    for ok in [draw.random() < 0.3 + 0.1 * at]
                ]
                evaluate, train = (
                    folder / step / model / variant / str(seed) for step in ("evaluate", "train")
                )
                write_jsonl(evaluate / "samples.jsonl", rows)
                trained = variant in resolved.trained
                if trained:
                    train.mkdir(parents=True)
                    log = f"step,loss,drift/pi_0\n0,1,0\n1,1,{draw.random()}\n"
                    (train / "steps.csv").write_text(log)
                folders = ("", str(train) if trained else "", str(evaluate))
                index.append(RunFoldersRow(model, variant, seed, 0, *folders))
    write_jsonl(folder / "evaluate" / "left_over" / "0" / "samples.jsonl", rows)
    write_run_folders(folder / "runs.csv", index)
    analyse.main("quick", folder / "runs.csv", folder / "analyse", PARAMS)
    return folder


def test_a_run_that_left_the_study_leaves_its_scores(study):
    text = (study / "analyse" / "scores.csv").read_text()
    assert "geosd" in text and "left_over" not in text


def test_each_run_has_its_share_of_right_samples_on_each_problem(study):
    shares = read_tidy("shares", study / "analyse" / "shares.csv")
    assert len(shares) == 5 * 3 * 3 * 4  # methods, seeds, benchmarks, problems
    one = shares[(shares["variant"] == "geosd") & (shares["seed"] == 2)]
    file = study / "evaluate" / "mini-qwen3" / "geosd" / "2" / "samples.jsonl"
    right = {}
    for line in file.read_text().splitlines():
        sample = json.loads(line)
        place = sample["benchmark"], sample["problem_id"]
        right.setdefault(place, []).append(sample["correct"])
    found = one.set_index(["benchmark", "problem_id"])["share"].to_dict()
    assert found == {place: sum(of) / 16 for place, of in right.items()}
    assert set(shares["samples"]) == {16}


def test_what_the_responses_do_is_collected_and_shown(study, tmp_path):
    render.main("table_habits", "quick", tmp_path, (study / "analyse" / "habits.csv",), PARAMS)
    lines = (tmp_path / "table_habits.csv").read_text().splitlines()
    assert "mini-qwen3.id.first_low" in lines[0]
    # Each response tries 3 first, and does not check it; no value fails, so none is retried.
    assert all(line.count("100.0") == 2 and ",," in line for line in lines[1:]), lines


@pytest.mark.slow
def test_every_output_of_the_workflow_is_made_twice_the_same(study, tmp_path):
    tables = ("scores", "drift", "consensus", "shares")
    scores, drift, consensus, shares = (study / "analyse" / f"{name}.csv" for name in tables)
    for out in (tmp_path / "a", tmp_path / "b"):
        for name in SHOWN:
            tidy = (scores, drift, shares) if name == "table_main" else (scores,)
            render.main(name, "quick", out, tidy, PARAMS)
        claims.main("quick", (scores, drift, consensus), out, PARAMS)
    tables = {f"{t}.{e}" for t in SHOWN[:3] for e in ("csv", "md", "tex")}
    figures = {f"figure_frontier.{e}" for e in ("pdf", "svg", "png")}
    written = {path.name for path in (tmp_path / "a").iterdir()}
    ledger = {f"claims.{e}" for e in ("md", "csv", "pdf", "svg", "png")}
    assert written == tables | figures | ledger | {"claims.manifest.json"}
    for name in tables | figures | ledger:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
