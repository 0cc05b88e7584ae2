"""DVC's stages are Snakemake's rules: the same names, files, settings and digests of code."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from dvc.repo import Repo

from geosd.cli.stale import _current_results
from geosd.config import load, resolve_study
from geosd.provenance.code import code_digest
from geosd.provenance.workflow_records import workflow_record_path

# What only the report outputs: nothing to version.
REPORT_ONLY = ("configuration", "environment", "front_page", "page")
SETTINGS, CODE = "workflow/dvc/settings.yaml", "workflow/dvc/code.yaml"


@pytest.fixture(scope="module")
def stages(root):
    """All stages that run a rule, with one for each item."""
    with Repo(str(root)) as repo:
        yield [stage for stage in repo.index.stages if stage.cmd and stage.name != "check"]


def rule_of(stage) -> str:
    return stage.name.partition("@")[0]


def generate(workflow, *arguments: str, status: int = 0) -> str:
    """What the generator prints in a copy of the project."""
    return workflow.call("python", "workflow/dvc/generate.py", *arguments, status=status)


@pytest.mark.slow
def test_the_generated_files_are_current(fresh):
    files = [fresh.folder / name for name in ("dvc.yaml", SETTINGS)]
    before = [file.read_text() for file in files]
    generate(fresh)
    assert [file.read_text() for file in files] == before, "run `make dvc` and commit dvc.yaml"


@pytest.mark.slow
def test_an_edit_that_moves_a_result_fails_before_anything_is_made(done):
    params = done.folder / "params.yaml"
    text = params.read_text()
    for old, new in (
        ("damping: 1.0e-3 ", "damping: 1.0e-4 "),
        ("pass_k: [1, 2, 4, 8, 16]", "pass_k: [1, 4, 16]"),
    ):
        params.write_text(text.replace(old, new, 1))
        assert text.count(old)
        assert "Hint: run `make dvc STUDY=quick`" in generate(done, "--check", status=1)
    generate(done)
    generate(done, "--check")


def test_every_stage_checks_and_forces_exactly_its_rule_on_an_output_of_that_rule(stages, fresh):
    outputs = fresh.outputs()
    for stage in stages:
        path, check, command = stage.cmd.split(" && ")
        assert path == 'export PATH="$PWD/.venv/bin:$PATH"'
        assert check == "python workflow/dvc/generate.py --study quick --check"
        words = shlex.split(command)
        assert words[:5] == ["snakemake", "--profile", "local", "--config", "study=quick"]
        assert words[5:9] == ["--nolock", "--force", "--allowed-rules", rule_of(stage)]
        assert [outputs.get(target) for target in words[10:]] == [rule_of(stage)], stage.name


def test_stages_and_jobs_are_the_same_ones(stages, fresh):
    jobs = fresh.planned_jobs()
    for rule in REPORT_ONLY:
        del jobs[rule]
    counted = {rule: 0 for rule in jobs}
    for stage in stages:
        counted[rule_of(stage)] += 1
    assert counted == jobs


STOPS = """  stops:
    extends: quick
    about: Runs that end early in longer ones.
    kind: main
    methods: [pi_0, fwdkl, geosd]
    seeds: [0, 3]
    outputs: [figure_alignment, table_main]
    variants: {geosd: {training: {snapshots: [25, 75]}}}
    grid: {fwdkl: {steps: [50, 120]}}

  quick_selection:
