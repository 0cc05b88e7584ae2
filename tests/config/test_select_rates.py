"""What a selection chose reaches the studies that name its file, and nothing else changes."""

from __future__ import annotations

import hashlib

import pandas as pd
import pytest
import yaml

from geosd.config import ConfigError, load, resolve
from geosd.config.grids import values_of_candidates
from geosd.scores.tidy_columns import COLUMNS
from geosd.steps import select_rates

MODEL = "mini-qwen3"


def scores(values: dict[str, float]) -> pd.DataFrame:
    rows = [
        (MODEL, name, 0, "select_validation", "ID", metric, 8, value)
        for name, score in values.items()
        for metric, value in (("avg@k", score), ("pass@k", 100 - score))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def test_the_sweep_of_a_rate_leaves_out_candidates_that_differ_in_more(root):
    study = resolve(load(root / "params.yaml"), "miniature_selection")
    rates = values_of_candidates(study, "learning_rate")
    assert all("damping_0.001" in name for name in rates["geosd"])
    assert len(rates["geosd"]) == len(rates["fwdkl"]) == 6
    assert not any("clip" in name for name in rates["grpo"])


@pytest.fixture
def selected(edited):
    """A params.yaml whose selection chose 3e-4 for GeoSD and 1e-6 for FwdKL; its file of rates."""
    params = edited()
    study = resolve(load(params), "miniature_selection")
    values = {
        name: 60.0 if (variant, rate) in {("geosd", 3e-4), ("fwdkl", 1e-6)} else 50.0 - rate
        for variant, candidates in values_of_candidates(study, "learning_rate").items()
        for name, rate in candidates.items()
    }
    scores(values).to_csv(params.parent / "scores.csv", index=False)
    write(params)
    return params, params.parent / "selected/miniature.yaml"


def write(params) -> None:
    select_rates.main(
        study="miniature_selection",
        scores=params.parent / "scores.csv",
        out=params.parent / "selected/miniature.yaml",
        params=params,
    )


def test_the_chosen_rates_are_what_the_studies_then_train_with(selected):
    params = load(selected[0])
    for name in ("miniature", "miniature_privilege", "miniature_ablation"):
        study = resolve(params, name)
        assert study.training(MODEL, "geosd")["learning_rate"] == 3e-4
        assert study.training(MODEL, "fwdkl")["learning_rate"] == 1e-6
    ablated = resolve(params, "miniature_ablation").training(MODEL, "geosd_no_prox")
    assert ablated["learning_rate"] == 3e-4, "the ablations take GeoSD's rate, as in the paper"


def test_a_study_of_another_selection_keeps_its_rates(selected, root):
    before, after = (resolve(load(path), "quick") for path in (root / "params.yaml", selected[0]))
    for variant in before.trained:
        assert after.training(MODEL, variant) == before.training(MODEL, variant)


def test_the_file_says_where_its_rates_come_from(selected, root):
    params, file = selected
    text = file.read_text()
    assert "3.0e-4" in text, "written so that both versions of YAML read a number"
    written, today = yaml.safe_load(text), yaml.safe_load((root / "selected/miniature.yaml").open())
    assert written["study"] == "miniature_selection"
    hashed = hashlib.sha256((params.parent / "scores.csv").read_bytes()).hexdigest()
    assert written["scores_sha256"] == hashed
    assert written["rule"] == today["rule"]
    assert written["learning_rate"].keys() == today["learning_rate"].keys()


def test_writing_a_second_time_changes_nothing(selected):
    params, file = selected
    before = file.read_text()
    write(params)
    assert file.read_text() == before


def test_the_studys_own_entry_beats_a_selected_rate(edited):
    own = "      fwdkl: {training: {snapshots: [10, 20, 40, 80, 120, 160]}}"
    ablation = edited((own, own.replace("{snapshots", "{learning_rate: 7.0e-6, snapshots")))
    study = resolve(load(ablation), "miniature_ablation")
    assert study.training(MODEL, "fwdkl")["learning_rate"] == 7e-6
    assert study.training(MODEL, "geosd")["learning_rate"] == 1e-4


def test_a_missing_file_of_rates_is_named_with_what_writes_it(edited):
    params = edited(("selected/quick.yaml", "selected/quik.yaml"))
    with pytest.raises(ConfigError, match=r"(?s)quik.yaml does not exist.*Hint: .*`make s"):
        load(params)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fwdkl: 3.0e-6", "fwdkl: -1.0", "learning_rate.fwdkl: -1.0 is not allowed: input should"),
        ("fwdkl: 3.0e-6", "fwdlk: 3.0e-6", "fwdlk is no variant of this file. Did you mean fwdkl?"),
        ("fwdkl: 3.0e-6", "fwdkl: 3e-6", "3e-6 is text to Snakemake"),
        ("study: quick", "stdy: quick", "stdy: there is no such key. Did you mean study?"),
    ],
)
def test_a_wrong_file_of_rates_is_reported_with_its_line(edited, old, new, message):
    params = edited()
    file = params.parent / "selected/quick.yaml"
    text = file.read_text()
    file.write_text(text.replace(old, new))
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(ConfigError) as error:
        load(params)
    assert f"selected/quick.yaml:{line}: " in str(error.value)
    assert message in str(error.value)
    assert str(error.value).splitlines()[-1].startswith("Hint: ")
