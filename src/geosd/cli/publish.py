"""Publish a finished study with DVC, and restore it in another clone.

DVC knows content, Snakemake knows what each file was made from, and when: its records. DVC keeps
the files of a study, its own and the shared ones that it uses; published/<study>.json.gz, in git,
keeps Snakemake's records of them and the hash of each. A clone that gets both has nothing to do,
until code, parameters or inputs are not those of the records. A file whose hash is not the recorded
one gets no record, and is made again.

Folders that are outputs of a stage of a dvc.yaml are kept by the stage, every other folder by a
file of its own, published/<folder>.dvc: studies that share a folder share the file. DVC's
cache is the store where the store is a folder (.dvc/config), so there is one copy of both.
"""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import tyro
import yaml
from dvc.repo import Repo

from geosd.cli.dvc_metrics import write_own
from geosd.config import Family, load, resolve_study_or_family
from geosd.config.run_folders import SHARED, RunFolders
from geosd.files import write_text
from geosd.prerequisites.folder_name import refuse_folder
from geosd.provenance.code import NO_HISTORY, why_no_commit
from geosd.provenance.workflow_records import (
    PUBLISHED,
    collect_workflow_records,
    install_workflow_records,
    workflow_records_file,
)
from geosd.reporting.shipping import MANIFEST

PIPELINE, LOCK = "dvc.yaml", "dvc.lock"
FIRST = "quick"  # its pipeline is the one in the root
CHECK = "check"  # the stage of a pipeline that makes no result
SOURCES = ("Snakefile", "params.yaml", "dvc.yaml", "pipelines", "workflow", "src", "base_models")


def run_to_publish(*command: str) -> str:
    """Output of a command of DVC, git or Snakemake; if it fails, this process ends with that."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def folders_to_publish(study: str) -> list[Path]:
    """The folders to publish: those of a study that exist, its own and the shared ones it uses.

    Git keeps the outputs of a shipped study, so DVC must not. A family has its own alone.
    """
    resolved = resolve_study_or_family(load("params.yaml"), study)
    shared = [] if isinstance(resolved, Family) else RunFolders(resolved).shared()
    folders = map(Path, (f"results/{study}", f"figures/{study}", *shared))
    return [path for path in folders if path.exists() and not (path / MANIFEST).exists()]


def _pipeline_of(stage: str) -> str:
    """The dvc.yaml of a stage, by the stage's name."""
    return stage.rpartition(":")[0] or PIPELINE


def _write_code(pipeline: str) -> tuple[str, ...]:
    """The command that writes the digests of code that the stages of a pipeline depend on."""
    study = FIRST if pipeline == PIPELINE else Path(pipeline).parent.name
    return (sys.executable, "workflow/dvc/generate.py", "--check", "--study", study)


def _stage_outputs() -> dict[Path, str]:
    """Each output of a stage of a dvc.yaml that DVC keeps, and the stage's name."""
    outputs = {}
    with Repo() as repo:
        for stage in repo.index.stages:
            if stage.path_in_repo.endswith(PIPELINE):
                kept = [out for out in stage.outs if out.use_cache]
                for out in kept:
                    outputs[Path(os.path.relpath(out.fs_path))] = stage.addressing
    return outputs


def _short_targets(targets: Iterable[str], stages: Iterable[str]) -> list[str]:
    """The targets once each, with a dvc.yaml for its stages where all of them are there.

    DVC reads dvc.yaml and dvc.lock anew for every target, a second or two each time.
    """
    named = dict.fromkeys(targets)
    of_pipeline: dict[str, set[str]] = {}
    for stage in stages:
        of_pipeline.setdefault(_pipeline_of(stage), set()).add(stage)
    whole = [name for name, all_of in of_pipeline.items() if all_of <= named.keys()]
    inside = set().union(*(of_pipeline[name] for name in whole))
    return whole + [target for target in named if target not in inside]


