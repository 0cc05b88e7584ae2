"""The data step on the published files."""

import json
import runpy
from collections import Counter

import pytest
import yaml

from geosd.cli import data
from geosd.config import ConfigError
from geosd.json_lines import read_jsonl
from geosd.problems.records import Problem


def params_of(root, folder, raw):
    """params.yaml with study quick on DAPO-Math in the paper's sizes."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["studies"] = {name: values["studies"][name] for name in ("quick", "quick_selection")}
    for study in values["studies"]:
        purpose = values["studies"][study]["data"].get("purpose", "study")
        values["studies"][study]["data"] = {"purpose": purpose, "raw": raw}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def problems_of(folder, name):
    return read_jsonl(folder / f"{name}.jsonl", Problem)


@pytest.mark.slow
def test_a_study_and_its_selection_share_no_problem(root, shared_data, tmp_path, capsys):
    params = params_of(root, tmp_path, str(shared_data))
    study = tmp_path / "quick"
    data.main(study="quick", out=study, params=params)
    card = json.loads((study / "card.json").read_text())
    selection, trained = ("select_train", "select_validation"), ("train", "test")
    everything = [p for name in (*selection, *trained) for p in problems_of(study, name)]
    assert Counter(p.benchmark for p in everything) == card["kept"]
    assert len(card["files"]) == 5 and card["settings"]["overlaps"] == "exclude"
    assert all(p.answer == str(int(p.answer)) for p in problems_of(study, "train"))
    selection_ids = [p.id for name in selection for p in problems_of(study, name)]
    study_ids = [p.id for name in trained for p in problems_of(study, name)]
    assert (len(selection_ids), len(study_ids)) == (300, 2100)
    assert not set(selection_ids) & set(study_ids)
    capsys.readouterr()
    runpy.run_path(str(root / "analysis/dapo_counts.py"))["main"](raw=shared_data)
    shown = json.loads(capsys.readouterr().out)
    assert shown == {
        key: len(value) if isinstance(value, list) else value
        for key, value in card.items()
        if key != "settings"
    }


@pytest.mark.parametrize("raw", [None, "nowhere"])
def test_without_raw_files_the_error_says_what_is_missing(root, tmp_path, raw):
    params = params_of(root, tmp_path, raw)
    with pytest.raises((ConfigError, FileNotFoundError), match="docs/problems.md"):
        data.main(study="quick", out=tmp_path, params=params)
    assert not (tmp_path / "train.jsonl").exists()
