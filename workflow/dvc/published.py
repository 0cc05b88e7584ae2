"""Publish a finished study with DVC, and restore it in another clone.

    python workflow/dvc/published.py publish --study quick
    python workflow/dvc/published.py restore --study quick [DVC TARGET ...]

DVC knows content, Snakemake knows what each file was made from, and when: its records. DVC keeps
the files of a study; published/<study>.json.gz, in git, keeps Snakemake's records of them and the
hash of each. A clone that gets both has nothing to do, until code, parameters or inputs are not
those of the records. A file whose hash is not the recorded one gets no record, and is made again.

The study of dvc.yaml is kept by its stages, others by results/<study>.dvc and figures/<study>.dvc.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

RECORDS = Path(".snakemake/metadata")
LONG_AGO = 1_000_000_000  # 2001; Snakemake takes time 0 for no time
WATCHED = ("Snakefile", "params.yaml", "dvc.yaml", "workflow", "src")


def run(*command: str) -> str:
    """Run a command; its standard output.

    Raises:
        SystemExit: It failed; its own words are shown.
    """
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def folders(study: str) -> list[Path]:
    """Where the files of a study lie."""
    return [Path("results") / study, Path("figures") / study]


def in_stages(study: str) -> bool:
    """Whether dvc.yaml has the stages of this study."""
    stages = yaml.safe_load(Path("dvc.yaml").read_text())["stages"]
    return f"results/{study}/" in json.dumps(stages)


def whole(study: str) -> list[str]:
    """What DVC calls all of a study."""
    return ["dvc.yaml"] if in_stages(study) else [f"{folder}.dvc" for folder in folders(study)]


def kept(study: str) -> Path:
    """The file of a study's records."""
    return Path("published") / f"{study}.json.gz"


def record_path(output: str) -> Path:
    """Where Snakemake keeps its record of an output: base64, cut to what a file's name may hold."""
    longest = os.pathconf(".", "PC_NAME_MAX") - 1
    name = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [name[i : i + longest] for i in range(0, len(name), longest)]
    return RECORDS.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def kept_by_dvc(study: str) -> list[Path]:
    """Files and folders of a study that DVC keeps."""
    if not in_stages(study):
        return folders(study)
    stages = yaml.safe_load(Path("dvc.lock").read_text())["stages"].values()
    return [Path(out["path"]) for stage in stages for out in stage.get("outs", [])]


def collect(study: str) -> dict[str, Any]:
    """Snakemake's record, hash and time of each file of a study that it made.

    The few files that no stage of dvc.yaml makes, pages of the report, are kept here as text.
    """
    found = {}
    elsewhere = set(kept_by_dvc(study))
    for path in sorted(p for folder in folders(study) for p in folder.rglob("*") if p.is_file()):
        record = record_path(str(path))
        if record.exists():
            found[str(path)] = {
                "sha256": sha256(path),
                "time_ns": path.stat().st_mtime_ns,
                "record": json.loads(record.read_text()),
            }
            if not elsewhere & {path, *path.parents}:
                found[str(path)]["text"] = path.read_text(encoding="utf-8")
    return found


def install(study: str, outputs: dict[str, Any]) -> tuple[int, int, int]:
    """Give back its record and time to each file of a study that is the recorded one.

    Returns:
        How many files are as recorded, how many are others, and how many are not there.

    Raises:
        SystemExit: A recorded name leads out of the study's folders.
    """
    allowed = [folder.resolve() for folder in folders(study)]
    for name in outputs:
        if not any(Path(name).resolve().is_relative_to(folder) for folder in allowed):
            raise SystemExit(
                f"{kept(study)} names {name}, which is no file of study {study}.\n"
                "Hint: publish the study again from a clone that has its results."
            )
    count: Counter[str] = Counter()
    made_otherwise = set()
    for name, what in outputs.items():
        path, record = Path(name), record_path(name)
        if "text" in what and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(what["text"], encoding="utf-8")
        if not path.exists():
            count["absent"] += 1
        elif sha256(path) == what["sha256"]:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(what["record"]))
            # Files too large for a checksum in the records are compared by time.
            os.utime(path, ns=(what["time_ns"], what["time_ns"]))
            count["same"] += 1
        else:
            made_otherwise.add(what["record"]["shellcmd"])
            count["other"] += 1
    for name, what in outputs.items():
        # The whole job: a record of one of its files would speak for all.
        if what["record"]["shellcmd"] in made_otherwise and Path(name).exists():
            record_path(name).unlink(missing_ok=True)
            os.utime(name, (LONG_AGO, LONG_AGO))
    return count["same"], count["other"], count["absent"]


def publish(study: str) -> None:
    """Hand a finished study to DVC, its records to git, and both on."""
    if changed := run("git", "status", "--porcelain", "--untracked-files=no", "--", *WATCHED):
        raise SystemExit(
            f"Not committed yet:\n{changed}Hint: commit first; what is published names the commit"
            " that it can be made again from."
        )
    planned = run("snakemake", "--profile", "local", "--config", f"study={study}", "--dry-run")
    if "Nothing to be done" not in planned:
        raise SystemExit(
            f"Study {study} is not finished, or not up to date.\n"
            f"Hint: `make plan STUDY={study}` says what is missing."
        )
    if in_stages(study):
        # --force: trust the files, which Snakemake has just called up to date.
        run("dvc", "commit", "--force", "--no-relink")
        pointers = ["dvc.lock"]
    else:
        run("dvc", "add", "--no-relink", *map(str, folders(study)))
        pointers = whole(study)
    kept(study).parent.mkdir(exist_ok=True)
    outputs = collect(study)
    packed = gzip.compress(json.dumps(outputs, sort_keys=True).encode(), mtime=0)
    kept(study).write_bytes(packed)
    run("git", "add", "--", *pointers, str(kept(study)))
    if run("git", "diff", "--cached", "--name-only", "--", *pointers, str(kept(study))):
        said = f"Publish study {study}"
        run("git", "commit", "--quiet", "-m", said, "--", *pointers, str(kept(study)))
    print(run("dvc", "push", *whole(study)).strip())
    print(f"{len(outputs)} files of study {study} are published; `git push` shares them.")


def restore(study: str, targets: list[str]) -> None:
    """Fetch what DVC keeps of a study, and let Snakemake know what it was made from."""
    if not kept(study).exists():
        names = sorted(path.name.split(".")[0] for path in Path("published").glob("*"))
        raise SystemExit(
            f"Study {study} has not been published: there is no {kept(study)}.\n"
            f"Hint: published are: {', '.join(names) or 'none'}."
        )
    print(run("dvc", "pull", *(targets or whole(study))).strip())
    same, other, absent = install(study, json.loads(gzip.decompress(kept(study).read_bytes())))
    print(f"{same} files are as published, {other} are others, {absent} are not here.")


def main(words: list[str]) -> None:
    """Publish or restore."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["publish", "restore"])
    parser.add_argument("--study", required=True)
    parser.add_argument(
        "targets", nargs="*", help="for restore: what of it, as `dvc pull` takes it"
    )
    given = parser.parse_intermixed_args(words)
    if given.what == "publish":
        publish(given.study)
    else:
        restore(given.study, given.targets)


if __name__ == "__main__":
    main(sys.argv[1:])
