"""One training of study paper, made again by `dvc repro` through SLURM: are the bytes the same?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from killed_node import RUN, require_same, run_folders
from small_studies import configured

STUDY = "paper"
PIPELINE = Path("pipelines", STUDY, "dvc.yaml")
STAGE = f"{PIPELINE}:train@{'-'.join(map(str, RUN))}"


def reproduce(project: Path) -> dict[str, Any]:
    """Let DVC know a finished study, remove one training, and have DVC bring it back.

    Returns:
        What happened: the `stage`, its `seconds`, `compared` files.

    Raises:
        AssertionError: Another job ran, or a file differs; DVC does not find the study up to date
            before and after.
    """

    def call(*command: str) -> str:
        words = {"GIT_AUTHOR_NAME": "r", "GIT_AUTHOR_EMAIL": "r@example.org"}
        words |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in words.items()}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            command,
            cwd=project,
            env={**os.environ, **words, "PATH": path, "PYTHONPATH": str(project / "src")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{command} ended with {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    call("git", "init", "--quiet")
    call("git", "add", ".")
    call("git", "commit", "--quiet", "-m", "Begin")
    call("python", "workflow/dvc/generate.py", "--study", STUDY)
    text = (project / PIPELINE).read_text()
    given, allowed = f"study={STUDY}", " ".join(configured(STUDY))
    (project / PIPELINE).write_text(text.replace(f"--config {given}", f"--config {allowed}"))
    call("python", "-m", "geosd", "dvc-commit", "--study", STUDY)
    assert "up to date" in (said := call("dvc", "status", STAGE)), said
    folder, _ = run_folders(project, STUDY)
    manifest = project / folder / "manifest.json"
    expected = json.loads(manifest.read_text())["outputs"]
    shutil.rmtree(project / folder)
    shutil.rmtree(project / str(folder).replace("results", "scratch", 1), ignore_errors=True)
    began = time.monotonic()
    call("dvc", "repro", "-s", STAGE)
    seconds = time.monotonic() - began
    found = json.loads(manifest.read_text())["outputs"]
    require_same(expected, found, "DVC made a training again")
    assert "up to date" in (said := call("dvc", "status", STAGE)), said
    return {"stage": STAGE, "seconds": round(seconds), "compared": len(expected)}
