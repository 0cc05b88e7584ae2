"""The paper's models, 128 times narrower and two layers deep, through every step.

Every method trains one model. Sampling and K-FAC read what differs in other architectures: GRPO and
GeoSD train one model of each. The larger Qwen3 differ from the smallest in sizes, in embeddings
that are not tied, and in heads that together are wider than the model: the largest has both.

Their configurations are the published ones; vocabulary, tokenizer, chat template and problems too.
So grouped queries, head widths other than d / heads, tied embeddings, sliding windows and rope
scaling are those of the real models.
"""

import copy
import hashlib
import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from paper_models import load_narrow, published_config

from geosd.cli import analyse, base, data, evaluate, pool, train
from geosd.config.run_folders import RunFoldersRow, write_run_folders
from geosd.json_lines import read_jsonl, write_jsonl
from geosd.models import load_and_save
from geosd.models.load_and_save import load_model, save_model
from geosd.problems.records import PooledSolutionsRecord, Problem, SampleRecord

METHODS = ["sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd"]
TRAINED_BY = {
    "qwen3-1.7b": METHODS,
    "qwen3-32b": ["geosd"],
    "olmo-3-7b-think": ["grpo", "geosd"],
    "ds-r1-llama-8b": ["grpo", "geosd"],
}
NARROWER, FEWER_HEADS = 128, 8


@pytest.fixture(scope="module", autouse=True)
def tokenizers_once():
    """Read tokenizers of equal files once: 28 folders of a model hold the same 150,000 words."""
    read, known = load_and_save.AutoTokenizer.from_pretrained, {}

    def read_once(folder, **options):
        files = [*sorted(Path(folder).glob("*token*")), *Path(folder).glob("*.jinja")]
        key = tuple(hashlib.sha256(file.read_bytes()).digest() for file in files)
        if key not in known:
            known[key] = read(folder, **options)
            known[key].get_vocab = cache(known[key].get_vocab)  # which each program looks through
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load_and_save.AutoTokenizer, "from_pretrained", read_once)
        yield


def released(shared_data, name, folder):
    """A released checkpoint of one of them, with random weights in bfloat16."""
    model, tokenizer = load_narrow(shared_data, name, NARROWER, FEWER_HEADS, None)
    # Releases sample so; the protocol's decoding must not be mixed with it.
    model.generation_config.update(do_sample=True, top_k=20, temperature=0.1)
    save_model(model.bfloat16(), tokenizer, folder)
    return published_config(shared_data, name)


