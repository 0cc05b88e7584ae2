"""The settings that results are compared with are those of their own rule, model and variant."""

from __future__ import annotations

import pytest

from geosd.cli.stale import main
from geosd.config import load, resolve_study, settings
from geosd.config.run_folders import RunFolders, write_run_folders
from geosd.files import write_json
from geosd.provenance.code import HELD
from geosd.provenance.manifest import manifest, read_manifest, write_manifest

MODEL = "mini-qwen3"
JOBS = {
    "data": ("data", None, None),
    "base": ("base", MODEL, None),
    "train": ("train", MODEL, "geosd"),
    "evaluate": ("evaluate", MODEL, "geosd"),
    "pi_0": ("evaluate_pi_0", MODEL, None),
    "states": ("states", MODEL, None),
    "analyse": ("analyse", None, None),
    "claims": ("claims", None, None),
}


@pytest.fixture
def results(root, tmp_path, monkeypatch):
    """Eight results of study quick, made with today's settings and code; and its index."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base_models").symlink_to(root / "base_models")
    study = resolve_study(load(root / "params.yaml"), "quick")
    folders = RunFolders(study)
    places = {
        "data": folders.data,
        "base": folders.base(MODEL),
        "train": folders.train(MODEL, "geosd", 1),
        "evaluate": folders.evaluate(MODEL, "geosd", 1),
        "pi_0": folders.evaluate(MODEL, "pi_0", 1),
        "states": folders.states(MODEL),
        "analyse": "results/quick/analyse",
        "claims": "figures/quick/claims.manifest.json",
    }
    for name, (rule, model, variant) in JOBS.items():
        step = rule.removesuffix("_pi_0")
        content = manifest(step, [], settings(rule, study, model, variant), 1.0)
        place = tmp_path / places[name]
        write_manifest(place if place.suffix else place / "manifest.json", content)
    write_run_folders(tmp_path / "results/quick/runs.csv", folders.rows())
    return places


def check_study(capsys, params) -> tuple[bool, str]:
    """Whether the program calls something out of date, and what it prints."""
    with pytest.raises(SystemExit) as ended:
        main("quick", params=params)
    return bool(ended.value.code), capsys.readouterr().out


def test_results_of_todays_settings_are_current(results, root, capsys):
    outdated, printed = check_study(capsys, root / "params.yaml")
    assert not outdated
    assert "0 of 8 results of study quick are out of date" in printed


def test_a_changed_setting_names_the_results_it_concerns(results, root, tmp_path, capsys):
    text = (root / "params.yaml").read_text()
    edited = tmp_path / "params.yaml"
    edited.write_text(text.replace("damping: 1.0e-3 ", "damping: 1.0e-4 "))
    outdated, printed = check_study(capsys, edited)
    assert outdated
    assert f"{results['train']} follows from other settings" in printed
    assert "parameter optimiser.kfac.damping was 0.001, is 0.0001" in printed
    assert "2 of 8 results" in printed  # its samples follow from it


def test_code_that_was_another_is_named(results, root, tmp_path, capsys):
    folder = tmp_path / results["evaluate"]
    content = read_manifest(folder)
    content["code"]["files"]["geosd/sampling/graded_sampler.py"] = "0" * 64
    write_manifest(folder / "manifest.json", content)
    outdated, printed = check_study(capsys, root / "params.yaml")
    assert outdated and "code geosd/sampling/graded_sampler.py has changed" in printed
    assert "1 of 8 results" in printed


@pytest.mark.parametrize("name", ["states", "analyse", "claims"])
def test_results_of_every_kind_are_judged(name, results, root, tmp_path, capsys):
    place = tmp_path / results[name]
    folder, file = (place.parent, place.name) if place.suffix else (place, "manifest.json")
    content = read_manifest(folder, file)
    module = HELD.get(name, name)
    content["code"]["files"][f"geosd/cli/{module}.py"] = "0" * 64
    write_manifest(folder / file, content)
    outdated, printed = check_study(capsys, root / "params.yaml")
    assert outdated and f"{results[name]}\n    code geosd/cli/{module}.py has changed" in printed
    assert "1 of 8 results" in printed


def test_results_that_belong_to_other_studies_alone_are_not_judged(results, root, tmp_path, capsys):
    write_json(tmp_path / "results/train/m/tip-0/0/manifest.json", {"broken": True})
    assert check_study(capsys, root / "params.yaml")[0] is False


def test_a_study_without_results_says_how_to_get_them(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base_models").symlink_to(root / "base_models")
    with pytest.raises(SystemExit, match="no results with a manifest.*\nHint: .*\n? *.*restore"):
        main("quick", params=root / "params.yaml")
