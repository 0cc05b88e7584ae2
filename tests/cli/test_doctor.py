"""`make doctor` on made-up machines: one that has everything, and ones that each lack something."""

from __future__ import annotations

import contextlib
import json
import os
from types import SimpleNamespace

import pytest
import yaml

from geosd.cli import doctor, study_inputs
from geosd.config import load, resolve_study
from geosd.prerequisites.checks import locked_versions_to_check

MODEL = "qwen3-8b"
RAW = "train/dapo-math-17k.parquet bench/aime24.jsonl bench/aime25.jsonl bench/amc23.jsonl"


@pytest.fixture
def machine(root, tmp_path, monkeypatch):
    """A machine that has what study paper needs of one model, to be spoilt."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")  # a training of Olmo-3 asks for four
    installed = locked_versions_to_check(root / "envs/gpu.txt")
    monkeypatch.setattr(doctor.checks, "installed_versions_to_check", lambda: installed)
    monkeypatch.setattr(doctor, "cached_checkpoint", lambda *_: tmp_path)
    monkeypatch.setattr(doctor, "cached_dataset_file", lambda _: None)
    monkeypatch.setattr(doctor, "hub_answers", lambda *_: False)
    monkeypatch.setattr(
        doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=machine.free_bytes)
    )
    for name in (*RAW.split(), "bench/math500.jsonl"):
        (tmp_path / "data/raw" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data/raw" / name).touch()

    for name in ("base_models", "profiles"):  # params.yaml names files in one
        (tmp_path / name).symlink_to(root / name)

    def run(study="paper", models=(MODEL,), **more):
        with contextlib.chdir(tmp_path):
            doctor.main(
                study,
                root / "params.yaml",
                models,
                **{"executor": "local", "locks": root / "envs", **more},
            )

    machine = SimpleNamespace(
        run=run, installed=installed, folder=tmp_path, free_bytes=10**14, root=root
    )
    return machine


@pytest.fixture
def short_context(root, tmp_path, monkeypatch):
    """The folder of a mini-qwen3 of another context, or of one that nobody knows."""
    monkeypatch.chdir(tmp_path)
    shipped = tmp_path / "base_models"
    shipped.mkdir()
    for each in (root / "base_models").iterdir():
        if each.name != "mini-qwen3":
            (shipped / each.name).symlink_to(each)

    def make(tokens):
        config = json.loads((root / "base_models/mini-qwen3/0/config.json").read_text())
        (shipped / "mini-qwen3/0").mkdir(parents=True)
        (shipped / "mini-qwen3/0/config.json").write_text(
            json.dumps(config | {"max_position_embeddings": tokens})
        )

    return make


def printed_when_refused(machine, capsys, **options):
    """What is printed where something is missing, after the subjects in the last words."""
    with pytest.raises(SystemExit) as end:
        machine.run(**options)
    assert "Hint:" in str(end.value)
    subjects = str(end.value).partition("missing: ")[2].partition(".\n")[0].split("; ")
    printed = capsys.readouterr().out
    for line in printed.splitlines():  # a path is not broken, and a hint is copied whole
        assert (
            len(line) <= 80
            or line.lstrip().startswith("Hint: ")
            or max(map(len, line.split())) > 40
        )
    return subjects, " ".join(printed.split())


def test_a_machine_that_has_everything_is_ok(machine, capsys):
    machine.run()
    machine.run(models=())  # all of the study, with its disk
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith("missing")]
    for subject in ("vllm", "math-verify", "raw files", "checkpoint of qwen3-8b", "GPUs", "disk"):
        assert any(line.startswith(f"ok       {subject}") for line in lines), subject


@pytest.mark.parametrize("package", ["vllm", "math-verify"])
def test_a_missing_package_is_named(machine, capsys, package):
    del machine.installed[package]
    subjects, printed = printed_when_refused(machine, capsys)
    assert len(subjects) == 2 and package in subjects and "envs/gpu.txt" in subjects[0]
    assert "Hint: make .venv/installed-gpu" in printed


def test_a_wrong_version_is_named(machine, capsys):
    machine.installed["torch"] = "2.6.0"
    subjects, printed = printed_when_refused(machine, capsys)
    assert len(subjects) == 1 and "torch 2.6.0 (locked: 2.13.0)" in printed


def test_missing_raw_data_are_named_until_the_data_are_drawn(machine, capsys):
    (machine.folder / "data/raw/bench/amc23.jsonl").unlink()
    subjects, printed = printed_when_refused(machine, capsys)
    assert subjects == ["raw files"] and "amc23" in printed and "aime24" not in printed
    folders = doctor.RunFolders(
        doctor.resolve_study(doctor.load(machine.root / "params.yaml"), "paper")
    )
    drawn = machine.folder / folders.train_problems
    drawn.parent.mkdir(parents=True)
    drawn.touch()
    machine.run()


def test_a_fifth_benchmark_that_no_study_reads_is_named(machine, capsys):
    (machine.folder / "data/raw/bench/aime26.jsonl").touch()
    machine.run()
    printed = " ".join(capsys.readouterr().out.split())
    assert "not read: data/raw/bench/aime26.jsonl" in printed and "data.fresh" in printed


def test_a_folder_without_its_base_model_is_named(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load((machine.root / "params.yaml").read_text())
    values["models"]["mini-qwen3"]["base"]["checkpoint"] = {"folder": "models/mine"}
    values["studies"] = {"quick": values["studies"]["quick"]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(values))
    study = resolve_study(load(tmp_path / "own.yaml"), "quick")
    (found,) = doctor._files(study, study.models, False)
    assert found[:3] == ("base model of mini-qwen3", "missing", "no config.json in models/mine")
    assert "base.checkpoint.folder" in found[3]
    (tmp_path / "models/mine").mkdir(parents=True)
    (tmp_path / "models/mine/config.json").touch()
    assert not [*doctor._files(study, study.models, False)]


def test_a_checkpoint_of_one_file_is_looked_for_in_its_folder_or_the_cache(
    machine, tmp_path, monkeypatch
):
    values = yaml.safe_load((machine.root / "params.yaml").read_text())
    (name,) = [name for name in values["models"] if name.startswith("qwen2.5-coder")]
    checkpoint = values["models"][name]["base"]["checkpoint"]
    values["studies"] = {"quick": {**values["studies"]["quick"], "models": [name], "draws": 1}}

    def looked(**more):
        values["models"][name]["base"]["checkpoint"] = {**checkpoint, **more}
        (machine.folder / "own.yaml").write_text(yaml.safe_dump(values))
        with contextlib.chdir(machine.folder):
            study = resolve_study(load("own.yaml"), "quick")
            return list(doctor._files(study, study.models, False))

    monkeypatch.setattr(doctor, "cached_gguf", lambda *_: None)
    *_, found = looked()
    assert found.state == "missing" and checkpoint["file"] in found.cure
    monkeypatch.setattr(doctor, "cached_gguf", lambda *_: tmp_path)
    *_, found = looked()
    assert found.state == "ok"
    (found,) = looked(folder="models/mine")
    assert found.found == f"no {checkpoint['file']} in models/mine"
    (machine.folder / "models/mine").mkdir(parents=True)
    (machine.folder / "models/mine" / checkpoint["file"]).touch()
    assert not looked(folder="models/mine")


def test_too_few_gpus_are_named(machine, capsys, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    subjects, printed = printed_when_refused(machine, capsys)
    assert subjects == ["GPUs"] and "asks for 3" in printed


def test_a_gpu_that_is_too_small_is_named_with_the_jobs_that_do_not_fit_it(
    machine, capsys, monkeypatch, tmp_path
):
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nfor i in 0 1 2 3 4 5; do echo $i, 81559; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    subjects, printed = printed_when_refused(machine, capsys, study="paper_pilot")
    assert subjects == ["memory of the GPUs"] and "docs/gpu.md" in printed
    assert "86 GB are too few for qwen3-8b/trainer (96 GB), qwen3-8b/worker" in printed
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5")
    machine.run(study="paper_pilot_80gb")  # the same runs, placed otherwise
    assert "ok       memory of the GPUs: 86 GB" in capsys.readouterr().out


def test_a_full_disk_is_named(machine, capsys):
    machine.free_bytes = 10**11
    subjects, printed = printed_when_refused(machine, capsys, models=())
    # The states of two trainings of 8 billion parameters alone: 0.5 TB.
    assert "disk" in subjects and "0.10 TB free" in printed


@pytest.mark.slow
def test_a_study_without_gpus_needs_neither_vllm_nor_slurm(machine, capsys):
    laptop = locked_versions_to_check(machine.root / "envs/laptop.txt")
    machine.installed.clear()
    machine.installed.update(laptop)
    machine.run("quick", (), executor="auto")
    packages, _, context = capsys.readouterr().out.partition("\nok       context of mini-qwen3: ")
    said = f"ok packages of {machine.root}/envs/laptop.txt: {len(laptop)} at the locked versions"
    said += " ok problems: 300 to train on, 300 to select with, 300 to test"
    assert " ".join(packages.split()) == said
    assert context.count("\n") <= 3 and "\nok       folder: " in context


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "reader"), [(84, "teacher"), (52, "student"), (None, None), (85, "")]
)
def test_a_context_that_holds_no_question_is_named(short_context, root, tokens, reader):
    """Study quick: 52 tokens of an evaluation; 42 of a solution and 42 of a training's response."""
    short_context(tokens)
    params = root / "params.yaml"
    study = resolve_study(load(params), "quick")
    check = study_inputs._context(study, "mini-qwen3")
    if reader:
        assert check.state == "missing" and "max_position_embeddings" in check.cure
        assert f"the {reader} of mini-qwen3 may have to read {tokens + 1} tokens" in check.found
        return
    assert check.state == ("ok" if tokens else "unknown")
    assert ("1 of the teacher" in check.found) == bool(tokens)


