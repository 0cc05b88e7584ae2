"""What a selection chose reaches params.yaml, and nothing else in the file changes."""

from __future__ import annotations

import pandas as pd
import pytest

from geosd.config import ConfigError, load, resolve
from geosd.config.editing import with_numbers
from geosd.config.sweeps import sweep
from geosd.scores.best_candidate import best_candidate
from geosd.scores.score_table import COLUMNS
from geosd.steps import adopt


def scores(values: dict[str, float]) -> pd.DataFrame:
    rows = [
        ("mini-qwen3", name, 0, "select_validation", "ID", metric, 8, value)
        for name, score in values.items()
        for metric, value in (("avg@k", score), ("pass@k", 100 - score))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def test_the_best_is_the_highest_on_validation_and_of_equals_the_first():
    judged = scores({"a": 40.0, "b": 50.0, "c": 50.0})
    assert best_candidate(judged, ["a", "b", "c"]) == "b"
    assert best_candidate(judged, ["c", "b"]) == "c"


def test_a_candidate_that_was_not_judged_is_named():
    with pytest.raises(ValueError, match="No validation of z"):
        best_candidate(scores({"a": 40.0}), ["a", "z"])


def test_the_sweep_of_a_rate_leaves_out_candidates_that_differ_in_more(root):
    study = resolve(load(root / "params.yaml"), "miniature_selection")
    rates = sweep(study, "learning_rate")
    assert all("damping_0.001" in name for name in rates["geosd"])
    assert len(rates["geosd"]) == len(rates["fwdkl"]) == 6
    assert not any("clip" in name for name in rates["grpo"])


@pytest.fixture
def adopted(root, tmp_path):
    """params.yaml before and after GeoSD's rate is chosen as 3e-4 and FwdKL's as 1e-6."""
    text = (root / "params.yaml").read_text()
    (tmp_path / "params.yaml").write_text(text)
    study = resolve(load(root / "params.yaml"), "miniature_selection")
    values = {
        name: 60.0 if (variant, rate) in {("geosd", 3e-4), ("fwdkl", 1e-6)} else 50.0 - rate
        for variant, candidates in sweep(study, "learning_rate").items()
        for name, rate in candidates.items()
    }
    scores(values).to_csv(tmp_path / "scores.csv", index=False)
    adopt.main(
        study="miniature_selection",
        scores=tmp_path / "scores.csv",
        into=("miniature", "miniature_selection"),
        params=tmp_path / "params.yaml",
    )
    return text, (tmp_path / "params.yaml").read_text(), tmp_path / "params.yaml"


def test_the_chosen_rates_are_what_the_studies_then_train_with(adopted):
    params = load(adopted[2])
    for name in ("miniature", "miniature_privilege", "miniature_ablation"):
        study = resolve(params, name)
        assert study.training("mini-qwen3", "geosd")["learning_rate"] == 3e-4
        assert study.training("mini-qwen3", "fwdkl")["learning_rate"] == 1e-6
    ablated = resolve(params, "miniature_ablation").training("mini-qwen3", "geosd_no_prox")
    assert ablated["learning_rate"] == 3e-4, "the ablations take GeoSD's rate, as in the paper"


def test_every_other_line_of_the_file_stays_as_it_is(adopted):
    before, after, _ = adopted
    pairs = list(zip(before.split("\n"), after.split("\n"), strict=True))
    assert all("learning_rate" in old for old, new in pairs if old != new)
    assert "3.0e-4" in after, "written so that both versions of YAML read a number"


def test_writing_a_second_time_changes_nothing(adopted):
    path = adopted[2]
    adopt.main(
        study="miniature_selection",
        scores=path.parent / "scores.csv",
        into=("miniature", "miniature_selection"),
        params=path,
    )
    assert path.read_text() == adopted[1]


def test_a_key_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="there is no `c`"):
        with_numbers("a: {b: 1}", {("a", "c"): 2.0})
