"""The workflow in other surroundings: as a module of another one, and with jobs in a container."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

MODULE = """
module geosd:
    snakefile: "{root}/Snakefile"
    config: {{"study": "quick"}}

use rule * from geosd as geosd_*

rule ours:
    input: "results/quick/runs.csv"
    output: "ours.csv"
    default_target: True
    shell: "cp {{input}} {{output}}"
"""
APPTAINER = """#!/bin/sh
[ "$1" = --version ] && {{ echo "apptainer version 1.3.4"; exit; }}
echo "$@" >> {log}
while [ "$1" != envs/geosd.sif ]; do shift; done
shift
exec "$@"
"""


@pytest.mark.slow
def test_as_a_module_its_rules_run_in_the_folder_of_another_workflow(fresh, root, tmp_path):
    workflow = type(fresh)(tmp_path, forks=False)
    (tmp_path / "Snakefile").write_text(MODULE.format(root=root))
    shutil.copy(root / "params.yaml", tmp_path)  # its own stays
    workflow.edit(
        "params.yaml",
        "methods: [pi_0, fwdkl, revkl, grpo, geosd]\n    seeds: [0, 1, 2]",
        "methods: [pi_0, fwdkl, revkl, grpo, geosd]\n    seeds: [4]",
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    rows = (tmp_path / "ours.csv").read_text().splitlines()[1:]
    assert len(rows) == 5 and {row.split(",")[2] for row in rows} == {"4"}
    assert (tmp_path / "workflow").is_symlink() and not (tmp_path / "params.yaml").is_symlink()
    (tmp_path / "workflow").unlink()
    (tmp_path / "workflow").mkdir()
    refused = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "Hint: let Snakemake run in a folder next to it" in refused.stdout + refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--sdm", "apptainer")])
def test_jobs_run_in_the_container_where_that_is_asked_for(done, tmp_path, options, monkeypatch):
    program, log = tmp_path / "bin/apptainer", tmp_path / "log"
    program.parent.mkdir()
    program.write_text(APPTAINER.format(log=log))
    program.chmod(0o755)
    (done.folder / "envs/geosd.sif").touch()
    monkeypatch.setenv("PATH", os.pathsep.join([str(program.parent), os.environ["PATH"]]))
    arguments = ("--profile", "local", "--cores", "1", *options, "--force")
    done.snakemake(*arguments, "results/quick/runs.csv", check=True)
    ran = log.read_text() if log.exists() else ""
    assert ("python -m geosd runs --study quick" in ran) == bool(options)
    assert (done.folder / "results/quick/runs.csv").read_text().startswith("model,variant,seed")
