"""What no study has any more is listed, and nothing else."""

import pytest

from geosd.cli import stale
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders


@pytest.mark.slow
def test_results_of_settings_that_no_study_has_are_listed(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base_models").symlink_to(root / "base_models")
    study = resolve_study(load(root / "params.yaml"), "miniature_stepsize")
    folders = RunFolders(study)
    left = "results/train/mini-qwen3/geosd-0123456789/0", "results/base/mini-qwen3-0123456789"
    stops = [folders.train("mini-qwen3", stop, 0) for stop in study.early_stops]
    for folder in (*folders.shared(), *stops, *left, "results/quick/analyse"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    stale.list_stale_shared(root / "params.yaml")
    assert sorted(capsys.readouterr().out.split()) == sorted(left)
