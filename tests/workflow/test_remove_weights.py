"""`keep: samples` in a real workflow, whose steps take no time: weights go, all else is there."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from planner import STAND_INS

from geosd.provenance.manifest import read_manifest, write_manifest

pytestmark = pytest.mark.slow

# A step that writes its files' names, and a true manifest of them.
STAND_IN_STEP = """
import sys
from pathlib import Path
from geosd.files import write_text
from geosd.cli.job import StepJob

FILES = {
    "data": "train.jsonl select_train.jsonl select_validation.jsonl test.jsonl card.json",
    "base": "model.safetensors config.json tokenizer.json",
    "pool": "pool.jsonl counts.json",
    "train": "model.safetensors config.json tokenizer.json steps.csv settings.json",
    "early_stop": "model.safetensors config.json tokenizer.json steps.csv settings.json",
    "evaluate": "samples.jsonl",
    "states": "states.csv states.jsonl",
    "alignment": "alignment.csv",
    "analyse": "scores.csv shares.csv drift.csv consensus.csv habits.csv training_curves.csv"
    " drift_over_steps.csv metrics.json",
}
step, given, values = sys.argv[1].replace("-", "_"), {}, []
given[""] = values
for word in sys.argv[2:]:
    if word.startswith("--"):
        given[word[2:]] = values = []
    else:
        values.append(word)
one = {key: values[0] for key, values in given.items() if values}
out = Path(one["out"])
if step in ("render", "environment"):  # no manifest lists what they write
    endings = ("csv", "md", "tex", "pdf", "svg", "png")
    name = one.get("", step)
    for ending in endings:
        write_text(out / f"{name}.{ending}", "| a |\\n|---|\\n| b |\\n")
    raise SystemExit
if step == "front_page":
    write_text(out, "# A study")
    raise SystemExit
seed = int(one["seed"]) if "seed" in one else None
model, variant = one.get("model"), one.get("variant")
job = StepJob(step, Path("params.yaml"), one["study"], model, variant, seed=seed)
checkpoints = [one[key] for key in ("base", "checkpoint", "longer") if key in one]
inputs = [Path(folder, "model.safetensors") for folder in checkpoints]
inputs += [Path(one[key]) for key in ("problems", "pool", "states") if key in one]
steps = [int(number) for number in given.get("snapshots", [])]
written = [out / file for file in FILES[step].split()]
written += [out / "snapshots" / f"step_{number}.safetensors" for number in steps]
for file in written:
    is_read = file.name == "metrics.json"
    write_text(file, "{}" if is_read else f"{file.name} {sorted(one.items())}")
job.write_manifest(out, inputs, written, snapshots=steps)
raise SystemExit
"""
STEPS = "data base pool train early-stop evaluate states alignment analyse render"
STEPS += " environment front-page"
STUDY = {
    "extends": "quick",
    "about": "One seed, two methods, an early stop and snapshots.",
    "kind": "ablation",
    "keep": "samples",
    "methods": ["pi_0", "geosd"],
    "seeds": [0],
    "outputs": ["figure_alignment", "table_main"],
    "variants": {"geosd": {"training": {"snapshots": [25, 75]}}},
    "grid": {"fwdkl": {"steps": [50, 100]}},
}
LATER = {
    "extends": "kept",
    "about": "The same run of GeoSD, sampled more often.",
    "kind": "main",
    "outputs": ["table_main"],
    "variants": {"geosd": {"training": {"snapshots": []}}},
    "grid": {},
    "evaluation": {"coverage": 64},
}


def make(workflow, study):
    words = ("--profile", "local", "--cores", "2", "--config", f"study={study}")
    return workflow.call("snakemake", *words)


def weights(workflow):
    """The files of weights that there are below results/train, from their run's folder."""
    folder = workflow.folder / "results/train"
    found = [path.relative_to(folder).parts for path in folder.rglob("*.safetensors")]
    return sorted((parts[1].split("-")[0], "/".join(parts[3:])) for parts in found)


