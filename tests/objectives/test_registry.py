from dataclasses import dataclass

import pytest

from geosd.objectives import objective
from geosd.objectives.objective import Objective, build_objective, names, register_objective

PAPER = {"sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd"}

MODULE = "geosd.objectives.other"


def test_all_methods_of_the_paper_are_known():
    assert PAPER <= set(names())


@pytest.mark.parametrize("name", sorted(PAPER))
def test_defaults_build(name):
    assert isinstance(build_objective(name), Objective)


def test_defaults_are_the_values_the_paper_selects():
    assert build_objective("geosd").drift_penalty == 1.0
    assert build_objective("geosd").divergence == "hellinger"
    assert build_objective("jsd").beta == 0.5
    assert build_objective("skewkl").alpha == 0.1
    assert (build_objective("grpo").clip, build_objective("grpo").kl_coefficient) == (0.2, 0.03)
    tropd, tip = build_objective("tropd"), build_objective("tip")
    assert (tropd.agreement_threshold, tropd.outlier_cap) == (0.6, 0.1)
    assert (tip.retained_fraction, tip.entropy_weight) == (0.5, 0.5)


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(
        ValueError, match=r"'geo_sd'.*fwdkl.*tropd(.|\n)*Hint: Did you mean geosd\?"
    ):
        build_objective("geo_sd")


def test_an_unknown_hyperparameter_is_answered_with_those_there_are():
    with pytest.raises(
        ValueError, match=r"'drift'.*drift_penalty(.|\n)*Hint: Did you mean drift_p"
    ):
        build_objective("geosd", drift=1.0)
    with pytest.raises(ValueError, match=r"'beta'; allowed are none"):
        build_objective("fwdkl", beta=0.5)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("jsd", "beta", 0),
        ("jsd", "beta", "0.5"),
        ("jsd", "beta", True),
        ("skewkl", "alpha", 1),
        ("skewkl", "direction", "backward"),
        ("geosd", "drift_penalty", -1),
        ("geosd", "drift_penalty", float("nan")),
        ("geosd", "drift_penalty", float("inf")),
        ("geosd", "divergence", "kl"),
        ("geosd", "beta", 1),
        ("grpo", "clip", 0),
        ("grpo", "kl_coefficient", -0.1),
        ("grpo", "std_epsilon", 0),
        ("tropd", "agreement_threshold", 1.5),
        ("tropd", "outlier_cap", -0.1),
        ("tropd", "agreement", "mean"),
        ("tropd", "outlier", "drop"),
        ("tropd", "outlier_top_k", 6.5),
        ("tip", "retained_fraction", 0),
        ("tip", "entropy_weight", 1.1),
        ("tip", "mode", "sample"),
        ("tip", "entropy_clip", 0),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name_with_a_hint(name, key, value):
    with pytest.raises(ValueError, match=rf"^{name}\.{key} is (.|\n)*allowed (.|\n)*Hint: "):
        build_objective(name, **{key: value})


def test_a_file_in_the_folder_is_a_method(tmp_path, monkeypatch):
    source = """
from dataclasses import dataclass
from geosd.objectives.objective import Objective, register_objective

@register_objective("extra")
@dataclass(frozen=True)
class Extra(Objective):
    strength: float = 2.0

    def per_position(self, states):
        return {"loss": self.strength * states.sampled}
"""
    (tmp_path / "extra.py").write_text(source)
    import geosd.objectives

    monkeypatch.setattr(geosd.objectives, "__path__", [*geosd.objectives.__path__, str(tmp_path)])
    monkeypatch.setattr(objective._registry, "_classes", dict(objective._registry._classes))
    assert build_objective("extra", strength=3.0).strength == 3.0


def test_a_file_must_bear_the_name_of_its_method():
    with pytest.raises(ValueError, match="(?s)registered by module 'other'; .*'extra'.*Hint: "):
        register_objective("extra")(dataclass(type("Extra", (Objective,), {"__module__": MODULE})))


def test_two_methods_cannot_share_a_name(monkeypatch):
    names()
    monkeypatch.setattr(objective._registry, "_classes", dict(objective._registry._classes))
    with pytest.raises(ValueError, match="registered twice"):

        @register_objective("jsd")
        @dataclass(frozen=True)
        class Other(Objective):
            def per_position(self, states):
                return {}


def test_only_dataclasses_of_the_contract_are_registered():
    with pytest.raises(TypeError, match="dataclass that subclasses Objective"):

        @register_objective("loose")
        class Loose:
            pass
