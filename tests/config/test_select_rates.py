"""The rates that a selection chooses are printed as a study has them, and params.yaml has those."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from shipped_studies import tidy_path

from geosd.cli import select_rates
from geosd.cli.select_rates import selected_rates_block
from geosd.config import ConfigError, load, resolve_study
from geosd.config.sweeps import swept_values
from geosd.reporting.method_style import method_style
from geosd.scores.rate_selection import best_common_rate
from geosd.scores.tidy import COLUMNS

MODEL = "mini-qwen3"
MODELS = ("mini-qwen3", "mini-olmo3", "mini-llama")
CHOSEN = {  # the rate that validation is best at, where it is not the smallest
    ("mini-qwen3", "geosd"): 3e-4,
    ("mini-olmo3", "geosd"): 1e-4,
    ("mini-llama", "geosd"): 3e-5,
    ("mini-olmo3", "fwdkl"): 3e-5,
}
PAGE = "docs/selected_rates.md"


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


def rate(study, model, variant) -> float:
    return study.training(model, variant)["learning_rate"]


RATES = {"fwdkl": 3e-5, "revkl": 3e-5, "grpo": 1e-4, "geosd": 1e-4}
"""A rate of its own for each method of quick, as a selection would give."""


@pytest.fixture
def own(root, tmp_path, monkeypatch):
    """Load params.yaml with study `own`, which extends quick, or with `more` studies too."""
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load((root / "params.yaml").read_text())
    quick = values["studies"]["quick"]
    del quick["training"]["learning_rate"]
    quick["variants"] = {name: {"training": {"learning_rate": of}} for name, of in RATES.items()}
    values["studies"] = {"quick": quick}

    def loaded(changes, **more):
        head = {"extends": "quick", "about": "A study.", "kind": "main"}
        studies = {name: head | keys for name, keys in {"own": changes, **more}.items()}
        text = yaml.safe_dump(values | {"studies": values["studies"] | studies})
        Path("params.yaml").write_text(text)
        return load("params.yaml")

    return loaded


def shipped_scores(study: str) -> tuple[pd.DataFrame, str]:
    """The scores of a shipped selection, and the SHA-256 of their file as it was made."""
    packed = tidy_path(study, "scores")
    table = pd.read_csv(packed, keep_default_na=False)
    content = packed.read_bytes()
    if packed.suffix == ".gz":
        content = gzip.decompress(content)
    return table, hashlib.sha256(content).hexdigest()


def test_the_rates_of_params_are_those_that_the_shipped_scores_choose(root):
    selection = "miniature_selection"
    table, sha256 = shipped_scores(selection)
    block = selected_rates_block(
        resolve_study(load(root / "params.yaml"), selection), table, sha256
    )
    _, _, lines = block.partition("    variants:\n")
    text = (root / "params.yaml").read_text()
    assert text.count(lines) == 1, f"params.yaml lacks what is selected:\n{lines}"


def test_the_one_rate_of_quick_is_the_best_in_the_table_of_its_selection(root):
    """Its scores are not shipped; the page has the table that was made of them."""
    text = (root / PAGE).read_text()
    rows = re.findall(r"^\| (\S+) learning_rate_(\S+) +\| +[*_]*([\d.]+)[*_]* +\|", text, re.M)
    quick = resolve_study(load(root / "params.yaml"), "quick")
    assert {label for label, _, _ in rows} == {method_style(name).label for name in quick.trained}
    by_rate: dict[float, list[float]] = {}
    for _, swept, validation in rows:
        by_rate.setdefault(float(swept), []).append(float(validation))
    assert {len(values) for values in by_rate.values()} == {4}
    best = max(by_rate, key=lambda swept: sum(by_rate[swept]))
    assert {rate(quick, MODEL, name) for name in quick.trained} == {best}


def test_the_one_rate_of_the_miniature_is_the_best_for_all_its_methods(root):
    params = load(root / "params.yaml")
    table, _ = shipped_scores("miniature_selection")
    swept = swept_values(resolve_study(params, "miniature_selection"), "learning_rate")
    del swept["geosd_plain"]  # GeoSD once more
    one_rate = best_common_rate(table, swept)
    for name in ("miniature", "miniature_transfer_100_one_rate"):
        study = resolve_study(params, name)
        assert {rate(study, m, v) for m in study.models for v in study.trained} == {one_rate}


def test_the_parts_of_geosd_are_marked_at_its_own_rate(root):
    params = load(root / "params.yaml")
    of_geosd = rate(resolve_study(params, "miniature_transfer_100"), MODEL, "geosd")
    for name in ("miniature_parts_100", "miniature_parts_0"):
        study = resolve_study(params, name)
        variants = {variant for variant, _ in study.candidates.values()}
        assert len(variants) == 3
        assert {rate(study, MODEL, variant) for variant in variants} == {of_geosd}


def test_the_sweep_of_a_rate_leaves_out_candidates_that_differ_in_more(root):
    params = load(root / "params.yaml")
    paper = swept_values(resolve_study(params, "paper_selection"), "learning_rate")
    assert all("damping_0.001" in name for name in paper["geosd"])
    assert (len(paper["geosd"]), len(paper["fwdkl"])) == (3, 5)
    assert not any("clip" in name for name in paper["grpo"])
    own = resolve_study(params, "miniature_hyperparameters")
    assert swept_values(own, "learning_rate") == {}


def test_where_models_differ_each_has_its_rate_and_the_study_trains_with_it(root, own):
    study = resolve_study(load(root / "params.yaml"), "miniature_selection")
    block = selected_rates_block(study, scores(study), "f" * 64)
    lines = block.splitlines()
    assert lines[:4] == [
        "    variants:",
        "      # Chosen by miniature_selection; SHA-256 of its scores.csv:",
        f"      # {'f' * 64}",
        # One rate is best twice, two are best once, by as much; all other runs lose by their rate.
        "      # One rate for all methods would be 3.0e-5.",
    ]
    assert "      sft: {training: {learning_rate: 1.0e-6}}" in lines
    at = lines.index("      fwdkl:")
    assert lines[at + 1 : at + 5] == [
        "        training_by_model:",
        "          mini-qwen3: {learning_rate: 1.0e-6}",
        "          mini-olmo3: {learning_rate: 3.0e-5}",
        "          mini-llama: {learning_rate: 1.0e-6}",
    ]
    taking = resolve_study(own({"models": list(MODELS), **yaml.safe_load(block)}), "own")
    for model in MODELS:
        for variant in ("geosd", "fwdkl"):
            assert rate(taking, model, variant) == CHOSEN.get((model, variant), 1e-6)


def test_a_selection_on_one_model_has_one_rate_for_each_method(root, tmp_path, capsys):
    study = resolve_study(load(root / "params.yaml"), "quick_selection")
    scores(study).to_csv(tmp_path / "scores.csv", index=False)
    select_rates.main("quick_selection", tmp_path / "scores.csv", root / "params.yaml")
    printed = capsys.readouterr().out
    assert hashlib.sha256((tmp_path / "scores.csv").read_bytes()).hexdigest() in printed
    variants = yaml.safe_load(printed)["variants"]
    rates = {name: entry["training"]["learning_rate"] for name, entry in variants.items()}
    assert rates == {"fwdkl": 3e-7, "revkl": 3e-7, "grpo": 3e-7, "geosd": 3e-4}


def test_a_study_without_a_grid_of_rates_selects_nothing(root, tmp_path, capsys):
    params = root / "params.yaml"
    scores(resolve_study(load(params), "quick_selection")).to_csv(
        tmp_path / "scores.csv", index=False
    )
    message = "(?s)quick.grid: no variant has a grid of learning_r.*Hint: "
    with pytest.raises(ConfigError, match=message):
        select_rates.main("quick", tmp_path / "scores.csv", params)
    assert not capsys.readouterr().out


def test_a_method_whose_every_rate_collapses_is_named(root):
    study = resolve_study(load(root / "params.yaml"), "miniature_selection")
    table = scores(study)
    fallen = table["variant"].str.startswith("fwdkl")
    table.loc[fallen & (table["model"] == "mini-llama"), "value"] = 20.0
    with pytest.raises(ConfigError, match="(?s)fwdkl: every rate lies within half a.*\nHint: "):
        selected_rates_block(study, table, "f" * 64)


BY_MODEL = {"geosd": {"training_by_model": {MODEL: {"learning_rate": 1e-5}}}}


def test_what_differs_on_one_model_is_laid_over_what_differs_on_all(own):
    on_all = {"optimiser": {"kfac": {"damping": 0.1}}}  # and quick's learning rate, 1e-4
    entry = {"training": on_all, "training_by_model": {MODEL: {"learning_rate": 2e-5}}}
    study = resolve_study(own({"variants": {"geosd": entry}}), "own")
    training = study.training(MODEL, "geosd")
    assert (training["learning_rate"], training["optimiser"]["kfac"]["damping"]) == (2e-5, 0.1)
    assert training["optimiser"]["rule"] == "kfac", "the variant's own"


def test_an_objectives_key_may_differ_on_one_model_too(own):
    drift = {"training_by_model": {MODEL: {"objective": {"drift_penalty": 3.0}}}}
    study = resolve_study(own({"variants": {"geosd": drift}}), "own")
    objective = study.training(MODEL, "geosd")["objective"]
    assert (objective["name"], objective["drift_penalty"]) == ("geosd", 3.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"models": [MODEL, "mini-llama"], "variants": BY_MODEL},
            "own.variants.geosd.training_by_model: has no entry for mini-llama; every model of",
        ),
        (
            {"variants": {"geosd": {"training_by_model": {MODEL: {}, "mini-quen3": {}}}}},
            "training_by_model.mini-quen3: mini-quen3 is no model. Did you mean mini-qwen3",
        ),
        (
            {"variants": {"geosd": {"training_by_model": {MODEL: {"learning_rate": -1.0}}}}},
            "own.variants.geosd.training_by_model.mini-qwen3.learning_rate: -1.0 is not allowed",
        ),
        (
            {"variants": {"sft": {}}},
            "own.variants.sft: {} is not allowed: it needs training or training_by_model",
        ),
    ],
)
def test_a_wrong_entry_of_a_study_is_named_with_what_is_allowed(own, changes, said):
    with pytest.raises(ConfigError) as error:
        own(changes)
    assert said in str(error.value)
    assert str(error.value).splitlines()[-1].startswith("Hint: ")


def test_a_rate_of_a_study_that_its_variants_hide_is_refused(own):
    slow = {"training": {"learning_rate": 1e-5}}
    message = "own.training.learning_rate: is never read: the study's `variants` have it for every"
    with pytest.raises(ConfigError, match=message):
        own(slow)
    free = own(slow | {"variants": None})
    assert rate(resolve_study(free, "own"), MODEL, "geosd") == 1e-5
    # A method without an entry reads it.
    more = own(slow | {"methods": ["pi_0", "sft", "geosd"]})
    assert rate(resolve_study(more, "own"), MODEL, "sft") == 1e-5
    assert rate(resolve_study(more, "own"), MODEL, "geosd") == 1e-4, "quick's entry"


def test_a_study_may_have_entries_where_the_one_that_it_extends_has_a_rate(own):
    parent = {"training": {"learning_rate": 1e-5}, "variants": None}
    methods = {"methods": ["pi_0", "geosd"], "variants": BY_MODEL}
    child = {"extends": "own", **methods}
    assert rate(resolve_study(own(parent, child=child), "child"), MODEL, "geosd") == 1e-5
    assert rate(resolve_study(own(parent, child=child), "quick"), MODEL, "geosd") == 1e-4


def test_a_rate_that_each_models_own_hides_is_refused(own):
    parent = {"variants": BY_MODEL}
    hidden = {"variants": {"geosd": {"training": {"learning_rate": 2e-5}}}}
    place = "child.variants.geosd.training.learning_rate"
    message = f"{place}: is never read: training_by_model has it for every model"
    with pytest.raises(ConfigError, match=message):
        own(parent, child={"extends": "own", **hidden})
