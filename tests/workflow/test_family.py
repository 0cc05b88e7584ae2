"""A family is drawn by rules and by stages of DVC, one for each of its outputs."""

from __future__ import annotations

import shutil

import pytest
import yaml

from geosd.config import load, resolve_family

NAME = "miniature_transfer"
STUDY = ("--config", f"study={NAME}")


@pytest.fixture(scope="module")
def family(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield resolve_family(load("params.yaml"), NAME)


@pytest.fixture(scope="module")
def clone(fresh, root, tmp_path_factory):
    """A copy of the project with what is shipped of the family and its studies."""
    folder = tmp_path_factory.mktemp("family") / "copy"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    for path in root.glob(f"figures/{NAME}*"):
        shutil.copytree(path, folder / "figures" / path.name)
    return type(fresh)(folder)


def test_each_output_of_a_family_has_a_job_and_nothing_else_is_run(clone, family):
    jobs = clone.planned_jobs("--forceall", *STUDY)
    assert jobs == {**dict.fromkeys(family.outputs, 1), "front_page": 1}


def test_a_family_is_drawn_of_its_studies_shipped_tables_and_of_their_results(clone, family):
    target = f"figures/{NAME}/figure_transfer.svg"
    shipped = family.tidy_files("figure_transfer")["scores"]
    printed = clone.snakemake("--profile", "local", "-n", "-F", "-p", *STUDY, "--", target)
    assert all(str(file) in printed for file in shipped.values())
    study = next(iter(family.studies))
    results = clone.folder / f"results/{study}/analyse/scores.csv"
    results.parent.mkdir(parents=True)
    results.touch()
    printed = clone.snakemake("--profile", "local", "-n", "-F", "-p", *STUDY, "--", target)
    assert f"results/{study}/analyse/scores.csv" in printed
    assert str(shipped[study]) not in printed
    shutil.rmtree(clone.folder / "results")


def test_dvc_has_a_stage_for_each_output_of_a_family(clone, family):
    clone.call("python", "workflow/dvc/generate.py", "--study", NAME)
    folder = clone.folder / "pipelines" / NAME
    pipeline = yaml.safe_load((folder / "dvc.yaml").read_text())
    stages = pipeline["stages"]
    assert {*stages} == {"check", *family.outputs} and "metrics" not in pipeline
    stage = stages["table_collapses"]
    assert stage["cmd"] == f"${{snakemake}} table_collapses -- figures/{NAME}/table_collapses.csv"
    assert stage["deps"] == [
        str(f) for f in family.tidy_files("table_collapses")["scores"].values()
    ]
    assert [*map(str, stage["outs"][0])] == [f"figures/{NAME}/table_collapses.csv"]
    assert all(not out[name]["cache"] for out in stage["outs"] for name in out), "git keeps it"
    settings = yaml.safe_load((folder / "settings.yaml").read_text())
    assert settings["table_collapses"] == family.settings("table_collapses")
    clone.call("python", "workflow/dvc/generate.py", "--study", NAME, "--check")
    code = yaml.safe_load((folder / "code.yaml").read_text())
    assert {*code} == {*family.outputs} and all(each.startswith("code-") for each in code.values())


@pytest.mark.slow
def test_snakemake_draws_a_family_to_the_bytes_that_are_shipped(clone, root):
    name = "table_collapses"
    clone.snakemake("--profile", "local", "-F", *STUDY, "--", name)
    for ending in ("csv", "md", "tex"):
        drawn = clone.folder / f"figures/{NAME}/{name}.{ending}"
        assert drawn.read_bytes() == (root / drawn.relative_to(clone.folder)).read_bytes()
