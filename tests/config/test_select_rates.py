"""What a selection chose reaches the studies that name its file, and nothing else changes."""

from __future__ import annotations

import hashlib

import pandas as pd
import pytest
import yaml

from geosd.cli import select_rates
from geosd.config import ConfigError, load, resolve
from geosd.config.sweeps import swept_values
from geosd.scores.tidy import COLUMNS

MODEL = "mini-qwen3"


MODELS = ("mini-qwen3", "mini-olmo3", "mini-llama")
CHOSEN = {  # the rate that validation is best at, where it is not the smallest
    ("mini-qwen3", "geosd"): 3e-4,
    ("mini-olmo3", "geosd"): 1e-4,
    ("mini-llama", "geosd"): 3e-5,
    ("mini-olmo3", "fwdkl"): 3e-5,
}


TAKERS = [  # studies that are to take what was selected
    (f"    about: {about}", f"    selected_rates: *selected_rates\n    about: {about}")
    for about in ("What each part of GeoSD does, on one", "GeoSD on five sizes of")
]


def scores(study) -> pd.DataFrame:
    """Scores of a selection by which `CHOSEN` are selected; elsewhere the smallest rate."""
    rows = [
        (model, name, seed, 0, "select_validation", "ID", "avg@k", 8, 60.0 if best else 50 - rate)
        for model in study.models
        for variant, candidates in swept_values(study, "learning_rate").items()
        for name, rate in candidates.items()
        for best in [CHOSEN.get((model, variant)) == rate]
        for seed in study.seeds
    ]
    rows += [
        (model, "pi_0", seed, 0, "select_validation", "ID", "avg@k", 8, 45.0)
        for model in study.models
        for seed in study.seeds
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def write(params, selection="miniature_selection", file="selected/miniature.yaml") -> None:
    table = params.parent / "scores.csv"
    scores(resolve(load(params), selection)).to_csv(table, index=False)
    select_rates.main(selection, table, params.parent / file, params)


@pytest.fixture
def selected(edited):
    """A params.yaml whose ablation and ladder take what its selection chose, `CHOSEN`; the file."""
    params = edited(*TAKERS)
    write(params)
    return params, params.parent / "selected/miniature.yaml"


def rate(study, model, variant) -> float:
    return study.training(model, variant)["learning_rate"]


def test_the_sweep_of_a_rate_leaves_out_candidates_that_differ_in_more(root):
    params = load(root / "params.yaml")
    paper = swept_values(resolve(params, "paper_selection"), "learning_rate")
    assert all("damping_0.001" in name for name in paper["geosd"])
    assert (len(paper["geosd"]), len(paper["fwdkl"])) == (3, 5)
    assert not any("clip" in name for name in paper["grpo"])
    own = resolve(params, "miniature_hyperparameters")
    assert swept_values(own, "learning_rate") == {}


def test_each_model_takes_its_own_rates(selected):
    study = resolve(load(selected[0]), "miniature_rates")
    for model in MODELS:
        for variant in ("geosd", "fwdkl"):
            assert rate(study, model, variant) == CHOSEN.get((model, variant), 1e-6)


def test_an_ablation_takes_its_methods_rate_on_each_model(selected):
    params = load(selected[0])
    study = resolve(params, "miniature_ablation")
    assert rate(study, "mini-qwen3", "geosd_no_prox") == 3e-4
    assert rate(study, "mini-olmo3", "geosd_no_prox") == 1e-4
    assert rate(study, "mini-olmo3", "geosd_plain") == 1e-6, "it has a rate of its own"


def test_a_model_without_an_entry_takes_that_of_the_model_it_extends(selected):
    ladder = resolve(load(selected[0]), "miniature_ladder")
    assert {rate(ladder, model, "geosd") for model in ladder.models} == {3e-4}


def test_a_model_with_no_rates_at_all_is_a_mistake_of_its_study(edited):
    params = edited(("  mini-llama:\n    extends: mini-qwen3\n", "  mini-llama:\n"))
    file = params.parent / "selected/miniature.yaml"
    file.write_text(
        "study: miniature_selection\nscores_sha256: null\nrule: any\n"
        "learning_rate:\n  mini-qwen3: {geosd: 1.0e-5}\n  mini-olmo3: {geosd: 1.0e-5}\n"
    )
    with pytest.raises(ConfigError) as error:
        load(params)
    expected = (
        "selected/miniature.yaml has no rates of mini-llama or a model that it extends, only of"
    )
    expected += " mini-qwen3, mini-olmo3; add it to the models of miniature_selection first."
    assert f"studies.miniature.models: {expected}" in str(error.value)
    assert "miniature_selection.models:" not in str(error.value), "which is to be run for them"


def test_one_rate_for_each_method_serves_all_models_of_a_study(root):
    study = resolve(load(root / "params.yaml"), "quick")
    assert study.selected_rate("mini-llama", "geosd") == study.selected_rate(MODEL, "geosd")
    assert study.selected_rate(MODEL, "geosd_jsd") == rate(study, MODEL, "geosd")
    assert study.selected_rate(MODEL, "sft") is None


def test_a_selection_on_one_model_writes_one_rate_for_each_method(edited):
    params = edited()
    write(params, "quick_selection", "selected/quick.yaml")
    written = yaml.safe_load((params.parent / "selected/quick.yaml").read_text())
    assert written["learning_rate"] == {"fwdkl": 3e-7, "revkl": 3e-7, "grpo": 3e-7, "geosd": 3e-4}
    assert rate(resolve(load(params), "quick"), MODEL, "geosd") == 3e-4


def test_a_study_without_a_grid_of_rates_selects_nothing(edited):
    params = edited()
    write(params)
    with pytest.raises(
        ConfigError, match="(?s)quick.grid: no variant has a grid of learning_r.*Hi"
    ):
        select_rates.main("quick", params.parent / "scores.csv", params.parent / "no.yaml", params)
    assert not (params.parent / "no.yaml").exists()


def test_a_study_of_another_selection_keeps_its_rates(selected, root):
    before, after = (resolve(load(path), "quick") for path in (root / "params.yaml", selected[0]))
    for variant in before.trained:
        assert after.training(MODEL, variant) == before.training(MODEL, variant)


def test_the_file_says_where_its_rates_come_from(selected):
    params, file = selected
    written = yaml.safe_load(file.read_text())
    assert written["study"] == "miniature_selection"
    hashed = hashlib.sha256((params.parent / "scores.csv").read_bytes()).hexdigest()
    assert written["scores_sha256"] == hashed
    assert "one standard error" in written["rule"]
    # One rate is best twice, two are best once, by as much; all other runs lose by their rate.
    assert written["one_rate"] == 3e-5
    study = resolve(load(params), "miniature_rates")
    swept = {variant for variant, _ in study.candidates.values()}
    assert all(rates.keys() == swept for rates in written["learning_rate"].values())


def test_writing_a_second_time_changes_nothing(selected):
    params, file = selected
    before = file.read_text()
    write(params)
    assert file.read_text() == before


def test_the_studys_own_entry_beats_a_selected_rate(edited):
    own = "      fwdkl: {training: {snapshots: [10, 20, 40, 80, 120, 160]}}"
    own = (own, own.replace("{snapshots", "{learning_rate: 7.0e-6, snapshots"))
    ablation = edited(own, *TAKERS)
    write(ablation)
    study = resolve(load(ablation), "miniature_ablation")
    assert rate(study, MODEL, "fwdkl") == 7e-6
    assert rate(study, MODEL, "geosd") == 3e-4


def test_a_missing_file_of_rates_is_named_with_what_writes_it(edited):
    params = edited(("selected/quick.yaml", "selected/quik.yaml"))
    with pytest.raises(ConfigError, match=r"(?s)quik.yaml does not exist.*Hint: .*`make s"):
        load(params)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fwdkl: ", "fwdkl: -1.0", "learning_rate.fwdkl: -1.0 is not allowed: input should"),
        (
            "fwdkl: ",
            "fwdlk: 3.0e-05",
            "fwdlk is no variant. Did you mean fwdkl?",
        ),
        ("fwdkl: ", "fwdkl: off", '"off" is not allowed'),
        ("study: quick", "stdy: quick", "stdy: there is no such key. Did you mean study?"),
        ("fwdkl: ", "fwdkl: {geosd: 3.0e-6}", "fwdkl is no model."),
        (
            "fwdkl: ",
            "mini-llama: {geosd: -1.0}",
            "mini-llama.geosd: -1.0 is not allowed: in",
        ),
        ("fwdkl: ", "mini-llama: {geosdd: 1.0}", "geosdd is no variant. Did y"),
    ],
)
def test_a_wrong_file_of_rates_is_reported_with_its_line(edited, old, new, message):
    params = edited()
    file = params.parent / "selected/quick.yaml"
    lines = file.read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if text.strip().startswith(old))
    indent = lines[line].partition(old)[0]
    lines[line] = indent + new
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigError) as error:
        load(params)
    assert f"selected/quick.yaml:{line + 1}: " in str(error.value)
    assert message in str(error.value)
    assert str(error.value).splitlines()[-1].startswith("Hint: ")


