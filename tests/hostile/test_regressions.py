"""Mistakes that were once accepted, found late or not reported, and have no test elsewhere.

tests/hostile/README.md lists all of these cases with the tests that hold them.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import runpy
import stat
from pathlib import Path

import pytest
import yaml
from cases import with_studies

from geosd.cli import publish
from geosd.cli.job import StepJob
from geosd.config import ConfigError, load, resolve_study, settings
from geosd.objectives.objective import build_objective
from geosd.provenance.manifest import read_manifest

_configurations = runpy.run_path(str(Path(__file__).with_name("test_configurations.py")))
project, put = _configurations["project"], _configurations["put"]
QUICK, PROTOCOL = ("studies", "quick"), ("protocol",)
RATES = ("studies", "quick_selection", "grid", "fwdkl")
KFAC = (*PROTOCOL, "training", "optimiser", "kfac")


def few_studies(root: Path) -> str:
    """params.yaml with the studies alone that are made wrong here."""
    return with_studies((root / "params.yaml").read_text(), ["quick", "quick_selection"])


def test_the_configuration_is_right_before(root, project):
    load(root / "params.yaml")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*QUICK, "seeds"), [-1]),
        ((*QUICK, "models"), ["$(touch pwned)"]),
        ((*RATES, "learning_rate"), ["`touch pwned`"]),
        (RATES, {"teacher": ["../../x"]}),
        ((*QUICK, "training", "optimiser", "kfac", "blocks"), 10**6),
        ((*QUICK, "training", "top_k"), 10**9),
        ((*QUICK, "pool", "keep"), 17),  # of 16 rollouts
        ((*RATES, "learning_rate"), []),
        (RATES, {}),
        ((*PROTOCOL, "training", "betas"), [1.0, 1.0]),
        ((*PROTOCOL, "training", "weight_decay"), float("inf")),
        (("resources", "default"), None),
    ],
    ids=lambda given: ".".join(given[-2:]) if isinstance(given, tuple) else str(given),
)
def test_a_value_that_was_found_late_is_refused_at_once(root, project, path, value):
    """None: the key is missing."""
    values = yaml.safe_load(few_studies(root))
    key = put(values, path, value)
    if value is None:
        del _configurations["at"](values, path[:-1])[key]
    file = project / "params.yaml"
    file.write_text(_configurations["dumped"](values))
    with pytest.raises(ConfigError) as refused:
        load(file)
    message = str(refused.value)
    assert (path[-1] if path[-1] != "default" else "resources") in message
    assert message.splitlines()[-1].startswith("Hint: ")


def test_a_method_whose_hyperparameter_is_not_given_has_the_papers_value(root, project):
    text = few_studies(root)
    assert text.count("hellinger, drift_penalty: 1.0}") == 1
    file = project / "params.yaml"
    file.write_text(text.replace("hellinger, drift_penalty: 1.0}", "hellinger}"))
    own = settings("train", resolve_study(load(file), "quick"), "mini-qwen3", "geosd")
    assert build_objective(**own["objective"]).drift_penalty == 1.0


@pytest.mark.parametrize("name", ["$(touch pwned)", "`touch pwned`", "../../x"])
@pytest.mark.parametrize("section", ["models", "variants", "studies"])
def test_a_name_that_the_shell_would_read_is_refused(root, project, section, name):
    values = yaml.safe_load(few_studies(root))
    values[section][name] = next(iter(values[section].values()))
    (project / "params.yaml").write_text(_configurations["dumped"](values))
    with pytest.raises(ConfigError, match=rf"(?s){section}.*\nHint: "):
        load(project / "params.yaml")
    assert not (project / "pwned").exists()


@pytest.mark.parametrize(
    ("text", "key"),
    [("rollouts: 017 ", "rollouts"), ("rollouts: &r [*r] ", "rollouts")],
    ids=["octal", "recursive alias"],
)
def test_a_text_that_yaml_takes_for_something_else_is_refused(root, project, text, key):
    whole = (root / "params.yaml").read_text()
    assert whole.count("rollouts: 32 ") == 1
    (project / "params.yaml").write_text(whole.replace("rollouts: 32 ", text))
    with pytest.raises(ConfigError, match=rf"(?s){key}.*\nHint: "):
        load(project / "params.yaml")


def test_a_manifest_lists_nothing_that_a_killed_step_left(root, project):
    out = project / "out"
    out.mkdir()
    job = StepJob("runs", root / "params.yaml", "quick")
    for name in ("runs.csv", ".runs.csv.4711.tmp", ".other.csv.4711.tmp"):
        (out / name).write_text("model,variant\n")
    job.write_manifest(out, [])
    assert read_manifest(out)["outputs"].keys() == {"runs.csv"}
    assert not (out / ".runs.csv.4711.tmp").exists()


def test_a_restored_file_that_is_not_the_published_one_is_named(root, project, monkeypatch):
    monkeypatch.setattr(publish, "run_to_publish", lambda *_: "")
    (project / "params.yaml").symlink_to(root / "params.yaml")
    altered = project / "results/quick/runs.csv"
    altered.parent.mkdir(parents=True)
    altered.write_text("altered")
    recorded = {"sha256": "0" * 64, "time_ns": 0, "record": {"shellcmd": "none"}}
    published = {"targets": [], "outputs": {"results/quick/runs.csv": recorded}}
    records = publish.workflow_records_file("quick")
    records.parent.mkdir(parents=True)
    records.write_bytes(gzip.compress(json.dumps(published).encode()))
    with pytest.raises(SystemExit, match=r"(?s)results/quick/runs.csv.*\nHint: "):
        publish.restore_published("quick")


def test_the_test_clusters_folder_lies_where_others_cannot_write(root):
    script = (root / "tests/slurm/cluster.sh").read_text()
    (folder,) = re.findall(r"^FOLDER=\$\{FOLDER:-(.+)\}$", script, re.M)
    assert not Path(folder).parent.stat().st_mode & stat.S_IWOTH


def test_every_test_that_the_table_names_is_there(root):
    page = (root / "tests/hostile/README.md").read_text()
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page.partition("once wrong")[2])
    assert len(named) > 30
    for file, test in named:
        assert f"\ndef {test}(" in (root / "tests" / file).read_text(), test


@pytest.mark.slow
def test_broken_manifests_of_runs_stop_no_plan(root, project):
    for name in ("Snakefile", "workflow", "profiles", "local", "src", "envs", "params.yaml"):
        (project / name).symlink_to(root / name)
    workflow = runpy.run_path(str(root / "tests/workflow/conftest.py"))["Workflow"](project)
    contents = itertools.cycle(["", "[", '{"snapshots": ["$(touch pwned)"]}'])
    for row in workflow.folders().rows():
        if row.train:
            (project / row.train).mkdir(parents=True)
            (project / row.train / "manifest.json").write_text(next(contents))
    assert workflow.planned_jobs()["train"] == 12
    assert not (project / "pwned").exists()