@pytest.fixture(scope="module")
def ran(fresh, root, tmp_path_factory):
    """The study `kept` after its run, of which the study `later` shares a run."""
    folder = tmp_path_factory.mktemp("kept") / "origin"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    workflow = type(fresh)(folder)
    values = yaml.safe_load((folder / "params.yaml").read_text())
    quick = values["studies"]["quick"]  # it keeps weights
    quick |= {"methods": ["pi_0", "fwdkl"], "outputs": ["table_main"]}
    values["studies"] = {"quick": quick, "kept": STUDY, "later": LATER}
    (folder / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    (folder / STAND_INS).mkdir()
    for step in STEPS.split():
        (folder / STAND_INS / f"{step}.py").write_text(STAND_IN_STEP)
    (folder / "dvc.yaml").unlink()
    for name in (".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(root / name, folder / name)
    workflow.call("git", "init", "--quiet")
    workflow.call("git", "add", ".")
    workflow.call("git", "commit", "--quiet", "-m", "Begin")
    make(workflow, "kept")
    return workflow


def test_weights_go_but_those_that_another_study_keeps_or_has_yet_to_read(ran):
    assert weights(ran) == [("fwdkl", "model.safetensors"), ("geosd", "model.safetensors")]
    marks = [json.loads(p.read_text()) for p in ran.folder.glob("results/kept/removed/**/*.json")]
    # GeoSD's last weights and two snapshots; FwdKL's, its snapshot, and the early stop's.
    assert len(marks) == 6
    kept = sorted(mark["kept_for"] for mark in marks if not mark["removed"])
    assert kept == [["later"], ["quick"]]


def test_all_that_is_made_from_weights_is_there_and_nothing_is_left_to_do(ran):
    for name, rule in ran.outputs("kept").items():
        assert (ran.folder / name).exists() or name.endswith(".safetensors"), (name, rule)
    assert ran.planned_jobs("--config", "study=kept") == {}


def test_what_was_removed_is_not_stale_and_what_follows_from_others_is(ran):
    command = ("python", "-m", "geosd", "stale", "--study", "kept")
    assert "0 of " in ran.call(*command)
    manifest = next(ran.folder.glob("results/train/*/fwdkl-*/0/manifest.json"))
    before = manifest.read_text()
    values = read_manifest(manifest.parent)
    values["outputs"]["model.safetensors"] = "0" * 64  # as if it had been trained to other weights
    write_manifest(manifest, values)
    assert "model.safetensors has changed" in ran.call(*command, status=1)
    manifest.write_text(before)
    base = ran.folder / "results/base"  # of which nothing may go
    moved = base.rename(ran.folder / "elsewhere")
    assert "model.safetensors is not here" in ran.call(*command, status=1)
    moved.rename(base)


def test_a_clone_restores_what_was_published_and_has_nothing_to_do(ran, tmp_path):
    command = ("python", "-m", "geosd")
    assert "are published" in ran.call(*command, "publish", "--study", "kept")
    ran.call("git", "clone", "--quiet", str(ran.folder), str(tmp_path / "clone"))
    clone = type(ran)(tmp_path / "clone")
    store = str(ran.folder / "dvc-store")
    clone.call("dvc", "remote", "modify", "--local", "store", "url", store)
    clone.call(*command, "restore", "--study", "kept")
    assert clone.planned_jobs("--config", "study=kept") == {}
    assert weights(clone) == weights(ran)


def test_the_last_study_that_reads_the_weights_removes_them_and_trains_nothing(ran):
    assert ran.planned_jobs("--config", "study=later")["train"] == 0
    make(ran, "later")
    assert weights(ran) == [("fwdkl", "model.safetensors")]
    for study in ("kept", "later"):
        assert ran.planned_jobs("--config", f"study={study}") == {}