def test_a_method_whose_every_rate_collapses_is_named(edited, tmp_path):
    params = edited()
    study = resolve(load(params), "miniature_selection")
    table = scores(study)
    fallen = table["variant"].str.startswith("fwdkl")
    table.loc[fallen & (table["model"] == "mini-llama"), "value"] = 20.0
    table.to_csv(tmp_path / "scores.csv", index=False)
    with pytest.raises(ConfigError, match="(?s)fwdkl: every rate lies within half a.*\nHint: "):
        select_rates.main("miniature_selection", tmp_path / "scores.csv", tmp_path / "out", params)
    assert not (tmp_path / "out").exists()


def test_a_studys_own_rate_that_the_selected_ones_hide_is_refused(edited):
    values = yaml.safe_load(edited().read_text())
    # Methods that all have a selected rate, whichever quick has beside them.
    methods = ["pi_0", "fwdkl", "revkl", "grpo", "geosd"]
    own = {"extends": "quick", "about": "A rate.", "kind": "main", "methods": methods}
    values["studies"]["own"] = own | {"training": {"learning_rate": 1e-5}}
    path = edited()
    path.write_text(yaml.safe_dump(values))
    message = "own.training.learning_rate: is never read: selected/quick.yaml has a rate for every"
    with pytest.raises(ConfigError, match=message):
        load(path)
    values["studies"]["own"]["selected_rates"] = None
    path.write_text(yaml.safe_dump(values))
    assert resolve(load(path), "own").training(MODEL, "geosd")["learning_rate"] == 1e-5
    child = own | {"extends": "own", "selected_rates": "selected/quick.yaml"}
    values["studies"]["child"] = child
    path.write_text(yaml.safe_dump(values))
    assert resolve(load(path), "child").training(MODEL, "geosd")["learning_rate"] == 1e-4
