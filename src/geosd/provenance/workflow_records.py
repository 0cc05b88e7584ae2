"""Snakemake's records of outputs: what each was made from. Its next plan compares it with today."""

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from geosd.files import sha256, write_text

LONG_AGO = 1_000_000_000  # 2001; Snakemake takes time 0 for no time
RECORDS = Path(".snakemake/metadata")
_DIGEST = re.compile(r"'code-[0-9a-f]+'")
"""How a record has a digest of code among its params."""

PUBLISHED = Path("published")
"""Where git keeps what names the published studies."""


def workflow_record_path(output: str) -> Path:
    """Where Snakemake keeps its record of an output: base64, cut to what a file's name may hold."""
    longest = os.pathconf(".", "PC_NAME_MAX") - 1
    name = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [name[i : i + longest] for i in range(0, len(name), longest)]
    return RECORDS.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])


def workflow_record_code(output: str, digest: str) -> None:
    """Let Snakemake's record of an output say which code made it, where there is a record."""
    path = workflow_record_path(output)
    if not path.is_file():
        return
    record = json.loads(path.read_text(encoding="utf-8"))
    before = record["params"] or []
    params = sorted(repr(digest) if _DIGEST.fullmatch(param) else param for param in before)
    if params != before:
        write_text(path, json.dumps({**record, "params": params}))


def collect_workflow_records(folders: Iterable[Path], tracked: Iterable[Path]) -> dict[str, Any]:
    """Collect Snakemake's record of each file that it made, its hash and time, to publish them.

    DVC keeps what is `tracked`. The few other files, pages of the report, are kept as text; of
    removed weights the record alone.
    """
    folders = list(folders)
    in_dvc = set(tracked)
    paths: list[Path] = []
    notes: list[Path] = []
    for folder in folders:
        paths += [path for path in folder.rglob("*") if path.is_file()]
        notes += folder.glob("removed/**/*.json")
    outputs: dict[str, Any] = {}
    for path in sorted(paths):
        record = workflow_record_path(str(path))
        if not record.exists():
            continue
        output = {
            "sha256": sha256(path),
            "time_ns": path.stat().st_mtime_ns,
            "record": json.loads(record.read_text()),
        }
        if not in_dvc & {path, *path.parents}:
            output["text"] = path.read_text(encoding="utf-8")
        outputs[str(path)] = output
    # Snakemake also asks for the records of what the rule remove_weights has removed.
    for path in notes:
        note = json.loads(path.read_text())
        name = note["weights"]
        record = workflow_record_path(name)
        if note["removed"] and record.exists() and not Path(name).exists():
            outputs[name] = {"sha256": None, "record": json.loads(record.read_text())}
    return outputs


def install_workflow_records(
    file: Path, outputs: Mapping[str, Any], folders: Iterable[str]
) -> tuple[int, list[str], int]:
    """Install records of a published file: each output that is as recorded gets record and time.

    Returns how many files are as recorded, which are others, and how many are not there; ValueError
    if a recorded name leads out of `folders`, those of the study.
    """
    allowed = [Path(folder).resolve() for folder in folders]
    for name in outputs:
        if not any(Path(name).resolve().is_relative_to(folder) for folder in allowed):
            raise ValueError(
                f"{file} names {name}, which is no file of the study.\n"
                "Hint: publish the study again from a clone that has its results."
            )
    count: Counter[str] = Counter()
    others: list[str] = []
    made_otherwise = set()
    for name, recorded in outputs.items():
        path = Path(name)
        record = json.dumps(recorded["record"])
        if recorded["sha256"] is None:  # removed on purpose
            _write(workflow_record_path(name), record)
            continue
        if "text" in recorded and not path.exists():
            _write(path, recorded["text"])
        if not path.exists():
            count["absent"] += 1
        elif sha256(path) == recorded["sha256"]:
            _write(workflow_record_path(name), record)
            # Files too large for a checksum in the records are compared by time.
            os.utime(path, ns=(recorded["time_ns"], recorded["time_ns"]))
            count["same"] += 1
        else:
            made_otherwise.add(recorded["record"]["shellcmd"])
            others.append(name)
    for name, recorded in outputs.items():
        # The whole job: a record of one of its files would speak for all.
        if recorded["record"]["shellcmd"] in made_otherwise:
            workflow_record_path(name).unlink(missing_ok=True)
            if Path(name).exists():
                os.utime(name, (LONG_AGO, LONG_AGO))
    return count["same"], others, count["absent"]


def _write(path: Path, text: str) -> None:
    """Write a file, and the folders above it; of thousands not one is waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def workflow_records_file(study: str) -> Path:
    """The file in git, not in DVC's cache, with Snakemake's records of a published study."""
    return PUBLISHED / f"{study}.json.gz"