@pytest.fixture(scope="module")
def problems(shared_data, root, tmp_path_factory):
    """A few of the paper's problems, as the data step draws them, and the studies they are of."""
    folder = tmp_path_factory.mktemp("problems")
    values = yaml.safe_load((root / "params.yaml").read_text())
    study = copy.deepcopy(values["studies"]["quick"])
    study |= {"methods": ["pi_0", *METHODS], "seeds": [0], "variants": {}}
    study["data"] = {
        "raw": str(shared_data),
        "train": 4,
        "select_train": 2,
        "select_validation": 2,
        "test_id": 2,
        "test_per_benchmark": 1,
    }
    study["pool"] = {"rollouts": 2, "keep": 2, "response_tokens": 6}
    study["training"] |= {
        "steps": 1,
        "warmup": 1,
        "problems": 2,
        "group": 2,
        "response_tokens": 6,
        "top_k": 64,
        "chunk": 8,
        "learning_rate": 1.0e-3,
        "final_rollouts": 2,
        "optimiser": {"kfac": {"blocks": 2}},
    }
    study["evaluation"] = {"samples": 2, "pass_k": [1, 2], "response_tokens": 6}
    two_methods = {**copy.deepcopy(study), "methods": ["pi_0", "geosd"]}
    del two_methods["training"]["learning_rate"]  # quick's variants have their own
    # The others would be checked again by each of 105 steps, at half a second each.
    values["studies"] = {"quick": values["studies"]["quick"]}
    values["studies"] |= {"narrow": {**study, "models": list(TRAINED_BY)}}
    values["studies"] |= {
        f"two-methods-{name}": {**two_methods, "models": [name]} for name in TRAINED_BY
    }
    for name in TRAINED_BY:
        values["models"][name] = {
            "about": "narrow",
            "base": {"source": "released", "checkpoint": {"folder": str(folder / name)}},
        }
        values["resources"].pop(name, None)  # two problems cannot be shared by eight GPUs
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    data.main(study="narrow", out=folder / "data", params=params)
    return folder, params


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED_BY)
def test_every_step_and_every_method_runs_on(name, problems, shared_data, tmp_path):
    folder, params = problems
    published = released(shared_data, name, folder / name)
    shared = {"study": "narrow", "model": name, "params": params}
    questions = folder / "data/train.jsonl"
    base.main(out=tmp_path / "base", scratch=tmp_path / "s", **shared)
    model, _ = load_model(tmp_path / "base")
    assert model.config.vocab_size == published["vocab_size"]
    assert model.config.tie_word_embeddings == published["tie_word_embeddings"]

    pool.main(
        base=tmp_path / "base",
        problems=questions,
        out=tmp_path / "pool",
        scratch=tmp_path / "s",
        **shared,
    )
    counts = json.loads((tmp_path / "pool/counts.json").read_text())
    assert (counts["problems"], counts["rollouts_drawn"]) == (4, 8)
    # Random weights solve nothing, so that solutions are made up.
    solutions = tmp_path / "solutions.jsonl"
    write_jsonl(
        solutions,
        [
            PooledSolutionsRecord(p.id, (f"So it is. \\boxed{{{p.answer}}}",), 2, 1)
            for p in read_jsonl(questions, Problem)
        ],
    )
    before = {k: v.clone() for k, v in model.state_dict().items()}
    for method in TRAINED_BY[name]:
        out = tmp_path / f"train/{method}"
        train.main(
            variant=method,
            seed=0,
            base=tmp_path / "base",
            problems=questions,
            pool=solutions,
            out=out,
            scratch=tmp_path / f"scratch/{method}",
            **shared,
        )
        log = pd.read_csv(out / "steps.csv")
        assert log["loss/total"].notna().tolist() == [True, False], method  # a step, the end
        after = load_model(out)[0].state_dict()
        moved = sum(not torch.equal(before[key], after[key]) for key in before)
        # GRPO without a right answer in its group learns nothing but the pull to pi_0, which is 0.
        assert moved > 0 or method == "grpo", method

    results = tmp_path / "results"
    for variant, checkpoint in (("pi_0", "base"), ("geosd", "train/geosd")):
        evaluate.main(
            variant=variant,
            seed=0,
            checkpoint=tmp_path / checkpoint,
            problems=folder / "data/test.jsonl",
            out=results / f"evaluate/{name}/{variant}/0",
            scratch=tmp_path / "s",
            **shared,
        )
    samples = read_jsonl(results / f"evaluate/{name}/geosd/0/samples.jsonl", SampleRecord)
    assert len(samples) == 2 * (2 + 4) and all(s.reason and s.tokens <= 6 for s in samples)
    pi_0_folder, sampled = str(tmp_path / "base"), results / f"evaluate/{name}"
    rows = [
        RunFoldersRow(name, "pi_0", 0, 0, pi_0_folder, "", str(sampled / "pi_0/0")),
        RunFoldersRow(
            name,
            "geosd",
            0,
            0,
            pi_0_folder,
            str(tmp_path / "train/geosd"),
            str(sampled / "geosd/0"),
        ),
    ]
    write_run_folders(tmp_path / "runs.csv", rows)
    analyse.main(
        study=f"two-methods-{name}",
        runs=tmp_path / "runs.csv",
        out=tmp_path / "analyse",
        params=params,
    )
    scores = pd.read_csv(tmp_path / "analyse/scores.csv")
    assert set(scores["variant"]) == {"pi_0", "geosd"} and scores["value"].notna().all()
