"""Each setting beside the paper's, for made-up settings and for those of params.yaml."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from geosd.config import load, resolve_study, settings
from geosd.reporting.table_hyperparameters import build

NOT_THE_PAPERS = re.compile(
    "opsd|tropd_.*|.*_(muon|fixed|average|purified|solution_only|whole_vocabulary)"
)
"""Variants that the paper does not have: comparators, and OPSD as published."""


def training(objective, rule="adamw", **changes):
    kfac = {"kfac": {"blocks": 16, "storage": "float32"}} if rule == "kfac" else {}
    optimiser = {"rule": rule, **kfac}
    return {"steps": 625, "learning_rate": 1e-6, **changes} | {
        "optimiser": optimiser,
        "objective": objective,
    }


GEOSD = {"name": "geosd", "divergence": "hellinger", "drift_penalty": 1.0}
MODEL = {
    "pool": {"rollouts": 32},
    "evaluation": {"pass_k": [1, 16], "samples": 8},
    "training": {"fwdkl": training({"name": "fwdkl"}), "geosd": training(GEOSD, "kfac")},
}


def cells_by_key(settings):
    """value, paper, verdict and place of each key."""
    return {row.label: [cell.value for cell in row.cells] for row in build(settings).rows}


def read_of(study):
    """What the table reads of a study."""
    return settings("table_hyperparameters", study)["hyperparameters"]


def made_up_settings(**models):
    return {"runs": 10, "data": {"train": 1000, "seed": None}, "models": models}


def test_values_stand_beside_the_papers_with_their_place():
    rows = cells_by_key(made_up_settings(m=MODEL))
    assert rows["training.steps"] == ["625", "625", "yes", "Table hparams"]
    assert rows["runs"] == ["10", "10", "yes", "Table main_id_ood"]
    assert rows["evaluation.samples"] == ["8", "16", "no", "Table hparams"]
    assert rows["evaluation.pass_k"][2] == "yes"  # 16 is one of the study's k
    assert "data.seed" not in rows  # nothing is set


def test_what_the_paper_does_not_give_says_so():
    model = copy.deepcopy(MODEL)
    model["training"]["fwdkl"]["chunk"] = 8
    assert cells_by_key(made_up_settings(m=model))["training.chunk"] == ["8", "not given", "–", "–"]


def test_methods_that_differ_are_named_and_judged_one_by_one():
    model = copy.deepcopy(MODEL)
    model["training"]["geosd"]["learning_rate"] = 3e-5
    rows = cells_by_key(made_up_settings(m=model))
    assert rows["training.learning_rate"][:3] == [
        "1e-06 (fwdkl); 3e-05 (geosd)",
        "1e-06",
        "partly",
    ]
    assert rows["training.optimiser.rule"][:3] == ["adamw (fwdkl); kfac (geosd)"] * 2 + ["yes"]


def test_models_that_differ_are_named():
    large = copy.deepcopy(MODEL)
    large["training"]["geosd"]["optimiser"]["kfac"] = {"blocks": 32, "storage": "bfloat16"}
    rows = cells_by_key(made_up_settings(**{"qwen3-8b": MODEL, "qwen3-32b": large}))
    assert rows["training.optimiser.kfac.blocks"][:3] == [
        "16 (qwen3-8b); 32 (qwen3-32b)",
        "16 (qwen3-8b); 32 (qwen3-32b)",
        "yes",
    ]
    small = cells_by_key(made_up_settings(**{"qwen3-32b": MODEL}))
    assert small["training.optimiser.kfac.blocks"][:3] == ["16", "32", "no"]


def test_where_both_differ_each_pair_is_named():
    other = copy.deepcopy(MODEL)
    other["training"]["geosd"]["steps"] = 100
    rows = cells_by_key(made_up_settings(a=MODEL, b=other))
    assert rows["training.steps"][0] == "625 (a fwdkl, a geosd, b fwdkl); 100 (b geosd)"


@pytest.fixture(scope="module")
def params():
    return load(Path(__file__).parents[2] / "params.yaml")


def test_the_protocol_itself_is_as_in_the_paper(params):
    # A study that lays nothing over the protocol but its own names: only the miniature's model,
    # world and number of runs differ.
    bare = params.studies["quick"].model_copy(
        update={
            **dict.fromkeys(("data", "pool", "training", "evaluation")),
            "variants": {},
            "methods": [name for name in params.variants if not NOT_THE_PAPERS.fullmatch(name)],
            "seeds": list(range(10)),
        }
    )
    protocol = params.model_copy(update={"entries": {"bare": bare}, "studies": {"bare": bare}})
    rows = cells_by_key(read_of(resolve_study(protocol, "bare")))
    wrong = {key: row for key, row in rows.items() if row[2] in ("no", "partly")}
    assert not wrong
    assert sum(row[2] == "yes" for row in rows.values()) > 40


def test_settings_leave_out_candidates_and_numbers_that_are_not_read(params):
    study = resolve_study(params, "quick_selection")
    assert all(not m["training"] for m in read_of(study)["models"].values())
    quick = read_of(resolve_study(params, "quick"))["models"]["mini-qwen3"]
    assert quick["training"]["fwdkl"]["optimiser"] == {"rule": "adamw"}
    assert "kfac" in quick["training"]["geosd"]["optimiser"]
    assert "pi_0" not in quick["training"]
