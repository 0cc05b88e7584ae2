"""What is published and restored: Snakemake and DVC agree about it in every clone."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from dvc.repo import Repo
from planner import STAND_INS

# They share a study that is finished, published, cloned and restored, which takes 15 CPU seconds.
pytestmark = pytest.mark.slow

METRICS = "results/quick/analyse/metrics.json"
SHOWN = "docs/metrics/own/quick/mini-qwen3/geosd.json"

# A training that takes no time and whose result depends on its settings.
QUICK_TRAIN = """
import sys
from pathlib import Path
from geosd.config import load, resolve_study, settings
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
study = resolve_study(load("params.yaml"), given["--study"])
what = settings("train", study, given["--model"], given["--variant"])
names = "model.safetensors config.json tokenizer.json steps.csv settings.json manifest.json"
for name in names.split():
    (Path(given["--out"]) / name).write_text(f"{name} {what} {given['--seed']}")
raise SystemExit
"""

INDEX = """
from pathlib import Path
from geosd.cli.runs import main
main("quick", Path("results/quick"))
"""


def published(workflow, action: str, *targets: str, study: str = "quick") -> str:
    return workflow.call("python", "-m", "geosd", action, "--study", study, *targets)


def first_geosd_run(workflow) -> Path:
    """The folder of the first run of GeoSD."""
    with (workflow.folder / "results/quick/runs.csv").open() as index:
        rows = list(csv.DictReader(index))
    return next(
        workflow.folder / row["train"]
        for row in rows
        if (row["variant"], row["seed"]) == ("geosd", "0")
    )


def stand_in(workflow, name: str, program: str) -> None:
    """Let a program run in place of `geosd NAME`."""
    (workflow.folder / STAND_INS).mkdir(exist_ok=True)
    (workflow.folder / STAND_INS / f"{name}.py").write_text(program)


@pytest.fixture(scope="module")
def finished(fresh, root, tmp_path_factory):
    """A finished study in a repository of its own, of two methods and two seeds."""
    folder = tmp_path_factory.mktemp("finished") / "origin"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    for name in (".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(root / name, folder / name)
    (folder / "dvc.lock").write_text("schema: '2.0'\n")  # as in git, whatever was run here
    workflow = type(fresh)(folder)
    workflow.keep_studies("quick", "quick_selection")
    text = (folder / "params.yaml").read_text()
    few = (
        "    methods: [pi_0, fwdkl, geosd]\n    seeds: [0, 1]\n    outputs: [table_main, claims]\n"
    )
    whole = re.search(r"    methods: .+\n    seeds: .+\n    outputs: .+\n", text)[0]
    workflow.edit("params.yaml", whole, few)
    for name in workflow.outputs():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    stand_in(workflow, "train", QUICK_TRAIN)
    workflow.call("python", "workflow/dvc/generate.py")
    workflow.call("python", "-c", INDEX)
    (folder / METRICS).write_text(json.dumps({"mini-qwen3": {"geosd": {"OOD avg@16": 46.5}}}))
    workflow.snakemake("--profile", "local", "--touch", "--forceall")
    workflow.call("git", "init", "--quiet")
    workflow.call("git", "add", ".")
    workflow.call("git", "commit", "--quiet", "-m", "Begin")
    return workflow


@pytest.fixture(scope="module")
def origin(finished, tmp_path_factory):
    """The study as DVC knows it after `make run`, and then published."""
    workflow = copied(finished, tmp_path_factory.mktemp("published") / "origin")
    published(workflow, "dvc-commit", "--finished")
    published(workflow, "publish")
    return workflow


def cloned(source, target: Path, store: Path):
    """A fresh clone that fetches from a store."""
    source.call("git", "clone", "--quiet", str(source.folder), str(target))
    clone = type(source)(target)
    clone.call("dvc", "remote", "modify", "--local", "store", "url", str(store))
    return clone


@pytest.fixture(scope="module")
def cloned_once(origin, tmp_path_factory):
    """A fresh clone that fetches from the same store."""
    folder = tmp_path_factory.mktemp("cloned")
    return cloned(origin, folder / "clone", origin.folder / "dvc-store")


@pytest.fixture(scope="module")
def restored_once(cloned_once, tmp_path_factory):
    """The clone with the published study in it."""
    restored = copied(cloned_once, tmp_path_factory.mktemp("restored") / "clone")
    published(restored, "restore")
    return restored


def copied(workflow, target: Path):
    """A copy of a clone, with the times of its files."""
    shutil.copytree(workflow.folder, target, symlinks=True)
    return type(workflow)(target)


@pytest.fixture
def clone(cloned_once, tmp_path):
    """A fresh clone, to be edited."""
    return copied(cloned_once, tmp_path / "clone")


@pytest.fixture
def restored(restored_once, tmp_path):
    """A clone with the published study in it, to be edited."""
    return copied(restored_once, tmp_path / "clone")


def up_to_date(workflow) -> bool:
    """Whether DVC says that nothing is to be done, as `dvc status` does."""
    with Repo(str(workflow.folder)) as repo:
        return repo.status() == {}


def test_after_a_run_neither_git_nor_dvc_has_anything_to_say(finished, tmp_path):
    workflow = copied(finished, tmp_path / "clone")
    assert not up_to_date(workflow)
    published(workflow, "dvc-commit", "--finished")
    lock = (workflow.folder / "dvc.lock").read_text()
    assert up_to_date(workflow)
    assert workflow.call("git", "status", "--porcelain") == ""
    stand_in(workflow, "run", RUN)
    workflow.call("git", "add", ".")
    workflow.call("git", "commit", "--quiet", "-m", "Stand in for the run")
    assert "stages" not in workflow.call("git", "show", "HEAD:dvc.lock")
    workflow.call("python", "workflow/dvc/experiment.py", "--name", "one", "--set", "seeds=[0]")
    one = workflow.call("git", "for-each-ref", "--format=%(objectname)", "refs/exps/*/*/one")
    assert "stages" in workflow.call("git", "show", f"{one.strip()}:dvc.lock")
    assert workflow.call("git", "status", "--porcelain") == ""
    assert (workflow.folder / "dvc.lock").read_text() == lock


def test_a_repository_that_does_not_keep_the_lock_is_no_error(finished, tmp_path):
    workflow = copied(finished, tmp_path / "clone")
    workflow.call("git", "rm", "--quiet", "dvc.lock")
    workflow.call("git", "commit", "--quiet", "-m", "Keep no lock")
    published(workflow, "dvc-commit", "--finished")
    assert up_to_date(workflow)
    assert workflow.call("git", "status", "--porcelain").split() == ["??", "dvc.lock"]
    published(workflow, "publish")
    assert workflow.call("git", "status", "--porcelain") == ""


def test_a_run_that_dvc_cannot_know_says_how_it_would(finished, tmp_path):
    workflow = copied(finished, tmp_path / "clone")
    workflow.edit("params.yaml", "pass_k: [1, 2, 4, 8, 16]", "pass_k: [1, 4, 16]")
    for study in ("quick", "quick_selection"):  # one was edited, the other has no pipeline
        said = published(workflow, "dvc-commit", "--finished", study=study)
        assert said.startswith(f"`make dvc STUDY={study}` lets DVC know study {study}")
    assert "stages" not in (workflow.folder / "dvc.lock").read_text()


def test_a_setting_that_is_refused_is_named_and_makes_no_experiment(finished, tmp_path):
    workflow = copied(finished, tmp_path / "clone")
    wrong = ("--name", "wrong", "--set", "training.steps=0")
    said = workflow.call("python", "workflow/dvc/experiment.py", *wrong, status=1)
    assert "training.steps" in said and "Traceback" not in said
    assert workflow.call("git", "status", "--porcelain") == ""


def test_publishing_changes_nothing_and_leaves_the_tree_clean(origin):
    assert "stages" in origin.call("git", "show", "HEAD:dvc.lock")
    assert origin.planned_jobs() == {}
    assert origin.call("git", "status", "--porcelain") == ""
    assert up_to_date(origin)


def test_cache_and_store_are_one_copy_beside_the_results(origin):
    weights = first_geosd_run(origin) / "model.safetensors"
    assert os.access(weights, os.W_OK) and weights.stat().st_mode & 0o200
    assert not any(path.is_file() for path in (origin.folder / ".dvc/cache").rglob("*"))
    stored = {path.stat().st_ino for path in (origin.folder / "dvc-store").rglob("*")}
    assert stored and weights.stat().st_ino not in stored


def test_in_a_fresh_clone_a_restored_study_has_nothing_left_to_do(restored):
    assert restored.planned_jobs() == {}
    assert up_to_date(restored)


def test_after_one_parameter_has_changed_only_its_dependants_are_planned(restored):
    restored.edit("params.yaml", "pass_k: [1, 2, 4, 8, 16]", "pass_k: [1, 4, 16]")
    jobs = restored.planned_jobs()
    assert jobs["analyse"] == 1
    assert jobs["train"] == jobs["evaluate"] == jobs["base"] == 0


def test_a_parameter_that_changed_before_the_restoring_is_noticed_too(clone):
    clone.edit("params.yaml", "damping: 1.0e-3 ", "damping: 1.0e-4 ")
    published(clone, "restore")
    assert clone.planned_jobs()["train"] == 2


def test_what_is_restored_in_part_is_not_made_again(clone):
    published(clone, "restore", "data", "base", "pool", "train@mini-qwen3-geosd-0")
    jobs = clone.planned_jobs()
    assert jobs["data"] == jobs["base"] == jobs["pool"] == 0
    assert (jobs["train"], jobs["evaluate"]) == (3, 4)


def test_one_stage_done_again_by_dvc_leaves_to_snakemake_only_what_depends_on_it(restored):
    restored.change_rate("geosd", "7.0e-6")
    stage = ("dvc", "repro", "--single-item", "train@mini-qwen3-geosd-0")
    restored.call("python", "workflow/dvc/generate.py")
    restored.call(*stage)
    restored.call("snakemake", "--profile", "local", "--cores", "1", "results/quick/runs.csv")
    assert "7e-06" in (first_geosd_run(restored) / "settings.json").read_text()
    jobs = restored.planned_jobs()
    assert (jobs["train"], jobs["evaluate"]) == (1, 2)  # the other seed; both


def test_dvc_says_what_has_changed_since_the_published_study(restored):
    assert "46.5" in restored.call("dvc", "metrics", "show")
    assert restored.call("git", "show", f"HEAD:{SHOWN}").split() == [
        "{",
        '"OOD',
        'avg@16":',
        "46.5",
        "}",
    ]
    (restored.folder / METRICS).unlink()
    (restored.folder / METRICS).write_text('{"mini-qwen3": {"geosd": {"OOD avg@16": 48.0}}}')
    published(restored, "dvc-commit", "--finished")
    printed = restored.call("dvc", "metrics", "diff", "--json")
    found = json.loads(printed.splitlines()[0])  # what follows are warnings
    assert found == {SHOWN: {"OOD avg@16": {"old": 46.5, "new": 48, "diff": 1.5}}}


RUN = """
import subprocess, sys
from pathlib import Path
metrics = Path("results/quick/analyse/metrics.json")
metrics.unlink()
metrics.write_text('{"mini-qwen3": {"geosd": {"OOD avg@16": 50.0}}}')
command = [sys.executable, *"-m snakemake --profile local --touch --forceall".split()]
raise SystemExit(subprocess.run(command).returncode)
"""


def test_an_experiment_is_kept_and_leaves_each_file_as_it_was(restored):
    stand_in(restored, "run", RUN)
    restored.call("git", "add", ".")
    restored.call("git", "commit", "--quiet", "-m", "Stand in for the run")
    files = [restored.folder / name for name in ("params.yaml", "dvc.yaml", "dvc.lock")]
    before = [file.read_text() for file in files]
    changed = ("--name", "short", "--set", "evaluation.pass_k=[1,4,16]")
    said = restored.call("python", "workflow/dvc/experiment.py", *changed)
    assert "dvc exp apply short" in said
    assert restored.call("git", "status", "--porcelain") == ""
    assert [file.read_text() for file in files] == before
    found = json.loads(restored.call("dvc", "exp", "diff", "--json", "HEAD", "short"))
    assert found["metrics"][SHOWN]["OOD avg@16"] == {
        "old": 46.5,
        "new": 50.0,
        "diff": 3.5,
    }
    assert "[1, 4, 16]" in str(found["params"])


def test_a_file_that_is_not_the_published_one_is_made_again(clone):
    clone.call("dvc", "pull")
    weights = first_geosd_run(clone) / "model.safetensors"
    weights.unlink()
    weights.write_text("somebody else's")
    clone.call("python", "-c", INSTALL)
    assert clone.planned_jobs()["train"] == 1


INSTALL = """
import gzip, json
from geosd.provenance.workflow_records import workflow_records_file
from geosd.provenance.workflow_records import install_workflow_records
published = json.loads(gzip.decompress(workflow_records_file("quick").read_bytes()))
outputs = published["outputs"]
file = workflow_records_file("quick")
others = install_workflow_records(file, outputs, ["figures/quick", "results"])[1]
assert len(others) == 1
"""


def test_a_record_that_leads_out_of_the_study_is_refused(clone):
    code = INSTALL.replace('["outputs"]', '["outputs"] | BAD')
    with pytest.raises(AssertionError, match="names results/quick/../../evil, which is no file"):
        clone.call("python", "-c", "BAD = {'results/quick/../../evil': {}}" + code)
    assert not (clone.folder / "evil").exists()


def test_an_unfinished_study_is_not_published(clone):
    with pytest.raises(AssertionError, match="not finished, or not up to date"):
        published(clone, "publish")


def test_another_study_is_published_with_what_it_shares(origin, restored, tmp_path):
    again = "  again:\n    extends: quick\n    about: One seed more.\n    kind: main\n"
    again += "    methods: [pi_0, geosd]\n    seeds: [0, 3]\n\n"
    restored.edit("params.yaml", "  quick_selection:\n", f"{again}  quick_selection:\n")
    for name in restored.outputs("again"):
        path = restored.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "{}" if path.name == "metrics.json" else name  # which publishing reads
        path.exists() or path.write_text(text, encoding="utf-8")
    config = ("--config", "study=again")
    restored.snakemake("--profile", "local", "--touch", "--forceall", *config)
    restored.call("git", "add", ".")
    restored.call("git", "commit", "--quiet", "-m", "Add a study")
    # One of its stages by DVC; what study quick has is no second stage.
    restored.call("python", "workflow/dvc/generate.py", "--study", "again")
    pipeline = "pipelines/again/dvc.yaml"
    with Repo(str(restored.folder)) as repo:
        names = {f"{stage.path_in_repo}:{stage.name}" for stage in repo.index.stages}
    assert f"{pipeline}:train@mini-qwen3-geosd-3" in names
    assert f"{pipeline}:train@mini-qwen3-geosd-0" not in names
    trained = restored.folder / restored.folders("again").train("mini-qwen3", "geosd", 3)
    shutil.rmtree(trained)
    restored.call("dvc", "repro", "-s", f"{pipeline}:check", f"{pipeline}:train@mini-qwen3-geosd-3")
    assert (trained / "settings.json").read_text().endswith(" 3")
    shutil.rmtree(restored.folder / "pipelines")
    restored.snakemake("--profile", "local", "--touch", "--forceall", *config)
    published(restored, "publish", study="again")
    assert restored.call("git", "status", "--porcelain") == ""
    run = restored.folders().train("mini-qwen3", "geosd", 0).removesuffix("/0")
    assert (restored.folder / f"published/{run}/3.dvc").exists()
    assert not (restored.folder / f"published/{run}/0.dvc").exists()  # a stage of dvc.yaml keeps it
    assert up_to_date(restored)
    third = cloned(restored, tmp_path / "third", origin.folder / "dvc-store")
    published(third, "restore", study="again")
    assert third.planned_jobs(*config) == {}
    published(third, "restore")
    assert third.planned_jobs() == {}


@pytest.mark.parametrize(("store", "message"), [("gone", "is not at {}."), ("empty", "ERROR: ")])
def test_without_the_store_or_its_files_the_store_is_named(clone, tmp_path, store, message):
    place = tmp_path / store
    clone.call("dvc", "remote", "modify", "--local", "store", "url", str(place))
    if store == "empty":
        place.mkdir()
    with pytest.raises(AssertionError) as refused:
        published(clone, "restore")
    *lines, last = str(refused.value).split("\nassert ")[0].strip().splitlines()
    assert message.format(place) in "\n".join(lines)
    assert last.strip().startswith(
        f"Hint: studies are fetched from {place}; `dvc remote modify --local"
    )
    assert store == "empty" or len(lines) < 3
