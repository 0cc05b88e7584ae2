"""A study run once more, with a node killed in the middle of a training: are its bytes the same?"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from faults import SLURM_TESTS, Driver, node_killed, wait_for
from small_studies import configured

from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders

STUDY, MODEL, VARIANT, SEED = "paper_ablation", "qwen3-8b", "geosd", 0


def made_after_the_pool(project: Path) -> list[Path]:
    """The folders of what the study makes of its runs, as paths from the project."""
    with contextlib.chdir(project):
        folders = RunFolders(resolve(load("params.yaml"), STUDY))
        runs = [folder for row in folders.rows() for folder in (row.train, row.evaluate) if folder]
        states = folders.states(MODEL)
    return [Path(each) for each in (*runs, states, f"results/{STUDY}", f"figures/{STUDY}")]


def hashes(project: Path) -> dict[str, str]:
    """What must come out the same: each output that a manifest lists, weights that went too.

    And every table and figure, but for the page that names the machine.
    """
    found = {}
    for folder in made_after_the_pool(project):
        for manifest in sorted((project / folder).rglob("*manifest.json")):
            for name, digest in json.loads(manifest.read_text())["outputs"].items():
                found[f"{manifest.parent.relative_to(project)}/{name}"] = digest
    for file in sorted((project / "figures" / STUDY).iterdir()):
        if "environment" not in file.name and "manifest" not in file.name:
            found[str(file.relative_to(project))] = file.read_bytes().hex()
    return found


def struck_training(project: Path) -> tuple[Path, str]:
    """The scratch folder of the training that is hit, and its part in the comment of its job."""
    with contextlib.chdir(project):
        run = RunFolders(resolve(load("params.yaml"), STUDY)).train(MODEL, VARIANT, SEED)
    return project / run.replace("results", "scratch", 1), Path(run).parts[-2]


def run_again(project: Path) -> dict[str, Any]:
    """Run the study again from the pool on, kill a node, and compare.

    Returns:
        What happened: `starts` of the training, the `nodes` that it ran on, `seconds` of the study,
        `compared` outputs.

    Raises:
        AssertionError: An output differs, or the training was not started twice.
    """
    expected = hashes(project)
    scratch, recipe = struck_training(project)
    for folder in (*made_after_the_pool(project), scratch.relative_to(project)):
        shutil.rmtree(project / folder, ignore_errors=True)
    began = time.monotonic()
    driver = Driver(project, configured(STUDY), struck=recipe)
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
    found = hashes(project)
    differing = [name for name in expected | found if expected.get(name) != found.get(name)]
    assert not differing, f"after a node was killed these differ: {', '.join(differing)}"
    return {
        "study": STUDY,
        "training": f"{MODEL}/{VARIANT}/{SEED}",
        "starts": len(starts),
        "nodes": [attempt["host"] for attempt in starts],
        "seconds": round(seconds),
        "compared": len(expected),
    }
