"""`make preview`: a study some of whose runs are there."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from geosd.cli import preview
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.files import sha256
from geosd.json_lines import write_jsonl
from geosd.problems.records import ID, SampleRecord
from geosd.provenance.manifest import write_manifest
from geosd.reporting.preview_table import preview_table
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import GroupStatistics, contrast_test, final_contrast_test

METHODS = ["pi_0", "fwdkl", "geosd"]
PROBLEMS = 20
RIGHT = {"pi_0": (8, 9, 10), "fwdkl": (9, 11, 10), "geosd": (15, 13, 17)}
"""Right answers to the OOD problems by seed; to the ID problems there are two more."""
COUNTS = {
    "problems": 8,
    "problems_trained_on": 8,
    "rollouts_drawn": 16,
    "rollouts_by_reason": {"correct": 16},
}


@pytest.fixture
def study(root, tmp_path, monkeypatch):
    """A function that makes a run of a study of three seeds."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["studies"]["quick"] |= {
        "methods": METHODS,
        "seeds": [0, 1, 2],
        "outputs": ["table_main"],
        "evaluation": {"samples": 1, "pass_k": [1], "response_tokens": 16},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(values))
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    resolved = resolve_study(load(tmp_path / "params.yaml"), "quick")
    rows = {(row.variant, row.seed): row for row in RunFolders(resolved).rows()}

    def finish(folder, inputs, **more):
        outputs = {file.name: sha256(file) for file in folder.iterdir()}
        content = {"code": {}, "packages": {}, "device": {}, "wall_s": 1.0, "settings": {}}
        content |= {"peak_memory_bytes": {}, "inputs": inputs, "outputs": outputs}
        write_manifest(folder / "manifest.json", content | more)

    def run(variant, seed):
        row = rows[variant, seed]
        pool, train, evaluate = (tmp_path / path for path in (row.pool, row.train, row.evaluate))
        if row.train:
            for folder in (pool, train):
                folder.mkdir(parents=True, exist_ok=True)
            (pool / "counts.json").write_text(json.dumps(COUNTS))
            log = {"step": [0, 1], "loss/total": [1.0, None], "drift/pi_0": [0.1, 0.2]}
            pd.DataFrame(log).to_csv(train / "steps.csv", index=False)
            (train / "model.safetensors").write_text(f"weights of {variant}, {seed}")
            finish(train, {})
        evaluate.mkdir(parents=True)
        right = {ID: RIGHT[variant][seed] + 2, "held out": RIGHT[variant][seed]}
        samples = [
            SampleRecord(
                at, str(i), 0, "x", 3, "1", i < n, "stop", "correct" if i < n else "wrong answer"
            )
            for at, n in right.items()
            for i in range(PROBLEMS)
        ]
        write_jsonl(evaluate / "samples.jsonl", samples)
        weights = f"{row.train or row.base}/model.safetensors"
        named = {"model": row.model, "seed": seed, "draw": row.draw}
        finish(evaluate, {weights: sha256(Path(weights)) if row.train else "0" * 64}, **named)
        return evaluate

    return run


