"""Folders for the hub: the files of a result, and a card with the scores of its samples."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import yaml
from huggingface_hub import DatasetCard, ModelCard
from scipy import stats

from geosd.cli import hub_folders
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.files import sha256
from geosd.provenance.manifest import read_manifest
from geosd.provenance.proof import UnprovenFileError
from geosd.scores import sample_tables
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import tidy_rows_of_runs

RUN = ("mini-qwen3", "geosd", 0)


@pytest.fixture
def project(small, root, tmp_path, monkeypatch):
    """A folder with study quick's problems and the results of one run, and those results' paths."""
    monkeypatch.chdir(tmp_path)
    for name in ("base_models", "profiles"):
        (tmp_path / name).symlink_to(root / name)
    values = yaml.safe_load(small.shared["params"].read_text())
    values["studies"]["quick"] |= {
        "methods": ["pi_0", "geosd"],
        "seeds": [0],
        "outputs": ["claims"],
    }
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    folders = RunFolders(resolve_study(load(params), "quick"))
    (row,) = [row for row in folders.rows() if row.train]
    data = tmp_path / folders.data
    data.parent.mkdir(parents=True)
    data.symlink_to(small.folder / "data")
    trained = small.trained(tmp_path / row.train)
    sampled = small.sampled(tmp_path / row.evaluate, trained, "geosd")
    return row, trained, sampled, data


@pytest.mark.slow
def test_a_student_and_its_scores_are_in_one_folder_that_changes_no_result(project, tmp_path):
    row, trained, sampled, _ = project
    before = {file: sha256(file) for file in trained.iterdir() if file.is_file()}
    hub_folders.model("quick", *RUN, out=tmp_path / "first")
    first = ModelCard.load(tmp_path / "first/README.md")
    assert first.data.license == "apache-2.0" and first.data.eval_results is None
    assert ModelCard.load(trained / "README.md").data.to_dict() == first.data.to_dict()

    samples = sample_tables.read_sample_table(ScoredRun(*RUN), sampled / "samples.jsonl")
    rows = {ScoredRun(*RUN): sample_tables.sample_share_rows(samples)}
    (tmp_path / "results/quick/analyse").mkdir(parents=True)
    shares = tidy_rows_of_runs("shares", rows)
    shares.to_csv(tmp_path / "results/quick/analyse/shares.csv", index=False)
    out = tmp_path / "hub"
    hub_folders.model("quick", *RUN, out=out)
    names = {name for name in read_manifest(trained)["outputs"] if "/" not in name}
    assert {file.name for file in out.iterdir()} == {*names, "README.md", "manifest.json"}
    assert {sha256(out / name) for name in names} == {sha256(trained / name) for name in names}
    results = ModelCard.load(out / "README.md").data.eval_results
    problems = Counter(shares["benchmark"])
    assert {each.dataset_config: each.dataset_args["problems"] for each in results} == problems
    for each in results:
        of = 100 * shares.loc[shares["benchmark"] == each.dataset_config, "share"]
        assert each.metric_value == pytest.approx(of.mean(), abs=0.01)
        interval = each.metric_args.get("interval_over_problems_95")
        if of.nunique() == 1:
            assert interval is None
            continue
        low, high = stats.t.interval(0.95, len(of) - 1, of.mean(), stats.sem(of))
        assert interval == pytest.approx([max(low, 0), min(high, 100)], abs=0.01)
    assert {file: sha256(file) for file in before} == before


@pytest.mark.slow
def test_a_run_that_is_none_and_weights_that_are_others_are_refused(project, tmp_path):
    _, trained, _, _ = project
    with pytest.raises(ValueError, match="trains no pi_0 of mini-qwen3 with seed 0"):
        hub_folders.model("quick", "mini-qwen3", "pi_0", 0, out=tmp_path / "hub")
    (trained / "model.safetensors").write_bytes(b"others")
    with pytest.raises(UnprovenFileError):
        hub_folders.model("quick", *RUN, out=tmp_path / "hub")
    assert not (tmp_path / "hub").exists()


@pytest.mark.slow
def test_problems_lie_in_a_folder_with_a_card_that_counts_them(project, tmp_path):
    data = project[-1]
    hub_folders.data("quick", out=tmp_path / "problems")
    card = DatasetCard.load(tmp_path / "problems/README.md")
    assert card.data.license == "apache-2.0" and card.data.source_datasets == ["original"]
    for entry in card.data.configs[0]["data_files"]:
        lines = (tmp_path / "problems" / entry["path"]).read_text().splitlines()
        assert lines == (data / entry["path"]).read_text().splitlines()
        for benchmark, number in Counter(json.loads(li)["benchmark"] for li in lines).items():
            assert f"| `{entry['path']}` | {benchmark} | {number} |" in card.text
