"""What K-FAC leaves out of a model, from the settings of a training to its manifest."""

import pytest
from cases import EXPERTS, decoder

from geosd.cli.train import _curvature_record
from geosd.optim.update import UpdateRule


def with_experts():
    return decoder("Qwen3Moe", **EXPERTS)


def test_a_training_says_in_its_manifest_what_kfac_leaves_out():
    with pytest.raises(ValueError, match=r"(?s)mlp.experts.*Hint: .*optimiser.kfac.least_share"):
        UpdateRule(with_experts(), rule="kfac", kfac={"blocks": 2})
    with pytest.warns(UserWarning, match=r"mlp.experts"):
        rule = UpdateRule(with_experts(), rule="kfac", kfac={"blocks": 2, "least_share": 0.3})
    attention, experts, router = 16 * (16 + 8 + 8 + 16), 4 * 3 * 8 * 16, 4 * 16  # of a layer
    record = _curvature_record(rule.preconditioner)["kfac"]
    assert record["share"] == pytest.approx(attention / (attention + experts + router))
    names = ("experts.gate_up_proj", "experts.down_proj", "gate")
    assert sorted(record["left_out"]) == sorted(f"model.layers.*.mlp.{name}" for name in names)


def test_a_training_without_kfac_says_nothing_of_it():
    rule = UpdateRule(with_experts())
    assert _curvature_record(rule.preconditioner) == {}
