"""The programs from a checkpoint to samples: repeatable, complete, with errors that name damage."""

import json
import os
import shutil
import signal
from dataclasses import replace

import pytest
import torch
import yaml
from safetensors.torch import load_file

from geosd.cli import analyse, pool
from geosd.config import load, resolve_study, settings
from geosd.config.run_folders import RunFoldersRow, write_run_folders
from geosd.files import write_json
from geosd.json_lines import DamagedLineError, read_jsonl, write_jsonl
from geosd.models.load_and_save import load_model
from geosd.problems.records import PooledSolutionsRecord, Problem, SampleRecord
from geosd.training import step_log


def samples_of(run):
    return (run / "samples.jsonl").read_bytes()


def weights_of(run):
    return (run / "model.safetensors").read_bytes()


def test_no_training_starts_on_a_pool_with_solutions_of_too_few_problems(small, tmp_path):
    rows = read_jsonl(small.folder / "pool.jsonl", PooledSolutionsRecord)
    few = len(rows) // 20
    rows[few:] = [replace(row, solutions=(), verified=0) for row in rows[few:]]
    write_jsonl(tmp_path / "pool.jsonl", rows)
    with pytest.raises(ValueError, match=f"(?s){few} of the {len(rows)} .*pool.least_share.*Hint:"):
        small.trained(tmp_path / "trained", pool=tmp_path / "pool.jsonl")
    assert not (tmp_path / "trained").exists()


@pytest.mark.parametrize("wanted", ["given", "both"])
def test_given_solutions_of_the_data_set_are_its_pool(small, tmp_path, wanted):
    values = yaml.safe_load(small.shared["params"].read_text())
    values["studies"]["quick"]["pool"]["solutions"] = wanted
    params, problems = tmp_path / "params.yaml", tmp_path / "train.jsonl"
    params.write_text(yaml.safe_dump(values))
    shutil.copy(small.folder / "data/train.jsonl", problems)
    checked = read_jsonl(small.folder / "pool.jsonl", PooledSolutionsRecord)
    worked = {row.problem_id: row.solutions[0] for row in checked}
    write_json(problems.with_name("card.json"), {"worked_solutions": worked})
    folders = {"base": small.folder / "base", "problems": problems, "scratch": tmp_path / "scratch"}
    pool.main("quick", "mini-qwen3", **folders, out=tmp_path / "pool", params=params)
    rows = read_jsonl(tmp_path / "pool/pool.jsonl", PooledSolutionsRecord)
    assert [row.solutions[0] for row in rows] == [*worked.values()]
    assert {row.drawn for row in rows} == {1 if wanted == "given" else 5}
    write_json(problems.with_name("card.json"), {"benchmarks": {}})
    with pytest.raises(ValueError, match=r"no worked solution of any.*\nHint: "):
        pool.main("quick", "mini-qwen3", **folders, out=tmp_path / "none", params=params)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(small, tmp_path):
    first = samples_of(small.sampled(tmp_path / "1"))
    assert samples_of(small.sampled(tmp_path / "2")) == first
    assert samples_of(small.sampled(tmp_path / "3", seed=1)) != first


def test_every_problem_has_all_its_samples_in_order(small, tmp_path):
    small.sampled(tmp_path)
    problems = read_jsonl(small.folder / "data/test.jsonl", Problem)
    samples = read_jsonl(tmp_path / "samples.jsonl", SampleRecord)
    assert [(s.problem_id, s.sample) for s in samples] == [
        (p.id, k) for p in problems for k in range(4)
    ]
    assert all(s.tokens <= 16 and (s.finish == "stop" or s.tokens == 16) for s in samples)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["geosd", "grpo"])
def test_training_twice_gives_the_same_weights(small, tmp_path, variant):
    first = weights_of(small.trained(tmp_path / "1", variant))
    assert weights_of(small.trained(tmp_path / "2", variant)) == first
    assert weights_of(small.trained(tmp_path / "3", variant, seed=1)) != first


def test_the_key_trackers_reaches_the_training_and_what_is_not_installed_is_named(
    small, tmp_path, monkeypatch
):
    values = yaml.safe_load((small.folder / "params.yaml").read_text())
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values | {"trackers": ["trackio"]}))
    monkeypatch.setattr(step_log, "get_available_trackers", lambda: ["dvclive"])
    with pytest.raises(ModuleNotFoundError, match=r"(?s)trackio is not installed.*Hint:"):
        small.trained(tmp_path / "run", params=params)
    params.write_text(yaml.safe_dump(values | {"trackers": ["tensorbord"]}))
    with pytest.raises(ValueError, match=r"(?s)trackers.*tensorboard"):
        small.trained(tmp_path / "run", params=params)


def test_trackers_are_a_setting_of_no_rule_and_those_that_the_step_log_knows(small, tmp_path):
    values = yaml.safe_load((small.folder / "params.yaml").read_text())
    (tmp_path / "params.yaml").write_text(
        yaml.safe_dump(values | {"trackers": list(step_log.TRACKERS)})
    )
    with_trackers = resolve_study(load(tmp_path / "params.yaml"), "quick")
    without = resolve_study(load(small.folder / "params.yaml"), "quick")
    for rule, *named in (("train", "mini-qwen3", "geosd"), ("configuration",)):
        assert settings(rule, with_trackers, *named) == settings(rule, without, *named)


