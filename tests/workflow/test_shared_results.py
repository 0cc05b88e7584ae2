"""What several studies have is made once, whichever of them runs first."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from cases import QUICK_ROLLOUT

from geosd.config import load, resolve_study
from geosd.config.run_folders import SHARED, RunFolders

# They share runs in every way there is: same runs, some of them, early stops, other samples.
MINIATURE = "miniature miniature_selection miniature_rates miniature_stepsize".split()
METHODS = ["pi_0", "fwdkl", "grpo", "geosd"]
SHARED_RULES = ("data", "base", "pool", "states", "train", "early_stop", "evaluate")


def planned(workflow, study: str) -> list[str]:
    """The outputs that a dry run of a study would make."""
    printed = workflow.snakemake("--profile", "local", "--summary", "--config", f"study={study}")
    rows = [line.split("\t") for line in printed.splitlines() if line.count("\t") > 4]
    return [row[0] for row in rows[1:] if row[-1].strip() == "update pending"]


def make(workflow, study: str, outputs: list[str]) -> None:
    """Do what a run of the study does, with made-up files."""
    for name in outputs:
        path = workflow.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    workflow.snakemake("--profile", "local", "--touch", "--forceall", "--config", f"study={study}")


def shrink(params: Path) -> None:
    """Leave the miniature a few methods, two models, two seeds and the ends of its rates."""
    values = yaml.safe_load(params.read_text(encoding="utf-8"))
    values["studies"] = {name: values["studies"][name] for name in ("quick", *MINIATURE)}
    for name in MINIATURE:
        study = values["studies"][name]
        study |= {key: study[key][:2] for key in ("seeds", "models") if key in study}
        if "methods" in study:
            study["methods"] = [name for name in study["methods"] if name in METHODS]
        if "grid" in study:
            study["grid"] = {name: study["grid"][name] for name in METHODS if name in study["grid"]}
        for axes in study.get("grid", {}).values():
            for axis in axes if isinstance(axes, list) else [axes]:
                axis |= {key: axis[key][:: len(axis[key]) - 1 or 1] for key in axis}
    params.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("order", [MINIATURE, MINIATURE[::-1]])
def test_studies_in_any_order_make_every_run_once(fresh, tmp_path, order):
    workflow = type(fresh)(tmp_path / "copy")
    shutil.copytree(fresh.folder, workflow.folder, symlinks=True)
    shrink(workflow.folder / "params.yaml")
    files: list[str] = []
    for study in order:
        outputs = planned(workflow, study)
        make(workflow, study, outputs)
        files += outputs
    assert len(files) == len(set(files))
    params = load(workflow.folder / "params.yaml")
    rows = {row for name in order for row in RunFolders(resolve_study(params, name)).rows()}
    runs = {row.train for row in rows if row.train and "/stopped_" not in row.train}
    trained = [
        str(Path(name).parent) for name in files if re.search(r"train/.*/\d+/model.saf", name)
    ]
    assert sorted(trained) == sorted(runs)
    sampled = [str(Path(name).parent) for name in files if name.endswith("samples.jsonl")]
    assert sorted(sampled) == sorted({row.evaluate for row in rows})
    for study in order:
        assert not planned(workflow, study), study


def test_another_study_of_the_same_settings_has_only_its_own_results_to_make(done):
    again = "  again:\n    extends: quick\n    about: The same under another name.\n"
    again += "    kind: main\n\n"
    done.edit("params.yaml", "  quick_selection:\n", f"{again}  quick_selection:\n")
    jobs = done.planned_jobs("--config", "study=again")
    assert jobs["analyse"] == jobs["runs"] == 1
    assert not set(jobs) & {*SHARED_RULES, "evaluate_pi_0"}


def test_a_parameter_that_is_changed_back_leaves_nothing_to_do(done):
    before = (done.folder / "params.yaml").read_text()
    done.edit("params.yaml", "damping: 1.0e-3 ", "damping: 1.0e-4 ")
    outputs = planned(done, "quick")
    assert any("/geosd-" in name for name in outputs)
    make(done, "quick", outputs)
    (done.folder / "params.yaml").write_text(before)
    jobs = done.planned_jobs()
    # The tables are the study's own: they are made from the old runs again.
    assert jobs["analyse"] == jobs["runs"] == 1
    assert not set(jobs) & {*SHARED_RULES, "evaluate_pi_0"}


def test_a_snapshot_more_makes_the_run_again_and_one_less_does_not(done):
    text = (done.folder / "params.yaml").read_text()
    more = "    variants: {geosd: {training: {snapshots: [10, 20]}}}\n"
    done.edit("params.yaml", QUICK_ROLLOUT, more + QUICK_ROLLOUT)
    assert done.planned_jobs()["train"] == 3
    for manifest in done.folder.glob("results/train/*/geosd-*/*/manifest.json"):
        manifest.write_text('{"snapshots": [10, 20]}', encoding="utf-8")
    done.snakemake("--profile", "local", "--touch", "--forceall")
    assert done.planned_jobs() == {}
    (done.folder / "params.yaml").write_text(text)
    jobs = done.planned_jobs()
    assert jobs["train"] == jobs["evaluate"] == 0


def test_an_address_of_other_settings_is_refused_with_a_hint(fresh):
    target = "results/train/mini-qwen3/geosd-0123456789/0/model.safetensors"
    printed = fresh.snakemake("--profile", "local", "-n", target, check=False)
    assert "results/train/mini-qwen3/geosd-0123456789/0 is no result of study quick" in printed
    assert "Hint: results/quick/runs.csv" in printed


def test_every_shared_folder_is_named_as_shared(fresh):
    shared = {Path(name).parts[1] for name in fresh.outputs() if name.startswith("results/")}
    assert shared - {"quick"} <= set(SHARED)
