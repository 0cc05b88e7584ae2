"""DVC's stages are Snakemake's rules: the same names, files, settings and code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

# What only the report outputs: nothing to version.
REPORT_ONLY = ("configuration", "environment", "front_page", "page")
SETTINGS = "workflow/dvc/settings.yaml"


@pytest.fixture(scope="module")
def stages(root):
    """All stages that run a rule, with one for each item."""
    with Repo(str(root)) as repo:
        yield [stage for stage in repo.index.stages if stage.cmd and stage.name != "check"]


def rule_of(stage) -> str:
    return stage.name.partition("@")[0]


def generate(folder, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the generator on a copy of the project."""
    return subprocess.run(
        [sys.executable, "workflow/dvc/generate.py", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
    )


def test_the_generated_files_are_current(root):
    checked = generate(root, "--check")
    assert checked.returncode == 0, checked.stderr + "Hint: run `make dvc` and commit dvc.yaml."


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("params.yaml", "damping: 1.0e-3 ", "damping: 1.0e-4 "),
        ("params.yaml", "pass_k: [1, 2, 4, 8, 16]", "pass_k: [1, 4, 16]"),
        (
            "src/geosd/optim/kfac.py",
            "import math",
            "import geosd.costs.hours\nimport math",
        ),
    ],
)
def test_an_edit_that_moves_a_result_fails_before_anything_is_made(done, path, old, new):
    text = (done.folder / path).read_text()
    (done.folder / path).write_text(text.replace(old, new, 1))
    assert text.count(old)
    checked = generate(done.folder, "--check")
    assert checked.returncode and "Hint: run `make dvc`" in checked.stderr
    assert generate(done.folder).returncode == 0
    assert generate(done.folder, "--check").returncode == 0


def test_every_stage_checks_and_forces_exactly_its_rule_on_an_output_of_that_rule(stages, fresh):
    outputs = fresh.outputs()
    for stage in stages:
        check, _, command = stage.cmd.partition(" && ")
        assert check == "python workflow/dvc/generate.py --check"
        words = shlex.split(command)
        assert words[:5] == ["snakemake", "--profile", "local", "--nolock", "--force"]
        assert words[5:8] == ["--allowed-rules", rule_of(stage), "--"]
        assert [outputs.get(target) for target in words[8:]] == [rule_of(stage)], stage.name


def test_stages_and_jobs_are_the_same_ones(stages, fresh):
    jobs = fresh.planned_jobs()
    for rule in REPORT_ONLY:
        del jobs[rule]
    counted = {rule: 0 for rule in jobs}
    for stage in stages:
        counted[rule_of(stage)] += 1
    assert counted == jobs


def test_a_run_is_a_stage_by_its_model_variant_and_seed(stages, root):
    quick = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]
    trained = [method for method in quick["methods"] if method != "pi_0"]
    names = {f"train@{m}-{v}-{s}" for m in quick["models"] for v in trained for s in quick["seeds"]}
    assert names == {stage.name for stage in stages if rule_of(stage) == "train"}


def test_every_output_belongs_to_one_stage_and_outlives_its_rerun(stages, fresh):
    outs = {out.def_path: out for stage in stages for out in stage.outs}
    assert all(out.persist for out in outs.values())
    for path, rule in fresh.outputs().items():
        owners = [out for out in outs if path == out or path.startswith(f"{out}/")]
        assert len(owners) == (rule not in REPORT_ONLY), path


def test_settings_that_a_stage_may_read_are_those_of_its_rule(stages, root):
    values = yaml.safe_load((root / SETTINGS).read_text())
    read = 0
    for stage in stages:
        for dep in stage.deps:
            for name in getattr(dep, "params", ()):
                value = values
                for key in name.split("."):
                    value = value[key]
                read += 1
                assert name.split(".")[0] == rule_of(stage).removesuffix("_pi_0"), stage.name
    assert read == len(stages)


def test_what_a_rule_reads_its_stage_depends_on_and_on_no_other_code(stages, done_once):
    printed = done_once.snakemake("--profile", "local", "--detailed-summary")
    rows = [
        line.split("\t") for line in printed.splitlines() if re.match(r"(results|figures)/", line)
    ]
    inputs = {row[0]: set(row[4].split(",")) for row in rows}
    for stage in stages:
        target = shlex.split(stage.cmd)[-1]
        deps = {dep.def_path for dep in stage.deps if not hasattr(dep, "params")}
        for path in inputs[target]:
            assert any(path == dep or path.startswith(f"{dep}/") for dep in deps), path
        code = {path for path in inputs[target] if path.startswith("src/")}
        # A list of DVC's is the same for all runs: what one objective imports, all depend on.
        more = {dep for dep in deps if dep.startswith("src/")} - code
        assert not {dep for dep in more if not dep.startswith("src/geosd/objectives/")}, stage.name


@pytest.mark.slow
def test_after_a_run_dvc_agrees_that_nothing_is_to_be_done(fresh, root, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    for name in ("Makefile", ".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(root / name, folder / name)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    with Repo(str(folder)) as repo:
        outs = [Path(out.fs_path) for stage in repo.index.stages for out in stage.outs]
    for out in outs:
        path = out if out.suffix else out / "made.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    with Repo(str(folder)) as repo:  # single files out of the folders that stages make
        deps = [dep for stage in repo.index.stages for dep in stage.deps]
    for path in [Path(dep.fs_path) for dep in deps if dep.fs_path and not dep.exists]:
        path.write_text(path.name)

    def make_lock() -> str:
        done = subprocess.run(
            ["make", f"BIN={Path(sys.executable).parent}", "dvc.lock"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    make_lock()
    with Repo(str(folder)) as repo:
        assert repo.status() == {}
    assert "up to date" in make_lock()

    (folder / "figures/quick/claims.md").write_text("other")
    with Repo(str(folder)) as repo:
        assert [name.rpartition(":")[2] for name in repo.status()] == ["claims"]
