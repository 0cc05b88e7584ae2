"""Results stay where they lie: an edit of the schema or of the code moves no study's folders."""

from __future__ import annotations

import json

import pytest
from addresses import FILE, moved

from geosd.config import load
from geosd.config.added_later import ADDED_LATER
from geosd.config.study import Study

LISTED = json.loads(FILE.read_text(encoding="utf-8"))
KEY = "training.shuffle"


@pytest.fixture
def params(root, monkeypatch):
    monkeypatch.chdir(root)  # base models lie there
    return load("params.yaml")


@pytest.fixture
def with_new_key(params, monkeypatch):
    """Studies that have another key of the section `training`, once they are checked."""
    section = Study.section

    def longer(self, name, model=None):
        values = section(self, name, model)
        return values | {"shuffle": True} if name == "training" else values

    monkeypatch.setattr(Study, "section", longer)


def test_the_folders_of_every_study_are_those_that_are_listed(params):
    assert not moved(params, LISTED), moved(params, LISTED)


def test_every_study_that_is_shipped_or_of_the_paper_is_listed(params, root):
    shipped = {file.parent.name for file in root.glob("figures/*/shipped.json")}
    of_paper = {name for name in params.studies if name.split("_")[0] == "paper"}
    assert (shipped | of_paper) & params.studies.keys() <= LISTED["studies"].keys(), (
        "Hint: `python tests/config/addresses.py` lists them."
    )


@pytest.mark.slow
@pytest.mark.usefixtures("with_new_key")
def test_a_new_key_that_is_not_listed_as_added_later_is_named_with_what_to_do(params):
    said = moved(params, LISTED)
    assert "\nquick: its train, evaluate, runs\n" in said
    assert said.splitlines()[-1].startswith(f"Hint: new are {KEY}. List each in ADDED_LATER")


@pytest.mark.slow
@pytest.mark.usefixtures("with_new_key")
@pytest.mark.parametrize(("value", "stays"), [(True, True), (False, False)])
def test_a_key_added_later_moves_nothing_where_it_has_the_value_that_results_had(
    params, monkeypatch, value, stays
):
    monkeypatch.setitem(ADDED_LATER, KEY, (value,))
    assert (moved(params, LISTED) == "") == stays


def test_a_moved_folder_that_no_new_key_explains_is_named_with_its_studies(params):
    studies = {"quick": LISTED["studies"]["quick"] | {"pool": "0" * 8}, "gone": {}}
    said = moved(params, LISTED | {"studies": studies})
    lines = ["quick: its pool", "gone: params.yaml has no such study any more"]
    assert said.splitlines()[1:3] == lines
    assert "Hint: if they are to move, `python tests/config/addresses.py`" in said
