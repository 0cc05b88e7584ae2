"""Figures of states and checkpoints: what they need, and what makes it again."""

from __future__ import annotations

import shutil

import pytest
import yaml
from cases import with_studies

from geosd.config import load, resolve_study, settings
from geosd.config.kept_weights import kept_snapshots
from geosd.config.run_folders import RunFolders

SHOWN = "figure_mechanism, figure_alignment, figure_density"


@pytest.fixture
def showing(fresh, tmp_path):
    """The fresh workflow, whose study quick shows these figures alone."""
    shutil.copytree(fresh.folder, tmp_path / "copy", symlinks=True)
    workflow = type(fresh)(tmp_path / "copy")
    workflow.keep_studies("quick", "quick_selection")
    quick = yaml.safe_load((workflow.folder / "params.yaml").read_text())["studies"]["quick"]
    workflow.edit(
        "params.yaml",
        f"    methods: [{', '.join(quick['methods'])}]\n    seeds: [0, 1, 2]\n"
        f"    outputs: [{', '.join(quick['outputs'])}]",
        f"    methods: [pi_0, fwdkl, geosd]\n    seeds: [0, 1, 2]\n    outputs: [{SHOWN}]",
    )
    return workflow


def test_states_are_looked_at_once_and_every_run_of_two_methods_is_followed(showing):
    jobs = showing.planned_jobs()
    assert jobs == {
        **dict.fromkeys("data base pool states runs analyse".split(), 1),
        **dict.fromkeys(["configuration", "environment", "front_page"], 1),
        "page": 2,
        **dict.fromkeys("figure_mechanism figure_alignment figure_density".split(), 1),
        "train": 6,
        "evaluate": 6,
        "evaluate_pi_0": 3,
        "alignment": 6,
    }


def test_commands_name_every_file_they_read(showing):
    printed = showing.snakemake("--profile", "local", "--dry-run", "--printshellcmds")
    folders = showing.folders()
    states = f"{folders.states('mini-qwen3')}/states"
    assert f"--tidy {states}.csv results/quick/analyse/drift_over_steps.csv" in printed
    run = f"--variant geosd --seed 2 --base {folders.base('mini-qwen3')}"
    run += f" --checkpoint {folders.train('mini-qwen3', 'geosd', 2)}"
    assert f"{run} --states {states}.jsonl --out results/quick/alignment" in printed
    tables = (
        f"results/quick/alignment/mini-qwen3/{variant}/{seed}/alignment.csv"
        for variant in ("fwdkl", "geosd")
        for seed in range(3)
    )
    assert f"--tidy {' '.join(tables)} --out figures/quick" in printed


def test_snapshots_of_a_variant_are_no_setting_of_its_training_and_one_of_its_alignment(
    root, tmp_path
):
    values = yaml.safe_load(with_studies((root / "params.yaml").read_text(), ["quick"]))
    values["studies"]["quick"]["variants"] = {"geosd": {"training": {"snapshots": [10, 20]}}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    before, after = (resolve_study(load(f / "params.yaml"), "quick") for f in (root, tmp_path))
    for variant in before.trained:
        for rule in ("train", "alignment"):
            old, new = (settings(rule, s, "mini-qwen3", variant) for s in (before, after))
            assert (old != new) == ((rule, variant) == ("alignment", "geosd")), (rule, variant)
    old, new = (settings("states", s, "mini-qwen3") for s in (before, after))
    assert old == new
    run = ("mini-qwen3", RunFolders(after).recipe("mini-qwen3", "geosd"), 0)
    assert run not in kept_snapshots(before)
    assert kept_snapshots(after)[run] == (10, 20)
