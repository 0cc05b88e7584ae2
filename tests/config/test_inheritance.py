"""`extends`: an entry over another, key by key; and the one order in which everything is laid."""

from __future__ import annotations

import pytest
from cases import QUICK_ROLLOUT

from geosd.config import ConfigError, load, resolve_study
from geosd.config.overlays import inherit_overlays, merge_overlay

MODEL = "mini-qwen3"
LADDER = "    extends: miniature\n    about: GeoSD on five sizes"


def whole(**studies):
    values, parents, problems = inherit_overlays({"studies": studies})
    assert not problems
    return values["studies"], parents


def test_an_entry_inherits_every_key_but_those_it_must_say_itself():
    own = {"about": "a", "kind": "main", "verdicts": True, "claims_on_costs": True}
    parent = {**own, "seeds": [0, 1]}
    studies, parents = whole(parent=parent, child={"extends": "parent", "about": "b"})
    assert studies["child"] == {"extends": "parent", "about": "b", "seeds": [0, 1]}
    assert studies["parent"] == parent
    assert parents == {("studies", "child"): "parent"}


def test_mappings_are_merged_lists_and_grids_are_replaced_and_chains_are_followed():
    studies, _ = whole(
        a={
            "training": {"steps": 1, "kfac": {"blocks": 4}},
            "seeds": [0],
            "grid": {"x": {"k": [1]}},
        },
        b={"extends": "a", "training": {"kfac": {"decay": 0.5}}},
        c={"extends": "b", "training": {"steps": 2}, "seeds": [1], "grid": {"y": {"k": [2]}}},
        d={"extends": "c", "grid": {}},
    )
    assert studies["c"] == {
        "extends": "b",
        "training": {"steps": 2, "kfac": {"blocks": 4, "decay": 0.5}},
        "seeds": [1],
        "grid": {"y": {"k": [2]}},
    }
    assert studies["d"]["grid"] == {}


def test_null_takes_an_inherited_entry_of_variants_away():
    own = {"x": {"training": {"steps": 1}}, "y": {"training": {"steps": 2}}}
    studies, _ = whole(a={"variants": own}, b={"extends": "a", "variants": {"x": None}})
    assert studies["b"]["variants"] == {"y": own["y"]}
    assert studies["a"]["variants"] == own


def test_the_order_of_entries_does_not_matter():
    studies, _ = whole(b={"extends": "a", "models": ["m"]}, a={"seeds": [3]})
    assert studies["b"]["seeds"] == [3]


def test_an_objective_of_another_name_replaces_all_hyperparameters():
    below = {"objective": {"name": "geosd", "drift_penalty": 1.0}, "steps": 3}
    same = merge_overlay(below, {"objective": {"name": "geosd", "beta": 0.5}})
    other = merge_overlay(below, {"objective": {"name": "jsd", "beta": 0.5}})
    assert same["objective"] == {"name": "geosd", "drift_penalty": 1.0, "beta": 0.5}
    assert other == {"objective": {"name": "jsd", "beta": 0.5}, "steps": 3}


def refused(path) -> str:
    with pytest.raises(ConfigError) as error:
        load(path)
    assert str(error.value).splitlines()[-1].startswith("Hint: ")
    return str(error.value)


def line_of(path, text: str) -> int:
    whole_file = path.read_text()
    return whole_file[: whole_file.index(text)].count("\n") + 1


def test_an_unknown_parent_is_named_with_the_one_that_was_meant(edited):
    path = edited((LADDER, LADDER.replace("miniature", "minature")))
    line = line_of(path, "    extends: minature")
    assert (
        f"params.yaml:{line}: studies.miniature_ladder.extends: minature is no study of this file."
        " Did you mean miniature?" in refused(path)
    )


@pytest.mark.parametrize(
    ("changes", "circle"),
    [
        (
            [("  quick:\n", "  quick:\n    extends: miniature\n")],
            "quick extends miniature extends quick",
        ),
        ([("  mini-qwen3:\n", "  mini-qwen3:\n    extends: mini-qwen3\n")], "mini-qwen3 extends m"),
    ],
)
def test_a_circle_is_refused_with_its_names(edited, changes, circle):
    message = refused(edited(*changes))
    assert circle in message
    assert "of a circle must extend none" in message