@pytest.mark.slow
def test_a_preview_has_the_runs_that_are_there_and_what_the_others_may_change(
    study, tmp_path, capsys
):
    with pytest.raises(SystemExit, match="No run of study quick .* of 9.\nHint: "):
        preview.main("quick")
    for run in [("pi_0", 0), ("pi_0", 1), ("pi_0", 2), ("fwdkl", 1), ("geosd", 0), ("geosd", 1)]:
        study(*run)
    # Of a run that is being evaluated there are samples and no manifest.
    (study("geosd", 2) / "manifest.json").unlink()
    preview.main("quick")
    printed = capsys.readouterr().out
    lines = [line.rstrip() for line in printed.splitlines()]
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "PREVIEW" in printed and "6 of 9 runs are evaluated" in printed
    text = (tmp_path / "scratch/preview/quick/preview.md").read_text()
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.count("|") > 3}
    cells = [cell.strip() for cell in lines["GeoSD"].strip("|").split("|")[1:]]
    seeds, id_mean, _, ood, ood_final, change, change_final = cells
    assert seeds == "2 of 3" and id_mean.startswith("80.0 ±")
    seen = contrast_test([GroupStatistics.of([75.0, 65.0])])
    assert ood == f"70.0 ±{(seen.high - seen.low) / 2:.1f}"
    final = final_contrast_test([GroupStatistics.of([75.0, 65.0])], 3)
    assert ood_final == f"±{(final.high - final.low) / 2:.1f}"
    # Seeds 0 and 1 alone: pi_0 of seed 2 has no partner yet.
    pairs = contrast_test([GroupStatistics.of([75.0 - 40.0, 65.0 - 45.0])])
    assert change == f"+27.5 ±{(pairs.high - pairs.low) / 2:.1f}"
    left = final_contrast_test([GroupStatistics.of([35.0, 20.0])], 3)
    assert change_final == f"±{(left.high - left.low) / 2:.1f}"
    alone = [cell.strip() for cell in lines["FwdKL"].strip("|").split("|")[1:]]
    assert alone[:3] == ["1 of 3", "65.0", "–"]
    whole = [cell.strip() for cell in lines["π₀"].strip("|").split("|")[1:]]
    assert whole[0] == "3 of 3" and whole[2] == "±0.0"
    assert "may have either sign: mini-qwen3/FwdKL, mini-qwen3/GeoSD." in printed
    assert (tmp_path / "scratch/preview/quick/figure_frontier.pdf").stat().st_size
    assert not (tmp_path / "results/quick").exists()  # nothing of the study itself


def changes_of(table):
    (row,) = [row for row in table.rows if row.label == "GeoSD"]
    change, final = row.cells[-2:]
    return [f"{change.text} ±{change.spread or '?'}", final.text]


def scores_of(draws, own, base):
    """A score table of the runs of GeoSD and of pi_0, whose OOD averages are given by seed."""
    columns = {"model": "m", "split": "OOD", "metric": "avg@k", "k": 4}
    rows = [
        {**columns, "variant": v, "seed": s, "draw": d, "benchmark": b, "value": value}
        for v, values in (("geosd", own), ("pi_0", base))
        for s, (d, value) in enumerate(zip(draws, values, strict=False))
        for b in (ID, OOD_AVERAGE)
    ]
    return pd.DataFrame(rows)


def test_a_change_is_paired_by_seed_and_averaged_by_draw():
    own, base = [50.0, 62.0, 71.0, 80.0], [40.0, 50.0, 60.0, 68.0]
    whole = preview_table(scores_of([0, 0, 0, 0], own, base), ["m"], METHODS, 4)
    pairs = contrast_test([GroupStatistics.of([10.0, 12.0, 11.0, 12.0])])
    assert changes_of(whole) == [f"+11.2 ±{pairs.high - pairs.difference:.1f}", "±0.0"]
    # Pairs are alike, though runs of one method are far apart.
    assert pairs.high - pairs.difference < 2
    by_draw = preview_table(scores_of([0, 0, 1, 1], own, base), ["m"], METHODS, 4)
    draws = contrast_test([GroupStatistics.of([11.0, 11.5])])
    assert changes_of(by_draw)[0] == f"+11.2 ±{draws.high - draws.difference:.1f}"
    apart = preview_table(scores_of([0, 0, 0, 0], own, base[:1]), ["m"], METHODS, 4)
    assert changes_of(apart) == ["+10.0 ±?", "–"]


def test_without_the_base_model_there_is_no_change_and_no_frontier(study, tmp_path, capsys):
    study("geosd", 0)
    study("geosd", 1)
    preview.main("quick")
    printed = capsys.readouterr().out
    assert "2 of 9 runs" in printed and "either sign" not in printed
    assert not (tmp_path / "scratch/preview/quick/figure_frontier.pdf").exists()
