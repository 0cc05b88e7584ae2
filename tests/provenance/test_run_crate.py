"""A crate of a run conforms to the three profiles, and says nothing that it was not told."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from geosd.cli.capsule import included_rules, workflow_files
from geosd.provenance.crate import METADATA, unpack_crate, write_crate
from geosd.provenance.run_crate import (
    RUN,
    WORKFLOW_CRATE,
    citation_entities,
    profile_entities,
    run_entities,
    workflow_entities,
)

ROOT = Path(__file__).parents[2]
VALIDATOR = ROOT / ".venv-crate/bin/python"
PROFILES = ("ro-crate-1.1", "workflow-ro-crate-1.0", "workflow-run-crate-0.5")
RULES = ["workflow/rules/a.smk"]


def written(folder, agent="Ada Lovelace", left_out=()):
    """A crate of a run with made-up files; without some of the keys of its root."""
    names = ("LICENSE", "Snakefile", *RULES, "params.yaml", "results/a.csv")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    authors, of_authors = citation_entities(cited)
    profiles, of_profiles = profile_entities()
    days = {"2026-09-02", "2026-09-01"}
    entities = [
        *authors,
        *profiles,
        *workflow_entities("Snakefile", RULES, "params.yaml", "quick", "1.0"),
        *run_entities("Snakefile", "params.yaml", ["results/a.csv"], days, "Steps", agent),
    ]
    root = {
        "name": "x",
        "description": "y",
        "datePublished": "2026-09-03",
        "license": {"@id": "LICENSE"},
        "mainEntity": {"@id": "Snakefile"},
        "mentions": [{"@id": RUN}],
        **of_authors,
        **of_profiles,
    }
    root = {key: value for key, value in root.items() if key not in left_out}
    files = {name: folder / name for name in names}
    write_crate(folder / "crate.zip", files, root, (), entities, [WORKFLOW_CRATE])
    return folder / "crate.zip"


def issues(crate):
    """The messages of each profile's issues."""
    if not VALIDATOR.exists():
        pytest.skip("no roc-validator: make .venv-crate/installed")
    program = Path(__file__).with_name("validate_crate.py")
    command = [VALIDATOR, program, crate, *PROFILES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def graph(crate):
    with zipfile.ZipFile(crate) as packed:
        return {each["@id"]: each for each in json.loads(packed.read(METADATA))["@graph"]}


@pytest.mark.slow
def test_no_profile_has_an_issue(tmp_path):
    assert issues(written(tmp_path)) == {profile: [] for profile in PROFILES}


@pytest.mark.slow
def test_a_crate_without_its_workflow_or_profiles_has_issues(tmp_path):
    found = issues(written(tmp_path, left_out=("mainEntity", "conformsTo")))
    assert not found["ro-crate-1.1"]
    assert found["workflow-ro-crate-1.0"]
    assert len(found["workflow-run-crate-0.5"]) > len(found["workflow-ro-crate-1.0"])


def test_the_action_says_what_ran_when_on_what_and_by_whom(tmp_path):
    of_crate = graph(written(tmp_path))
    action = of_crate[RUN]
    assert (action["startTime"], action["endTime"]) == ("2026-09-01", "2026-09-02")
    assert action["instrument"]["@id"] == of_crate["./"]["mainEntity"]["@id"] == "Snakefile"
    assert [each["@id"] for each in action["result"]] == ["results/a.csv"]
    assert [of_crate[each["@id"]]["@type"] for each in action["object"]] == [
        "File",
        "PropertyValue",
    ]
    assert of_crate[action["agent"]["@id"]]["name"] == "Ada Lovelace"
    paper = of_crate[of_crate["./"]["citation"]["@id"]]
    assert paper["name"] == "Geometric Self-Distillation for Reasoning Generalization"
    assert [of_crate[each["@id"]]["name"] for each in paper["author"]] == [
        "Josip Jukić",
        "Ivan Titov",
    ]


def test_what_nobody_recorded_is_left_out(tmp_path):
    of_crate = graph(written(tmp_path, agent=None))
    assert "agent" not in of_crate[RUN] and "#agent" not in of_crate
    (action,) = run_entities("Snakefile", "params.yaml", [], [], "Steps")
    assert not {"startTime", "endTime", "agent"} & action.keys()


def test_every_entity_that_is_named_is_described(tmp_path):
    of_crate = graph(written(tmp_path))

    def named(value):
        if isinstance(value, dict):
            if set(value) == {"@id"}:
                yield value["@id"]
            for each in value.values():
                yield from named(each)
        elif isinstance(value, list):
            for each in value:
                yield from named(each)

    every = {name for entity in of_crate.values() for name in named(entity)}
    undescribed = {name for name in every - of_crate.keys() if not name.startswith("https://")}
    assert not undescribed


def test_a_file_that_is_also_a_workflow_is_unpacked(tmp_path):
    folder = tmp_path / "unpacked"
    folder.mkdir()
    unpack_crate(written(tmp_path), folder)
    assert (folder / "Snakefile").read_text() == "Snakefile"


def test_the_snakefile_and_every_file_that_it_includes_are_the_workflow():
    files = workflow_files(ROOT)
    text = (ROOT / "Snakefile").read_text()
    assert len(files) == 1 + text.count("include:") and all(map(Path.is_file, files.values()))
    assert included_rules('    include: "../secret.smk"\ninclude: "workflow/../../x.smk"') == []