def test_a_mistake_is_reported_once_and_where_it_is_written_not_where_it_is_inherited(edited):
    path = edited(("      top_k: 16 ", "      top_k: 0 "))  # of quick, which miniature extends
    message = refused(path)
    assert "1 mistake" in message
    assert f"params.yaml:{line_of(path, 'top_k: 0 ')}: studies.quick.training.top_k: 0" in message


def test_a_key_that_is_not_inherited_is_missing_at_the_study_that_lacks_it(edited):
    about = f"{LADDER} of one architecture; the dial's setting 1.\n"
    path = edited((f"{about}    kind: ladder\n", about))
    line = line_of(path, "  miniature_ladder:")
    assert f"params.yaml:{line}: studies.miniature_ladder.kind: the key is missing" in refused(path)


def test_a_study_beats_its_models_and_a_variant_its_study(edited):
    study = resolve_study(
        load(
            edited(
                (
                    "    about: Qwen3 arch",
                    "    training: {warmup: 3, chunk: 64}\n    about: Qwen3 arch",
                ),
                ("      steps: 100\n", "      steps: 100\n      warmup: 7\n"),
                ("objective: {name: revkl}", "objective: {name: revkl}\n      chunk: 128"),
                ("    kind: main\n    models: [mini-qwen3]", OWN),
                (
                    QUICK_ROLLOUT,
                    f"    variants: {{revkl: {{training: {{warmup: 5}}}}}}\n{QUICK_ROLLOUT}",
                ),
            )
        ),
        "quick",
    )
    fwdkl, revkl = study.training(MODEL, "fwdkl"), study.training(MODEL, "revkl")
    assert study.params.protocol.training.warmup == 20
    assert study.section("training", MODEL)["warmup"] == 7, "a study beats its models"
    assert (fwdkl["chunk"], revkl["chunk"]) == (4096, 128), "a variant beats its study"
    assert revkl["warmup"] == 5, "the study's own entry for the variant beats them all"
    candidate = study.training(MODEL, "revkl-warmup_6")
    assert {**candidate, "warmup": 5} == revkl, "and a candidate of a grid that entry"


OWN = """    kind: main
    grid: {revkl: {warmup: [6]}}
    models: [mini-qwen3]"""


@pytest.mark.parametrize(
    ("source", "conflict"), [("search-wide", 0.5), ("search", 0.5), ("word-problems", None)]
)
def test_problems_of_another_source_inherit_no_setting_of_the_search_world(
    edited, source, conflict
):
    start = "  quick:\n"
    other = "  other:\n    extends: quick\n    about: x\n    kind: main\n"
    other += (
        f"    methods: [pi_0, geosd]\n    outputs: [table_main]\n    data: {{source: {source}}}\n"
    )
    study = resolve_study(load(edited((start, other + start))), "other")
    assert study.section("data")["conflict"] == conflict
    assert study.section("data")["train"] == 300


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "    kind: ladder\n    models: [mini",
            "    kind: lader\n    models: [mini",
            "mean ladder?",
        ),
        (
            "    kind: privilege\n    models: [mini",
            "    kind: ladder\n    models: [mini",
            "two models",
        ),
        (
            "(Appendix Baselines); five minutes.\n    kind: selection",
            "(Appendix Baselines); five minutes.\n    kind: main",
            "the kind is main but data.purpose is selection",
        ),
    ],
)
def test_the_kind_of_a_study_is_checked(edited, old, new, message):
    assert message in refused(edited((old, new)))


def test_the_file_needs_no_merge_keys(root):
    """Entries extend each other; anchors repeat nothing but axes of grids."""
    import yaml

    file = (root / "params.yaml").read_text()
    assert not [event for event in yaml.parse(file) if getattr(event, "value", None) == "<<"]
    values = yaml.safe_load(file)
    for study in values["studies"].values():
        study.pop("grid", None)
    assert "&id" not in yaml.safe_dump(values)


def test_a_section_that_is_resolved_again_has_nothing_of_what_a_caller_changed(root):
    study = resolve_study(load(root / "params.yaml"), "quick")
    steps = study.training("mini-qwen3", "geosd")["steps"]
    study.training("mini-qwen3", "geosd")["steps"] = steps + 1
    assert study.training("mini-qwen3", "geosd")["steps"] == steps
    samples = study.section("evaluation")["samples"]
    study.section("evaluation")["samples"] = samples + 1
    assert study.section("evaluation")["samples"] == samples