@pytest.mark.slow
def test_weights_that_are_stored_in_bfloat16_are_the_rounded_ones_in_half_the_room(small, tmp_path):
    values = yaml.safe_load((small.folder / "params.yaml").read_text())
    values["studies"]["quick"]["training"]["storage"] = "bfloat16"
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    for name in ("model.safetensors", "snapshots/step_2.safetensors"):
        full, half = (
            load_file(small.trained(tmp_path / kind, snapshots=[2], params=given) / name)
            for kind, given in (("plain", small.shared["params"]), ("half", params))
        )
        assert full.keys() == half.keys()
        assert all(torch.equal(half[key], full[key].to(torch.bfloat16)) for key in full)
    read, _ = load_model(tmp_path / "half")
    assert {value.dtype for value in read.parameters()} == {torch.float32}
    logs = [(tmp_path / kind / "steps.csv").read_bytes() for kind in ("plain", "half")]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_precision_auto_is_what_the_processor_has_and_the_manifests_say_which(
    small, tmp_path, monkeypatch
):
    values = yaml.safe_load((small.folder / "params.yaml").read_text())
    quick = values["studies"]["quick"]
    quick["training"]["precision"] = quick["rollout"]["precision"] = "auto"
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    manifests = {}
    for has in (False, True):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda has=has: {"avx512_bf16": has})
        small.trained(tmp_path / f"{has}", params=params)
        manifests[has] = json.loads((tmp_path / f"{has}/manifest.json").read_text())
    assert [manifests[has]["precision"] for has in (False, True)] == ["float32", "bfloat16"]
    assert {manifest["settings"]["precision"] for manifest in manifests.values()} == {"auto"}
    assert weights_of(tmp_path / "False") != weights_of(tmp_path / "True")
    small.trained(tmp_path / "plain")
    assert weights_of(tmp_path / "False") == weights_of(tmp_path / "plain")


def test_a_trained_folder_says_what_made_it_and_leaves_no_state_behind(small, tmp_path):
    small.trained(tmp_path / "out")
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["settings"] == json.loads((tmp_path / "out/settings.json").read_text())
    assert str(small.folder / "pool.jsonl") in manifest["inputs"]
    assert manifest["wall_s"] > 0 and manifest["peak_memory_bytes"]["host"] > 0
    assert (manifest["precision"], manifest["device"]["threads"]) == ("float32", 1)
    header, *rows = (tmp_path / "out/steps.csv").read_text().splitlines()
    assert header.startswith("step,")
    assert [row.partition(",")[0] for row in rows] == ["0", "1", "2", "3", "4"]  # 4 is the end
    assert not (tmp_path / "out-scratch/state.pt").exists()


def test_a_trained_folder_has_a_card_and_opens_in_transformers(small, tmp_path):
    small.trained(tmp_path / "out")
    front, _, card = (
        (tmp_path / "out/README.md").read_text().removeprefix("---\n").partition("---\n")
    )
    assert yaml.safe_load(front)["library_name"] == "transformers"
    settings = card.split("```json\n")[1].split("```")[0]
    assert json.loads(settings) == json.loads((tmp_path / "out/settings.json").read_text())
    code = card.split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)  # the card's own lines, not a model's output
    prompt = card.split("A question is put as `")[1].split("`")[0]
    ids = names["tokenizer"](prompt, return_tensors="pt").input_ids
    assert names["model"](ids).logits.shape[-1] == len(names["tokenizer"])
    assert names["tokenizer"].unk_token_id not in ids


def test_a_killed_write_leaves_nothing_under_the_final_name(small, tmp_path):
    child = os.fork()
    if child == 0:
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
        try:
            small.sampled(tmp_path)
        finally:  # or an error would let pytest go on in the fork
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    small.sampled(tmp_path)
    assert (tmp_path / "samples.jsonl").exists()


def test_a_damaged_pool_line_names_file_and_line(small, tmp_path):
    lines = (small.folder / "pool.jsonl").read_text().splitlines()
    lines[2] = lines[2][:25]
    damaged = tmp_path / "pool.jsonl"
    damaged.write_text("\n".join(lines))
    with pytest.raises(DamagedLineError, match=f"{damaged}:3: .*PooledSolutionsRecord"):
        small.trained(tmp_path / "out", pool=damaged)
    assert not (tmp_path / "out").exists()


def test_a_damaged_sample_line_names_file_and_line(small, tmp_path):
    resolved = resolve_study(load(small.shared["params"]), "quick")
    whole = samples_of(small.sampled(tmp_path / "whole")).decode()
    runs = [(variant, seed) for variant in resolved.methods for seed in resolved.seeds]
    rows = []
    for variant, seed in runs:
        folder = tmp_path / f"samples/{variant}/{seed}"
        folder.mkdir(parents=True)
        (folder / "samples.jsonl").write_text(whole)
        rows.append(RunFoldersRow("mini-qwen3", variant, seed, 0, "base", "", str(folder)))
    write_run_folders(tmp_path / "runs.csv", rows)
    damaged = tmp_path / "samples/geosd/1/samples.jsonl"
    damaged.write_text(whole.replace('"correct": ', '"corect": ', 1))
    with pytest.raises(DamagedLineError, match=f"{damaged}:1: .*missing correct"):
        analyse.main(runs=tmp_path / "runs.csv", out=tmp_path / "out", **small.shared)
