"""A run made once more, with its node killed in the middle: are the bytes the same?"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faults import SLURM_TESTS, Driver, node_killed, wait_for
from small_studies import configured

from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.files import sha256

STUDY = "paper_ablation"
RUN = MODEL, VARIANT, SEED = "qwen3-8b", "geosd", 0


def run_folders(project: Path, study: str = STUDY) -> tuple[Path, Path]:
    """The folders of the run that is hit, its training's and its samples', from the project."""
    with contextlib.chdir(project):
        folders = RunFolders(resolve_study(load("params.yaml"), study))
    return Path(folders.train(*RUN)), Path(folders.evaluate(*RUN))


def require_same(expected: Mapping[str, str], found: Mapping[str, str], after: str) -> None:
    """AssertionError names the outputs whose hashes differ, and after what."""
    differing = [name for name in expected | found if expected.get(name) != found.get(name)]
    assert not differing, f"after {after} these differ: {', '.join(differing)}"


def made_of(project: Path) -> list[Path]:
    """The folders of the run that is hit, and of all that the study makes of it."""
    training, samples = run_folders(project)
    study = Path("results", STUDY)
    of_run = [study / "alignment" / MODEL / VARIANT, study / "removed" / MODEL / training.parts[-2]]
    return [training, samples, *of_run, study / "analyse", study / "pages", Path("figures", STUDY)]


def hashes(project: Path) -> dict[str, str]:
    """What must come out the same: outputs that manifests list, removed weights too, and figures.

    Not the page that names the machine.
    """
    found = {}
    for folder in made_of(project):
        for manifest in sorted((project / folder).rglob("*manifest.json")):
            for name, digest in json.loads(manifest.read_text())["outputs"].items():
                found[f"{manifest.parent.relative_to(project)}/{name}"] = digest
    for file in sorted((project / "figures" / STUDY).iterdir()):
        if "environment" not in file.name and "manifest" not in file.name:
            found[str(file.relative_to(project))] = sha256(file)
    return found


def run_again(project: Path) -> dict[str, Any]:
    """Make a run of the study once more, and all that is made of it; kill its node, and compare.

    Returns:
        What happened: `starts` of the training, the `nodes` that it ran on, `seconds` of the study,
        `compared` outputs.

    Raises:
        AssertionError: An output differs, or the training was not started twice.
    """
    expected = hashes(project)
    training, _ = run_folders(project)
    scratch = project / str(training).replace("results", "scratch", 1)
    for folder in (*(project / each for each in made_of(project)), scratch):
        shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    driver = Driver(project, configured(STUDY), struck=training.parent.name)
    driver.start()
    try:
        wait_for(
            "a saved state",
            lambda: (scratch / "state.pt").exists() or driver.process.poll() is not None,
        )
        node_killed(driver, driver.job())
        driver.end()
    finally:
        driver.stop()
        subprocess.run([SLURM_TESTS / "cluster.sh", "mend"], check=True)
    seconds = time.monotonic() - began
    lines = (scratch / "attempts.jsonl").read_text().splitlines()
    starts = [attempt for attempt in map(json.loads, lines) if attempt["event"] == "start"]
    assert len(starts) > 1, "the training went on as if nothing had happened"
    require_same(expected, hashes(project), "a node was killed")
    return {
        "study": STUDY,
        "training": f"{MODEL}/{VARIANT}/{SEED}",
        "starts": len(starts),
        "nodes": [attempt["host"] for attempt in starts],
        "seconds": round(seconds),
        "compared": len(expected),
    }