def test_a_job_that_fits_no_partition_of_the_site_is_named_without_slurm(machine, capsys):
    site = yaml.safe_load((machine.root / "profiles/slurm/site.yaml").read_text())
    limits = {"cpu": {"max_runtime": 2880}, "gpu": {"max_gpu": 4, "max_runtime": 720}}
    file = machine.folder / "site.yaml"
    file.write_text(yaml.safe_dump(site | {"partitions": limits}))
    options = {"executor": "slurm", "probe": False, "site": file}
    subjects, printed = printed_when_refused(machine, capsys, **options)
    assert any("qwen3-8b/train" in subject for subject in subjects)
    assert not any("qwen3-8b/base" in subject for subject in subjects)  # on cpu
    assert "3 GPUs, 384000 MB, 1440 min fit none of " in printed and "max_runtime 720" in printed
    # Jobs that go on when they are submitted again may be cut to the partition's limit.
    file.write_text(yaml.safe_dump(site | {"partitions": limits, "max_minutes": 720}))
    machine.run(**options)


def test_a_cluster_that_does_not_answer_is_named(machine, capsys, monkeypatch):
    (machine.folder / "bin").mkdir()
    scontrol = machine.folder / "bin/scontrol"
    scontrol.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(scontrol.parent))
    subjects, printed = printed_when_refused(machine, capsys, executor="slurm")
    assert subjects == ["SLURM"] and "Unable to contact slurm controller" in printed


def test_the_example_of_the_site_is_what_the_doctor_reads(root):
    known = yaml.safe_load((root / "profiles/slurm/site.yaml").read_text())
    assert set(doctor.slurm.SlurmSite._fields) <= set(known)
