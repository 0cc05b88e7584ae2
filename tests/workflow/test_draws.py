"""Several draws of a base model: what is planned, by Snakemake and by DVC, and what is made."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import re
import shutil
import sys
import threading
from collections import Counter

import pandas as pd
import pytest
import yaml
from dvc.repo import Repo

from geosd.config import load, resolve_study
from geosd.config.job_counts import job_counts
from geosd.files import sha256

MODEL, SEEDS = "mini-qwen3", range(4)
METHODS = ["pi_0", "fwdkl", "geosd"]
OUTPUTS = ["table_main", "figure_alignment", "figure_density"]


@pytest.fixture
def copied(fresh, tmp_path, monkeypatch):
    """The workflow as cloned, to be edited; paths of its configuration start from there."""
    shutil.copytree(fresh.folder, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(tmp_path / "copy")
    return type(fresh)(tmp_path / "copy")


@pytest.fixture
def drawn(copied, ship):
    """The workflow whose study quick has four seeds in two draws, shipped as made-up files."""
    ship(copied.folder, methods=METHODS, outputs=OUTPUTS)
    return copied


@pytest.mark.slow
def test_every_run_is_planned_from_the_draw_of_its_seed(drawn):
    jobs = drawn.planned_jobs()
    counts = job_counts(resolve_study(load(drawn.folder / "params.yaml"), "quick"))
    assert {rule: jobs[rule] for rule in counts} == counts
    assert (counts["base"], counts["pool"], counts["states"], counts["train"]) == (2, 2, 2, 8)
    printed = drawn.snakemake("--profile", "local", "--dry-run", "--printshellcmds")
    folders = drawn.folders()
    for seed in SEEDS:
        base, pool = folders.base(MODEL, seed % 2), folders.pool(MODEL, seed % 2)
        run = f"--variant geosd --seed {seed} --base {base}"
        assert f"{run} --problems {folders.train_problems} --pool {pool}/pool.jsonl" in printed
        states = f"--states {folders.states(MODEL, seed % 2)}/states.jsonl"
        assert re.search(f"{run} --checkpoint [^ ]+ {states}", printed)
        assert f"--variant pi_0 --seed {seed} --checkpoint {base} " in printed
    for draw in (0, 1):
        arguments = f"--draw {draw} --out {folders.base(MODEL, draw)} "
        assert f"geosd base --study quick --model {MODEL} {arguments}" in printed
    # The paper's figure is of one pi_0.
    density = re.search(r"geosd render figure_density .*--tidy (.*) --out", printed)[1]
    assert density == f"{folders.states(MODEL, 0)}/states.csv"


@pytest.mark.slow
def test_dvc_has_the_same_jobs_from_the_same_draws(drawn):
    drawn.call("python", "workflow/dvc/generate.py")
    drawn.call("python", "-m", "dvc", "init", "--quiet", "--no-scm")
    with Repo(str(drawn.folder)) as repo:
        stages = {stage.name: stage for stage in repo.index.stages if stage.cmd}
    planned = Counter(name.partition("@")[0] for name in stages)
    rules = ("base", "pool", "train", "evaluate", "evaluate_pi_0")
    jobs = drawn.planned_jobs()
    assert {rule: planned[rule] for rule in rules} == {rule: jobs[rule] for rule in rules}
    folders = drawn.folders()
    for seed in SEEDS:
        read = {dep.def_path for dep in stages[f"train@{MODEL}-geosd-{seed}"].deps}
        base, pool = folders.base(MODEL, seed % 2), folders.pool(MODEL, seed % 2)
        assert {f"{base}/model.safetensors", f"{pool}/pool.jsonl"} <= read
    for draw in (0, 1):
        read = {dep.def_path for dep in stages[f"base@{MODEL}-{draw}"].deps}
        assert f"base_models/{MODEL}/{draw}" in read
    assert "base_models/SHA256SUMS" in {dep.def_path for dep in stages["check"].deps}


@pytest.mark.slow
def test_the_time_of_a_shipped_file_reruns_nothing(drawn):
    for name in drawn.outputs():
        path = drawn.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    drawn.snakemake("--profile", "local", "--touch", "--forceall")
    for file in (drawn.folder / "base_models").rglob("*.*"):
        os.utime(file)
    assert drawn.planned_jobs() == {}


def shrink(workflow) -> None:
    """Make study quick one of seconds."""
    path = workflow.folder / "params.yaml"
    values = yaml.safe_load(path.read_text())
    quick = values["studies"]["quick"]
    quick |= {"methods": ["pi_0", "fwdkl"]}
    quick["outputs"] = ["table_main", "figure_training", "figure_alignment"]
    quick["data"] |= {"train": 20, "select_train": 4, "select_validation": 4}
    quick["data"] |= {"test_id": 4, "test_per_benchmark": 2}
    quick["pool"] |= {"rollouts": 8, "keep": 8}
    quick["training"] |= {"steps": 2, "warmup": 1, "diagnose_every": 1, "final_rollouts": 4}
    quick["training"] |= {"problems": 4, "group": 2, "response_tokens": 16, "snapshots": [1]}
    quick["evaluation"] |= {"samples": 2, "pass_k": [1, 2], "response_tokens": 16}
    path.write_text(yaml.safe_dump(values, sort_keys=False))


@contextlib.contextmanager
def edited_meanwhile(workflow):
    """Set four steps in place of two as soon as the problems are drawn; two again at the end."""
    params = workflow.folder / "params.yaml"
    planned = params.read_text()
    ended = threading.Event()

    def edit():
        while not ended.wait(0.2):
            if any(workflow.folder.glob("results/data/*/manifest.json")):
                params.write_text(planned.replace("steps: 2\n", "steps: 4\n"))
                return

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        yield
    finally:
        ended.set()
        editor.join()
        assert params.read_text() != planned
        params.write_text(planned)


def forget_times(folder):
    """Give all results times in any order, as a copy without times has them."""
    draw = random.Random(7)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        written = 1.7e9 + draw.uniform(0, 86400)
        os.utime(file, (written, written))


def put_on_another_disk(workflow, disk):
    """Make each folder that the workflow writes a link, as on clusters; a decoy is beside them."""
    for name in ("results", "scratch", "figures"):
        (disk / "mine" / name).mkdir(parents=True)
        shutil.rmtree(workflow.folder / name, ignore_errors=True)
        (workflow.folder / name).symlink_to(disk / "mine" / name)
    # What `..` leads to from the target of results/quick, were it taken literally.
    decoy = disk / "figures/quick"
    decoy.mkdir(parents=True)
    (decoy / "figure_training.svg").write_text("<svg>of another project</svg>")


AFTERWARDS = ("plan", "preview", "figures", "report", "stale", "accept")
"""Commands that people type beside a finished study; each is the target of `make` of its name."""


@pytest.mark.slow
def test_a_study_of_two_draws_is_run_to_its_table(root, copied, ship, tmp_path):
    """Its first seed is of the second draw, so that seeds are not counted instead of read.

    Its settings are edited while it runs, and nothing of the edit reaches a result. All that it
    writes lies behind links.
    """
    shrink(copied)
    put_on_another_disk(copied, tmp_path / "disk")
    folders = [root / "base_models" / MODEL / str(draw) for draw in (0, 1)]
    ship(copied.folder, folders, seeds=[1, 2])

    with edited_meanwhile(copied):
        printed = copied.snakemake("--profile", "local")
    assert "params.yaml was edited while study quick ran" in printed

    rows = copied.folders().rows()
    weights = {}
    for row in rows:
        for folder in filter(None, (row.base, row.train, row.evaluate)):
            manifest = json.loads((copied.folder / folder / "manifest.json").read_text())
            assert manifest["draw"] == row.draw == row.seed % 2
        for name, digest in json.loads((copied.folder / row.base / "manifest.json").read_text())[
            "inputs"
        ].items():
            assert name.startswith(f"base_models/{MODEL}/{row.draw}/")
            assert sha256(copied.folder / name) == digest
        if row.train:
            weights[row.seed] = sha256(copied.folder / row.train / "model.safetensors")
    assert len({*weights.values()}) == 2
    scores = pd.read_csv(copied.folder / "results/quick/analyse/scores.csv")
    assert {*zip(scores["seed"], scores["draw"], strict=True)} == {(1, 1), (2, 0)}
    for seed in (1, 2):
        [file] = copied.folder.glob(f"results/quick/alignment/{MODEL}/fwdkl/{seed}/alignment.csv")
        assert {*pd.read_csv(file)["step"]} == {0, 1, 2}
    assert (copied.folder / "figures/quick/table_main.md").exists()
    page = (copied.folder / "results/quick/report.html").read_text()
    drawn = (copied.folder / "figures/quick/figure_training.svg").read_bytes()
    assert base64.b64encode(drawn).decode() in page
    for command in AFTERWARDS:
        copied.run_alone(sys.executable, "-m", "geosd", command, "--study", "quick")
    stale = copied.call("python", "-m", "geosd", "stale", "--study", "quick")
    assert stale.startswith("0 of ")
    assert copied.planned_jobs() == {}

    # Contents decide, not times; one byte of a file is what Snakemake compares by itself here.
    forget_times(copied.folder / "results")
    computed = {"base", "pool", "train", "evaluate", "evaluate_pi_0", "analyse"}
    planned = copied.planned_jobs("--max-checksum-file-size", "1")
    assert not computed & planned.keys(), planned
    assert copied.planned_jobs() == {}
    [pool, _] = copied.folder.glob("results/pool/*/pool.jsonl")
    copied.append(str(pool.relative_to(copied.folder)), "\n")
    assert copied.planned_jobs()["train"] == 1

    # A file that is not the pinned one is refused, whatever had been made of it.
    config = copied.folder / f"base_models/{MODEL}/1/config.json"
    config.write_text(config.read_text() + " ")
    base = copied.folders().base(MODEL, 1)
    shutil.rmtree(copied.folder / base)
    printed = copied.snakemake("--profile", "local", f"{base}/config.json", check=False)
    assert f"base_models/{MODEL}/1/config.json: its SHA-256 is" in printed
    assert "Hint: `git checkout -- base_models`" in printed