"""


def expanded(file: Path) -> dict[str, dict]:
    """Each stage of a dvc.yaml by its name, with its item's values in it."""
    found = {}
    for name, entry in yaml.safe_load(file.read_text())["stages"].items():
        for key, item in entry.get("foreach", {"": {}}).items():
            text = json.dumps(entry.get("do", entry))
            for word, value in item.items():
                text = text.replace(f"${{item.{word}}}", value)
            found[f"{name}@{key}" if key else name] = json.loads(text)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("study", "profile", "unlike_quick"),
    [
        ("stops", "local", {"early_stop", "states", "alignment"}),
        ("paper_ablation", "slurm", {"fetch", "states", "alignment"}),
    ],
)
def test_each_job_of_any_study_is_a_stage_that_reads_what_the_job_reads(
    fresh, tmp_path, study, profile, unlike_quick
):
    workflow = type(fresh)(tmp_path / "copy")
    shutil.copytree(fresh.folder, workflow.folder, symlinks=True)
    ten = "seeds: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]                # not given: its first row"
    workflow.edit("params.yaml", ten, "seeds: [0, 1]  #")
    workflow.edit("params.yaml", "  quick_selection:\n", STOPS)
    workflow.keep_studies("quick", "paper", "paper_ablation", "stops")
    for rules in (workflow.folder / "workflow/rules").iterdir():  # a message hides a job's files
        text = re.sub(r"^( +)message:\n\1 +.+\n", "", rules.read_text(), flags=re.M)
        rules.write_text(text)
    generate(workflow, "--study", study)
    at = workflow.folder / f"pipelines/{study}"
    own, first = expanded(at / "dvc.yaml"), expanded(workflow.folder / "dvc.yaml")
    assert unlike_quick <= {name.partition("@")[0] for name in own}
    assert all(entry["wdir"] == "../.." for entry in own.values())
    values = yaml.safe_load((at / "settings.yaml").read_text())
    entries = [*first.items(), *own.items()]
    outs = {next(iter(out)): (name, entry) for name, entry in entries for out in entry["outs"]}
    assert len(outs) == sum(len(entry["outs"]) for _, entry in entries)  # each once, in both

    config = ("--config", f"study={study}")
    printed = workflow.snakemake("--profile", "local", "--dry-run", *config)
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .+\n)+)", printed, re.M)
    assert len(jobs) > 20
    seen = set()
    for rule, text in jobs:
        lines = dict(line.split(": ", 1) for line in text.strip().splitlines() if ": " in line)
        lines = {key.strip(): value.split(", ") for key, value in lines.items()}
        if rule in (*REPORT_ONLY, "remove_weights", "all") or "output" not in lines:
            continue
        for path in lines["output"]:
            owners = [owner for out, owner in outs.items() if f"{path}/".startswith(f"{out}/")]
            if study == "paper_ablation" and path.endswith("model.safetensors") and rule == "train":
                assert not owners  # weights go once they are sampled
                continue
            ((name, entry),) = owners
            assert name.partition("@")[0] == rule, path
            if entry is own.get(name):
                seen.add(name)
        assert entry["cmd"].startswith(f"${{snakemake}} {rule} -- ")
        ours = f"pipelines/{study}/settings.yaml"
        (read,) = entry["params"][0].get(ours, [""])
        value = values
        for key in filter(None, read.split(".")):
            value = value[key]
        folders = {path.rpartition("/")[0] for path in entry.get("deps", ())}
        for path in lines.get("input", ()):
            read_whole = any(f"{path}/".startswith(f"{dep}/") for dep in entry.get("deps", ()))
            assert read_whole or path.rpartition("/")[0] in folders, (name, path)
    assert set(own) - {"check"} <= seen
    (command,) = yaml.safe_load((at / "dvc.yaml").read_text())["vars"]
    assert f"--profile {profile} --config study={study} " in command["snakemake"]
    generate(workflow, "--study", study, "--check")
    codes = yaml.safe_load((at / "code.yaml").read_text())
    assert codes.keys() == values.keys()
    generate(workflow, "--study", study, "--profile", "other")
    generate(workflow, "--study", study)  # it stays
    assert "--profile other " in (at / "dvc.yaml").read_text()


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
            for name in getattr(dep, "params", ()) if dep.def_path == SETTINGS else ():
                value = values
                for key in name.split("."):
                    value = value[key]
                read += 1
                assert name.split(".")[0] == rule_of(stage).removesuffix("_pi_0"), stage.name
    assert read == len(stages)