def commit_to_publish(targets: Collection[str], folders: Iterable[Path]) -> list[str]:
    """Let DVC take what lies in the folders as what the targets make.

    --force: trust the files, which Snakemake has just called up to date. Snakemake compares large
    files by their time, so each keeps its own.

    Returns:
        The pipelines that have a target.
    """
    pipelines: dict[str, None] = {}  # a set in order
    for name in targets:
        if name.endswith(PIPELINE):
            pipelines[name] = None
        elif not name.endswith(".dvc"):
            pipelines[_pipeline_of(name)] = None
    checks = []
    for pipeline in pipelines:
        run_to_publish(*_write_code(pipeline))
        if pipeline not in targets:
            checks.append(CHECK if pipeline == PIPELINE else f"{pipeline}:{CHECK}")
    times = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                times[path] = path.stat().st_mtime_ns
    run_to_publish("dvc", "commit", "--force", *checks, *targets)
    for path, time in times.items():
        if path.stat().st_mtime_ns != time:  # DVC would hash it again where it is set in vain
            os.utime(path, ns=(time, time))
    return list(pipelines)


def _write_pointer(folder: Path) -> Path:
    """Write the file by which DVC keeps a folder that no stage makes; DVC adds the hash to it."""
    path = PUBLISHED / f"{folder}.dvc"
    if not path.exists():
        root = os.path.relpath(".", path.parent)
        write_text(path, yaml.safe_dump({"wdir": root, "outs": [{"path": str(folder)}]}))
    return path


def _undeclared(folder: Path, declared: Sequence[Path]) -> list[Path]:
    """What of a folder no stage makes, given the outputs of stages in it: it, or a part of it."""
    if not declared:
        return [folder]
    if folder in declared or folder.parts[1] not in SHARED:
        return []
    # What no rule declares, as weights on the way.
    covered = set(declared)
    for out in declared:
        covered.update(out.parents)
    return [path for path in sorted(folder.iterdir()) if path not in covered]


def main(study: str) -> None:
    """Hand a finished study to DVC, its records to git, and both on.

    Raises:
        SystemExit: The sources are not committed, or the study is not finished.
    """
    refuse_folder(Path.cwd())
    changed = run_to_publish("git", "status", "--porcelain", "--untracked-files=no", "--", *SOURCES)
    if changed:
        raise SystemExit(
            f"Not committed yet:\n{changed}Hint: commit first; what is published names the commit"
            " that it can be made again from."
        )
    if not _is_finished(study):
        raise SystemExit(
            f"Study {study} is not finished, or not up to date.\n"
            f"Hint: `make plan STUDY={study}` says what is missing."
        )
    folders = folders_to_publish(study)
    stages = _stage_outputs()
    tracked, targets = [], []
    for folder in folders:
        inside = [out for out in stages if out == folder or folder in out.parents]
        others = _undeclared(folder, inside)
        tracked += inside + others
        targets += [stages[out] for out in inside]
        targets += [str(_write_pointer(path)) for path in others]
    targets = _short_targets(targets, stages.values())
    pipelines = commit_to_publish(targets, folders)
    pointers = [name for name in targets if name.endswith(".dvc")]
    outputs = collect_workflow_records(folders, tracked)
    packed = json.dumps({"targets": targets, "outputs": outputs}, sort_keys=True).encode()
    workflow_records_file(study).parent.mkdir(exist_ok=True)
    workflow_records_file(study).write_bytes(gzip.compress(packed, mtime=0))
    # DVC names a folder that it keeps in the .gitignore of the folder above.
    kept = [LOCK if name == PIPELINE else str(Path(name).parent) for name in pipelines]
    metrics = [str(file) for file in write_own(study)]
    committed = [str(workflow_records_file(study)), *pointers, *kept, *metrics]
    committed += [name for name in ("figures/.gitignore",) if Path(name).exists()]
    if LOCK in kept:
        subprocess.run(("git", "update-index", "--no-skip-worktree", LOCK), capture_output=True)
    run_to_publish("git", "add", "--force", "--", *committed)  # git ignores accuracies before
    if run_to_publish("git", "diff", "--cached", "--name-only", "--", *committed):
        run_to_publish("git", "commit", "--quiet", "-m", f"Publish study {study}", "--", *committed)
    # All of a dvc.yaml in place of some of its stages: DVC reads its lock once for each target.
    print(run_to_publish("dvc", "push", *pipelines, *pointers).strip())
    print(f"{len(outputs)} files of study {study} are published; `git push` shares them.")


