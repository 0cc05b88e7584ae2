"""The described dimensions are those of the model that is built."""

from __future__ import annotations

import pytest

from geosd.models.tiny_architectures import build, dimensions, names


@pytest.mark.parametrize("name", names())
def test_a_described_model_has_the_built_ones_parameters(name):
    model, shape = build(name, 22, 0, 1, seed=0), dimensions(name, 22)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert (shape.layers, shape.hidden) == (
        model.config.num_hidden_layers,
        model.config.hidden_size,
    )
    assert (shape.head, shape.family) == (model.config.head_dim, model.config.model_type)
