"""The plan of a fresh clone: every job that params.yaml asks for, and no other."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import yaml

from geosd.cli.command import PROGRAMS

# evaluate_pi_0 runs the step evaluate; the other two only prepare the report. A table or figure is
# named to the step `render`.
WITHOUT_STEP = {"evaluate_pi_0", "configuration", "page"}


@pytest.fixture(scope="module")
def quick(root):
    return yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]


@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_both_profiles_plan_one_job_for_each_run_of_the_study(fresh, quick, profile):
    models, seeds = len(quick["models"]), len(quick["seeds"])
    runs = models * seeds * len([m for m in quick["methods"] if m != "pi_0"])
    once = (
        "data analyse claims configuration environment front_page figure_frontier figure_training"
        " table_main table_benchmarks"
    )

    jobs = fresh.planned_jobs("--profile", profile, "--config", "study=quick")

    assert jobs == {
        "base": models,
        "pool": models,
        "train": runs,
        "evaluate": runs,
        "evaluate_pi_0": models * seeds,
        "page": 6,
        "runs": 1,
        **dict.fromkeys([*once.split(), "table_significance"], 1),
    }


@pytest.mark.parametrize("target", ["tables", "figures"])
def test_tables_and_figures_are_targets_of_their_own(fresh, target):
    rules = set(fresh.planned_jobs(target))
    assert "claims" not in rules
    assert any(rule.startswith(target[:-1]) for rule in rules)


def test_every_command_is_the_module_of_its_rule_with_explicit_paths(fresh):
    printed = fresh.snakemake("--profile", "local", "--dry-run", "--printshellcmds")
    commands = re.findall(r"python -m geosd (?:render )?([\w-]+) (.*)", printed)
    assert {rule.replace("-", "_") for rule, _ in commands} == set(
        fresh.planned_jobs()
    ) - WITHOUT_STEP
    folders, model = fresh.folders(), "mini-qwen3"
    run = folders.train(model, "geosd", 2).removeprefix("results/")
    train = next(c for rule, c in commands if rule == "train" and "--variant geosd --seed 2" in c)
    assert train == (
        "--study quick --model mini-qwen3 --variant geosd --seed 2"
        f" --base {folders.base(model)} --problems {folders.data}/train.jsonl"
        f" --pool {folders.pool(model)}/pool.jsonl --out results/{run} --scratch scratch/{run}"
        f" --workers 0  > logs/quick/{run}.log 2>&1"
    )
    pi_0 = next(c for rule, c in commands if rule == "evaluate" and "--variant pi_0" in c)
    assert f"--checkpoint {folders.base(model)} " in pi_0


def test_every_rule_with_a_program_has_its_module(root, fresh):
    rules = set(fresh.planned_jobs()) - WITHOUT_STEP
    steps = {name.replace("-", "_") for name in PROGRAMS}
    shown = {path.stem for path in (root / "src/geosd/reporting").glob("*.py")}
    assert rules <= steps | shown


def test_a_study_that_does_not_exist_is_named_with_what_does(fresh):
    printed = fresh.snakemake("-n", "--cores", "1", "--config", "study=quik", check=False)
    assert "'quik' is no study. Did you mean quick? Allowed: quick" in printed


def test_the_command_line_may_set_nothing_but_the_study(fresh):
    printed = fresh.snakemake("-n", "--cores", "1", "--config", "models=none", check=False)
    assert "may only name the study" in printed
    assert "Hint:" in printed


def test_a_mistake_in_params_is_named_before_anything_is_planned(done):
    done.edit("params.yaml", "top_k: 1024 ", "top_k: many ")
    printed = done.snakemake("-n", "--cores", "1", check=False)
    assert re.search(r'params.yaml:\d+: protocol.training.top_k: "many" is not allowed', printed)
    assert "Building DAG" not in printed


def test_lint_finds_nothing(untouched):
    printed = untouched.snakemake("--profile", "local", "--lint")
    assert "Congratulations, your workflow is in a good condition!" in printed


def test_readme_draws_the_rules_as_they_depend_on_each_other(untouched, root):
    targets = ("--rulegraph", "mermaid-js", "--", "table_main", "figure_frontier", "claims")
    printed = untouched.snakemake("--profile", "local", *targets)
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", printed))
    drawn = re.search(r"^```mermaid\n(.*?)^```", (root / "README.md").read_text(), re.M | re.S)[1]
    assert {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", printed)} == set(
        re.findall(r"^  (\w+) --> (\w+)$", drawn, re.M)
    )


@pytest.mark.slow
def test_the_plan_of_a_finished_study_has_no_job(done, tmp_path, monkeypatch):
    planned = tmp_path / "jobs.json"
    monkeypatch.setenv("GEOSD_PLANNED_JOBS", str(planned))
    replace(done, forks=False).snakemake("--profile", "local", "--dry-run")
    assert json.loads(planned.read_text()) == []
