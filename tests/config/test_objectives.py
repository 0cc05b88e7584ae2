"""Hyperparameters in params.yaml are held to the annotations of their objective."""

from __future__ import annotations

import dataclasses
import typing

import pytest
import yaml

from geosd.config import ConfigError, load
from geosd.objectives.hyperparameters import MISSING, declared_hyperparameters, declared_rollouts

OUTLIER_CAP = "        outlier_cap: 0.1\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{name: jsd, beta: 0.5}", "{name: jsd, beta: 1}", "jsd.training.objective.beta: 1 is not"),
        (
            "{name: jsd, beta: 0.5}",
            "{name: jsd, beta: true}",
            "objective.beta: true is not allowed",
        ),
        ("{name: jsd, beta: 0.5}", "{name: jsd, bta: 0.5}", "no such key. Did you mean beta?"),
        ("{name: jsd, beta: 0.5}", "{name: jds, beta: 0.5}", 'name: "jds" is not allowed. Did you'),
        ("        alpha: 0.1\n", "        alpha: .nan\n", "alpha: .* is not allowed"),
        ("direction: forward ", "direction: foward ", "mean forward. Allowed: forward, reverse"),
        ("drift_penalty: 0.0}", "drift_penalty: -0.1}", "drift_penalty: -0.1 is not allowed"),
        ("drift_penalty: 0.0}", "drift_penalty: .inf}", "drift_penalty: .* is not allowed"),
        ("        mode: select ", "        mode: 3 ", "tip.training.objective.mode: 3 is not"),
    ],
)
def test_a_wrong_hyperparameter_is_named_with_what_is_allowed(edited, old, new, message):
    path = edited((old, new), studies=["quick"])
    line = path.read_text()[: path.read_text().index(new)].count("\n") + 1
    with pytest.raises(ConfigError, match=message) as error:
        load(path)
    assert f"params.yaml:{line}:" in str(error.value)


def test_infinity_is_allowed_where_the_objective_allows_it(edited):
    other_modes = "        - {objective.outlier: [clamp, mask, forward]}\n"
    readings = [(f"      tropd_{mode}: *comparator_rates\n", "") for mode in ("mask", "forward")]
    path = edited((OUTLIER_CAP, "        outlier_cap: .inf\n"), (other_modes, ""), *readings)
    params = load(path)
    assert params.variants["tropd"].training.objective.outlier_cap == float("inf")


def test_a_value_of_a_grid_is_checked_too(edited):
    path = edited(("optimiser.kfac.per_token: [false]}", "objective.drift_penalty: [-1.0]}"))
    message = r"drift_penalty: .*greater than or .* for geosd-drift_penalty_-1.0 of mini-qwen3"
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_a_hyperparameter_that_is_not_read_with_the_others_is_refused(edited):
    hellinger = "divergence: hellinger, drift_penalty: 1.0}"
    path = edited(
        (hellinger, "divergence: hellinger, beta: 0.3, drift_penalty: 1.0}"), studies=["quick"]
    )
    with pytest.raises(ConfigError, match=r"objective.beta is 0.3; it is read only with diverg"):
        load(path)


OF_ANOTHER_MODE = {
    "entropy_weight is 0.9; it is read only with mode='select' or mode='reweight'": [
        ("        entropy_weight: 0.5\n", "        entropy_weight: 0.9\n"),
        ("        mode: select ", "        mode: soft_or "),
    ],
    "outlier_top_k is 5; it is read only with outlier='forward'": [
        (OUTLIER_CAP, OUTLIER_CAP + "        outlier_top_k: 5\n"),
    ],
    "outlier_cap is 0.2; it is read only with outlier='scaled' or outlier='clamp'": [
        (OUTLIER_CAP, "        outlier_cap: 0.2\n"),
        ("        outlier: scaled ", "        outlier: mask "),
    ],
}


@pytest.mark.parametrize(("message", "changes"), OF_ANOTHER_MODE.items())
def test_a_hyperparameter_of_another_mode_is_refused(edited, message, changes):
    with pytest.raises(ConfigError, match=message):
        load(edited(*changes, studies=["miniature"]))


@pytest.mark.parametrize(
    ("group", "trainers", "message"),
    [(1, 1, "a group of 1 has no advantage"), (6, 4, "6 cannot be shared evenly by the 4 GPUs")],
)
def test_a_group_that_cannot_be_trained_on_is_refused(edited, group, trainers, message):
    values = yaml.safe_load(edited().read_text())
    values["protocol"]["training"]["group"] = group
    values["resources"]["qwen3-8b"]["train"].update(gpus=trainers, inference_gpus=0)
    path = edited()
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match=rf"training.group: {message}.* grpo of "):
        load(path)


def test_what_each_objective_trains_on_is_read_from_the_syntax():
    from geosd.objectives import objective

    read = {name: type(objective.build_objective(name)).rollouts for name in objective.names()}
    assert declared_rollouts() == read
    assert {"student", "group", "solution"} == set(read.values())


def test_what_an_objective_trains_on_may_be_inherited_and_without_an_annotation(tmp_path):
    (tmp_path / "own.py").write_text(
        'class Base:\n    rollouts: ClassVar[str] = "student"\n\n'
        '@register_objective("plain")\nclass Plain(Base):\n    rollouts = "group"\n\n'
        '@register_objective("heir")\nclass Heir(Base):\n    x: float = 1.0\n'
    )
    assert declared_rollouts(tmp_path) == {"heir": "student", "plain": "group"}


def test_what_is_read_from_the_syntax_is_what_python_makes_of_it():
    from geosd.objectives import objective

    read = declared_hyperparameters()
    assert tuple(read) == objective.names()
    for name, hyperparameters in read.items():
        cls = type(objective.build_objective(name))
        hints = typing.get_type_hints(cls, include_extras=True)
        fields = [(field.name, field.default) for field in dataclasses.fields(cls)]
        assert [(parameter.name, parameter.default) for parameter in hyperparameters] == fields
        for parameter in hyperparameters:
            assert repr(parameter.annotation) == repr(hints[parameter.name])
            assert parameter.default is not MISSING
            assert parameter.meaning, f"{name}.{parameter.name} has no docstring"


def test_a_type_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "extra.py").write_text(
        "@register_objective('extra')\nclass Extra:\n    weight: Weight = 1.0\n"
    )
    with pytest.raises(ValueError, match=r"(?s)'Weight' is not defined; allowed are.*Hint: "):
        declared_hyperparameters(tmp_path)


def test_fields_of_a_base_class_are_read_too(tmp_path):
    text = "class A:\n    x: int = 1\n\n@register_objective('b-c')\n"
    text += "class B(A):\n    y: float\n    '''Why.'''\n"
    (tmp_path / "b_c.py").write_text(text)
    (x, y) = declared_hyperparameters(tmp_path)["b-c"]
    assert (x.name, x.default, y.name, y.default, y.meaning) == ("x", 1, "y", MISSING, "Why.")
