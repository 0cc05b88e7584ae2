"""The settings that results are compared with are those of their own rule, model and variant."""

from __future__ import annotations

import pytest

from geosd.config import load, resolve, settings
from geosd.files import write_json
from geosd.provenance.manifest import manifest
from geosd.steps.stale import main

MODEL = "mini-qwen3"
PLACES = {
    "data": ("data", None, None),
    f"base/{MODEL}": ("base", MODEL, None),
    f"train/{MODEL}/geosd/1": ("train", MODEL, "geosd"),
    f"evaluate/{MODEL}/geosd/1": ("evaluate", MODEL, "geosd"),
    f"evaluate/{MODEL}/pi_0/1": ("evaluate_pi_0", MODEL, None),
}


@pytest.fixture
def results(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    study = resolve(load("params.yaml"), "quick")
    for place, (rule, model, variant) in PLACES.items():
        told = {**settings(rule, study, model, variant), "model": model, "variant": variant}
        write_json(tmp_path / "quick" / place / "manifest.json", manifest([], told, 1.0))
    return tmp_path


def test_results_of_todays_settings_are_current(results, capsys):
    with pytest.raises(SystemExit) as ended:
        main("quick", results=results)
    assert not ended.value.code
    assert "0 of 5 results of study quick are out of date" in capsys.readouterr().out


def test_a_changed_setting_names_the_results_it_concerns(results, root, capsys):
    text = (root / "params.yaml").read_text()
    edited = results / "params.yaml"
    edited.write_text(text.replace("damping: 1.0e-3 ", "damping: 1.0e-4 "))
    with pytest.raises(SystemExit) as ended:
        main("quick", params=edited, results=results)
    said = capsys.readouterr().out
    assert ended.value.code == 1
    assert "parameter optimiser.kfac.damping was 0.001, is 0.0001" in said
    assert "1 of 5 results" in said


def test_a_variant_that_the_study_left_is_named(results, capsys):
    told = manifest([], {}, 1.0)
    write_json(results / "quick" / f"train/{MODEL}/tip/0" / "manifest.json", told)
    with pytest.raises(SystemExit):
        main("quick", results=results)
    assert "the study does not make it any more" in capsys.readouterr().out


def test_a_study_without_results_says_how_to_get_them(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    with pytest.raises(SystemExit, match="holds no manifest.*\nHint: .*make restore"):
        main("quick", results=tmp_path)
