"""What a study's data source does to its plan."""

from __future__ import annotations

import shutil

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(("study", "fetched"), [("smollm2", 0), ("paper_ladder", 1)])
def test_only_a_source_with_a_catalogue_is_fetched(fresh, study, fetched):
    jobs = fresh.planned_jobs("--config", f"study={study}")
    assert (jobs["fetch"], jobs["data"]) == (fetched, 1)


OWN = """from geosd.problems.sources import register
from geosd.problems.sources.jsonl import JsonLines


@register("own-files")
class OwnFiles(JsonLines):
    limits = "None."
"""
STUDY = """  own:
    extends: quick
    about: Problems of one's own.
    kind: main
    data: {source: own-files, raw: problems.jsonl}

  quick_selection:
"""


@pytest.mark.slow
def test_an_edit_of_the_files_of_a_source_that_inherits_its_reading_draws_them_anew(
    fresh, tmp_path
):
    folder = tmp_path / "copy"
    shutil.copytree(fresh.folder, folder, symlinks=True)
    own = type(fresh)(folder)
    (folder / "src/geosd/problems/sources/own_files.py").write_text(OWN)
    own.edit("params.yaml", "  quick_selection:\n", STUDY)
    (folder / "problems.jsonl").write_text('{"question": "1 + 1", "answer": "2"}\n')
    for name, rule in own.outputs("own").items():
        if rule == "data":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
            target = name
    arguments = ("--config", "study=own", "--", target)
    own.snakemake("--profile", "local", "--touch", "--forceall", *arguments)
    assert own.planned_jobs(*arguments) == {}
    own.append("problems.jsonl", '{"question": "1 + 2", "answer": "3"}\n')
    assert own.planned_jobs(*arguments) == {"data": 1}
