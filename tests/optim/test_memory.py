"""Against the printed rows of the paper's tables (architectures; K-FAC memory), in 10^9 bytes."""

import pytest
import torch
from cases import decoder

from geosd.optim.factor_sizes import FactorDimensions, factor_bytes
from geosd.optim.kfac import KFAC

ROWS = {
    # model: dimensions, blocks, dtype, full EMA, K-FAC total
    "Qwen3-1.7B": (FactorDimensions(28, 2048, 6144, 16, 8, 128), 16, torch.float32, 17.1, 2.1),
    "Qwen3-4B": (FactorDimensions(36, 2560, 9728, 32, 8, 128), 16, torch.float32, 52.6, 6.6),
    "Qwen3-8B": (FactorDimensions(36, 4096, 12288, 32, 8, 128), 16, torch.float32, 87.3, 10.9),
    "Qwen3-14B": (FactorDimensions(40, 5120, 17408, 40, 8, 128), 32, torch.bfloat16, 183.5, 5.7),
    "Qwen3-32B": (FactorDimensions(64, 5120, 25600, 64, 8, 128), 32, torch.bfloat16, 585.2, 18.3),
}


@pytest.mark.parametrize("model", ROWS)
def test_every_row_of_the_papers_table_comes_out_of_its_dimensions(model):
    dimensions, blocks, dtype, full, total = ROWS[model]
    dense = factor_bytes(dimensions, 1, torch.float32, share_inputs=False) / 2
    assert round(dense / 1e9, 1) == full
    assert round(factor_bytes(dimensions, blocks, dtype, share_inputs=False) / 1e9, 1) == total


@pytest.mark.parametrize("model", ROWS)
def test_sharing_inputs_saves_exactly_three_of_the_seven_input_factors(model):
    dimensions, blocks, dtype, *_ = ROWS[model]
    apart = factor_bytes(dimensions, blocks, dtype, share_inputs=False)
    together = factor_bytes(dimensions, blocks, dtype)
    saved = 3 * dimensions.layers * dimensions.hidden**2 // blocks * 2 * dtype.itemsize
    assert apart - together == saved


def test_a_module_counts_as_its_dimensions_do_and_as_what_is_really_kept():
    sizes = {"hidden_size": 18, "intermediate_size": 40, "head_dim": 6}
    with torch.device("meta"):
        on_paper = decoder(**sizes)
    expected = factor_bytes(FactorDimensions(2, 18, 40, 4, 2, 6), 4, torch.bfloat16)
    assert factor_bytes(on_paper, 4, torch.bfloat16) == expected
    state = KFAC(decoder(**sizes), blocks=4, storage=torch.bfloat16).factors.state_dict()
    kept = sum(t.numel() * t.element_size() for t in state["averages"] + state["inverses"])
    assert kept == expected