def dvc_commit(study: str, finished: bool = False) -> None:
    """Let DVC record a finished study that has a pipeline, as `publish` does, and push nothing.

    Args:
        finished: Snakemake has just run the study.
    """
    refuse_folder(Path.cwd())
    why = why_no_commit(Path())
    if why not in (None, NO_HISTORY):
        print(
            f"DVC does not know study {study}: {why}. Snakemake knows it, and nothing is missing."
        )
        return
    hide_published_lock()
    pipeline = PIPELINE if study == FIRST else f"pipelines/{study}/{PIPELINE}"
    if finished and subprocess.run(_write_code(pipeline), capture_output=True).returncode:
        print(f"`make dvc STUDY={study}` lets DVC know study {study} as it stands in params.yaml.")
    elif not (finished or _is_finished(study)):
        print(f"Study {study} is not finished: `dvc repro` would run all of {pipeline}.")
    else:
        write_own(study)
        try:
            commit_to_publish([pipeline], folders_to_publish(study))
        except SystemExit as error:
            if not finished:
                raise
            last = str(error).strip().splitlines()[-1]
            print(f"DVC does not know study {study}: {last}\nNothing of the study is missing.")
            return
        print(f"DVC knows study {study}: `dvc status` finds nothing to do in {pipeline}.")


def hide_published_lock() -> None:
    """Hide the hashes in dvc.lock from `git status` while git's own dvc.lock is empty."""
    if run_to_publish("git", "ls-files", LOCK) and "stages:" not in run_to_publish(
        "git", "show", f":./{LOCK}"
    ):
        run_to_publish("git", "update-index", "--skip-worktree", LOCK)


def _is_finished(study: str) -> bool:
    """Whether Snakemake finds nothing to do."""
    options = ("--profile", "local", "--dry-run", "--config", f"study={study}")
    return "Nothing to be done" in run_to_publish("snakemake", *options)


def _not_fetched(error: str) -> str:
    """The message where DVC could not fetch: its words, or in their place that its store is gone.

    Without a store DVC lists each file that it does not find, and not the store.
    """
    with Repo() as repo:
        store = repo.cloud.get_remote()
    if store.fs.protocol == "local" and not Path(store.path).is_dir():
        error = f"The store of published studies is not at {store.path}."
    return (
        f"{error.rstrip()}\nHint: studies are fetched from {store.path}; `dvc remote modify --local"
        f" {store.name} url PLACE` names another folder, s3://bucket/path or ssh://host/path."
    )


def restore_published(
    study: str, targets: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
) -> None:
    """Fetch what DVC keeps of a study, and let Snakemake know what it was made from.

    Args:
        targets: What of it, as `dvc pull` takes it; empty: everything.

    Raises:
        SystemExit: The study has not been published or cannot be fetched, or a file is not as
            published.
    """
    refuse_folder(Path.cwd())
    if not workflow_records_file(study).exists():
        names = sorted(path.name.split(".")[0] for path in PUBLISHED.glob("*.json.gz"))
        raise SystemExit(
            f"Study {study} has not been published: there is no {workflow_records_file(study)}.\n"
            f"Hint: published are: {', '.join(names) or 'none'}."
        )
    published = json.loads(gzip.decompress(workflow_records_file(study).read_bytes()))
    try:
        print(run_to_publish("dvc", "pull", *(targets or published["targets"])).strip())
    except SystemExit as error:
        raise SystemExit(_not_fetched(str(error))) from error
    # Without an error: where params.yaml was edited here, the stages of DVC say so themselves.
    for pipeline in (PIPELINE, *(n for n in published["targets"] if n.endswith(f"/{PIPELINE}"))):
        subprocess.run(_write_code(pipeline), capture_output=True)
    own = (f"figures/{study}", *(f"results/{name}" for name in (study, *SHARED)))
    same, others, absent = install_workflow_records(
        workflow_records_file(study), published["outputs"], own
    )
    print(f"{same} files are as published, {len(others)} are others, {absent} are not here.")
    if others:
        raise SystemExit(
            "\n".join(["These are not the files that were published:", *others])
            + f"\nHint: `make run STUDY={study}` makes them anew; to fetch them once more, remove"
            " them and what `dvc cache dir` names, and restore again."
        )
