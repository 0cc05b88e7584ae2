"""DVC's stages are Snakemake's rules: the same names, files and parameters."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from dvc.repo import Repo

# What only the report outputs: nothing to version.
REPORT_ONLY = ("configuration", "environment", "page")


@pytest.fixture(scope="module")
def stages(root):
    """All stages, matrices expanded."""
    with Repo(str(root)) as repo:
        yield [stage for stage in repo.index.stages if stage.cmd]


def rule_of(stage) -> str:
    name, _, item = stage.name.partition("@")
    return item if name in ("table", "figure") else name


def test_every_stage_forces_exactly_its_rule_on_an_output_of_that_rule(stages, fresh):
    outputs = fresh.outputs()
    for stage in stages:
        words = shlex.split(stage.cmd)
        assert words[:5] == ["snakemake", "--profile", "local", "--nolock", "--force"]
        assert words[5:8] == ["--allowed-rules", rule_of(stage), "--"]
        assert [outputs.get(target) for target in words[8:]] == [rule_of(stage)], stage.name


def test_stages_and_jobs_are_the_same_ones(stages, fresh):
    wanted = fresh.wanted()
    for rule in REPORT_ONLY:
        del wanted[rule]
    counted = {rule: 0 for rule in wanted}
    for stage in stages:
        counted[rule_of(stage)] += 1
    assert counted == wanted


def test_every_output_belongs_to_one_stage_and_outlives_its_rerun(stages, fresh, root):
    outs = {out.def_path: out for stage in stages for out in stage.outs}
    assert all(out.persist for out in outs.values())
    for path, rule in fresh.outputs().items():
        owners = [out for out in outs if path == out or path.startswith(f"{out}/")]
        assert len(owners) == (rule not in REPORT_ONLY), path


def test_the_trained_variants_are_those_of_params(root):
    quick = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]
    listed = yaml.safe_load((root / "dvc.yaml").read_text())["vars"][0]["trained"]
    assert listed == [method for method in quick["methods"] if method != "pi_0"]


def test_every_section_a_stage_reads_is_watched_where_it_is_set(stages, root):
    """A section of the protocol is watched together with what the study lays over it."""
    params = yaml.safe_load((root / "params.yaml").read_text())
    quick = params["studies"]["quick"]
    for stage in stages:
        watching = [dep for dep in stage.deps if hasattr(dep, "params")]
        watched = {n for dep in watching if dep.def_path == "params.yaml" for n in dep.params}
        for name in watched:
            value = params
            for key in name.split("."):
                assert key in value, f"{stage.name} watches {name}, which params.yaml does not have"
                value = value[key]
        sections = {name.split(".")[1] for name in watched if name.startswith("protocol.")}
        for section in sections & quick.keys():
            assert f"studies.quick.{section}" in watched, f"{stage.name}: {section}"


def test_every_module_behind_a_rule_is_a_dependency_of_its_stage(stages, done_once):
    printed = done_once.snakemake("--profile", "local", "--detailed-summary")
    rows = [
        line.split("\t") for line in printed.splitlines() if re.match(r"(results|figures)/", line)
    ]
    code: dict[str, set[str]] = {}
    for row in rows:
        code.setdefault(row[2], set()).update(
            name for name in row[4].split(",") if name.startswith("src/")
        )
    for stage in stages:
        deps = [dep.def_path for dep in stage.deps if not hasattr(dep, "params")]
        for path in code[rule_of(stage)]:
            covered = any(path == dep or path.startswith(f"{dep}/") for dep in deps)
            assert covered or path.endswith("__init__.py"), f"{stage.name} lacks {path}"