def test_what_a_rule_reads_its_stage_depends_on(stages, done_once):
    printed = done_once.snakemake("--profile", "local", "--detailed-summary")
    rows = [
        line.split("\t") for line in printed.splitlines() if re.match(r"(results|figures)/", line)
    ]
    inputs = {row[0]: set(filter(None, row[4].split(","))) - {"-"} for row in rows}
    for stage in stages:
        target = shlex.split(stage.cmd)[-1]
        deps = {dep.def_path for dep in stage.deps if not hasattr(dep, "params")}
        assert not any(dep.startswith("src") for dep in deps)
        for path in inputs[target]:
            assert any(path == dep or path.startswith(f"{dep}/") for dep in deps), path


def test_rules_stages_and_stale_results_have_the_same_digests_of_code(stages, done, monkeypatch):
    generate(done, "--check")
    digests = yaml.safe_load((done.folder / CODE).read_text())
    monkeypatch.chdir(done.folder)
    Path("results/quick/runs.csv").unlink()  # not what a step writes
    resolved = resolve_study(load("params.yaml"), "quick")
    current = _current_results(resolved, Path("figures"))
    assert len(current) > len(stages) / 2
    for result, now in current.items():
        file = "manifest.json" if result.name.endswith("manifest.json") else ""
        path = result if file else result / "manifest.json"
        if workflow_record_path(str(path)).exists():  # not of what the study does not show
            params = json.loads(workflow_record_path(str(path)).read_text())["params"]
            assert repr(code_digest(now.code)) in params, result
    for stage in stages:
        value = digests
        for dep in stage.deps:
            if dep.def_path == CODE:
                for key in dep.params[0].split("."):
                    value = value[key]
        params = json.loads(workflow_record_path(shlex.split(stage.cmd)[-1]).read_text())["params"]
        assert repr(value) in params, stage.name


@pytest.mark.slow
def test_after_a_run_dvc_agrees_that_nothing_is_to_be_done(fresh, root, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    for name in (".gitignore", ".dvcignore", ".dvc/config", ".dvc/.gitignore"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy2(root / name, folder / name)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    workflow = type(fresh)(folder)
    workflow.keep_studies("quick", "quick_selection")
    few = "methods: [pi_0, fwdkl, revkl, grpo, geosd]\n    seeds: [0, 1, 2]"
    workflow.edit("params.yaml", few, "methods: [pi_0, fwdkl, geosd]\n    seeds: [0]")
    generate(workflow)
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

    noted = "from geosd.cli import publish as p"
    noted += "; p.commit_to_publish(['dvc.yaml'], p.folders_to_publish('quick'))"
    workflow.call("python", "-c", noted)
    with Repo(str(folder)) as repo:
        assert repo.status() == {}

    def changed() -> set[str]:
        with Repo(str(folder)) as repo:
            return {name.rpartition(":")[2] for name in repo.status()}

    def changed_after_check() -> set[str]:
        """Stages that `dvc repro` would run, once it has run `check`."""
        assert "check" in changed()
        generate(workflow, "--check")
        return changed() - {"check"}

    loss = folder / "src/geosd/objectives/fwdkl.py"
    text = loss.read_text()
    loss.write_text(text.replace('"""', '"""Edited. ', 1) + "\n# Edited.\n")
    assert changed_after_check() == set()
    loss.write_text(text + "\nEDITED = True\n")
    edited = {name.rpartition("-")[0] for name in changed_after_check()}
    assert edited == {"train@mini-qwen3-fwdkl"}
    with Repo(str(folder)) as repo:  # so `dvc repro` of one stage runs `check` first
        graph = repo.index.graph
        (training,) = (stage for stage in graph if stage.name == "train@mini-qwen3-fwdkl-0")
        assert "check" in {stage.name for stage in graph.successors(training)}
    loss.write_text(text)
    generate(workflow, "--check")
    assert changed() == set()

    (folder / "figures/quick/claims.md").unlink()  # a link into DVC's cache
    (folder / "figures/quick/claims.md").write_text("other")
    assert changed() == {"claims"}
