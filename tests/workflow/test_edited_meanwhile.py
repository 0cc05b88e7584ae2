"""params.yaml, code or data edited while a study runs: what jobs compute, and what is said."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from geosd.cli.job import StepJob
from geosd.config import ConfigError, load, resolve_study
from geosd.config.planned import PLAN, keep_planned, planned, planned_configuration_text
from geosd.config.run_folders import RunFolders

EDITED = """
rule edit:
    output: "edited"
    shell: "python edit.py && touch {output}"

use rule configuration as configuration_after_the_edit with:
    input: "edited"
    output: "after.yaml"
    log: "after.log"
"""
"""A rule that edits params.yaml, and one that reads it then, for the same Snakefile."""


@pytest.fixture
def edited(fresh, tmp_path):
    """The workflow, with a job that edits params.yaml, code and site between two others."""
    shutil.copytree(fresh.folder, tmp_path / "copy", symlinks=True)
    workflow = replace(fresh, folder=tmp_path / "copy", kept=False)
    workflow.keep_studies("quick", "quick_selection")
    workflow.append("Snakefile", EDITED)
    (workflow.folder / "edit.py").write_text(
        "from pathlib import Path\n"
        "params = Path('params.yaml')\n"
        "params.write_text(params.read_text().replace('warmup: 20 ', 'warmup: 7 '))\n"
        "Path('src/geosd/seeds.py').touch()\n"
        "Path('profiles/slurm/site.yaml').touch()\n"
    )
    return workflow


@pytest.mark.slow
def test_jobs_after_an_edit_read_what_was_planned_and_the_edit_is_named(edited, tmp_path):
    before = (edited.folder / "params.yaml").read_text()
    printed = edited.snakemake("--profile", "local", "after.yaml")
    after = (edited.folder / "params.yaml").read_text()
    assert before != after
    made = yaml.safe_load((edited.folder / "after.yaml").read_text())
    warmups = {one["warmup"] for one in made["runs"]["mini-qwen3"]["training"].values()}
    assert 7 not in warmups
    assert "params.yaml was edited while study quick ran; all jobs kept to what it was" in printed
    assert "Edited while study quick ran: profiles/slurm/site.yaml, src/geosd/seeds.py." in printed
    assert "Hint: `make stale STUDY=quick`" in printed
    # The next run is of the file as it is.
    (edited.folder / "after.yaml").unlink()
    printed = edited.snakemake("--profile", "local", "after.yaml")
    made = yaml.safe_load((edited.folder / "after.yaml").read_text())
    assert {one["warmup"] for one in made["runs"]["mini-qwen3"]["training"].values()} == {7}
    assert "edited while" not in printed.lower()


@pytest.fixture
def project(root, tmp_path, monkeypatch):
    """A folder with a configuration of the project, as the working directory."""
    (tmp_path / "base_models").symlink_to(root / "base_models")
    shutil.copy(root / "params.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_copy_of_the_configuration_is_read_in_its_place(project, monkeypatch):
    text = planned_configuration_text()
    folder = keep_planned(text)
    assert folder == keep_planned(text) != keep_planned(text + "# edited\n")
    monkeypatch.setenv(PLAN, str(folder))
    (project / "params.yaml").write_text("study: none\n")
    assert planned("params.yaml") == folder / "params.yaml"
    assert planned_configuration_text() == text
    assert planned(project / "params.yaml") == project / "params.yaml"
    monkeypatch.setenv(PLAN, "scratch/plans/none")
    with pytest.raises(ConfigError, match="Hint: start the run again"):
        load()


def test_a_job_refuses_to_write_under_the_address_of_another_base_model(project, monkeypatch):
    """The folder of a base model is no part of the configuration, and decides an address."""
    shutil.copytree(project / "base_models/mini-qwen3/0", project / "own")
    values = yaml.safe_load((project / "params.yaml").read_text())
    checkpoint = {"source": "released", "checkpoint": {"folder": "own"}}
    values["models"]["mini-qwen3"]["base"] |= checkpoint
    values["studies"] = {"quick": values["studies"]["quick"]}
    (project / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    of_base = ("base", Path("params.yaml"), "quick", "mini-qwen3")
    address = Path(RunFolders(resolve_study(load(), "quick")).base("mini-qwen3"))

    monkeypatch.setenv(PLAN, str(keep_planned(planned_configuration_text())))
    assert StepJob(*of_base, out=address).settings["checkpoint"]["folder"] == "own"
    config = project / "own/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"rope_theta": 5000.0}))
    with pytest.raises(ConfigError, match="Hint: start the run again") as refused:
        StepJob(*of_base, out=address)
    assert str(address) in str(refused.value)
    # Outside a run of the workflow people write where they like.
    monkeypatch.delenv(PLAN)
    StepJob(*of_base, out=project / "anywhere")


def test_every_shared_folder_is_the_one_that_its_job_would_write(root, monkeypatch):
    monkeypatch.chdir(root)
    for name in ("quick", "miniature_stepsize", "paper_pilot"):
        folders = RunFolders(resolve_study(load(), name))
        assert folders.of_job("data", None, None, None, 0) == folders.data
        for row in folders.rows():
            run = (row.model, row.variant, row.seed, row.draw)
            assert folders.of_job("base", *run) == row.base
            assert folders.of_job("evaluate", *run) == row.evaluate
            if row.train:
                assert folders.of_job("train", *run) == row.train
                assert folders.of_job("pool", *run) == row.pool
    with pytest.raises(ValueError, match="analyse"):
        folders.of_job("analyse", None, None, None, 0)
