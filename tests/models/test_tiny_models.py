import pytest
import torch

from geosd.models.architectures import TINY_MODELS, tiny_architecture
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.search.corpora import VOCABULARY

IDS = dict(vocabulary=len(VOCABULARY), pad_id=0, end_id=1)
PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


@pytest.mark.parametrize("name", TINY_MODELS)
def test_every_model_has_the_seven_projections_of_the_paper_divisible_by_16_blocks(name):
    model = build_tiny_model(name, **IDS, seed=0)
    matrices = {n: p for n, p in model.named_parameters() if p.ndim == 2 and ".layers." in n}
    assert {n.split(".")[-2] for n in matrices} == PROJECTIONS
    assert all(size % 16 == 0 for p in matrices.values() for size in p.shape)
    assert model.config.vocab_size == len(VOCABULARY)


@pytest.mark.parametrize("name", ["mini-qwen3", "mini-olmo3", "mini-llama"])
def test_a_few_steps_of_training_lower_the_loss(name):
    model = build_tiny_model(name, **IDS, seed=0)
    ids = torch.tensor([[3, 19, 9, 20, 5, 19, 9, 20, 7, 17, 1]] * 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(8):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_a_seed_names_its_weights_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    first, again, other_seed = (
        build_tiny_model("mini-qwen3-xs", **IDS, seed=seed) for seed in (3, 3, 4)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.lm_head.weight, again.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other_seed.lm_head.weight)


def test_the_ladder_grows():
    ladder = [name for name in TINY_MODELS if "qwen3" in name]
    counts = [build_tiny_model(name, **IDS, seed=0).num_parameters() for name in ladder]
    assert len(counts) == 5
    assert all(larger > 1.5 * smaller for smaller, larger in zip(counts, counts[1:], strict=False))


def test_an_unknown_model_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="'mini-gpt'; allowed are mini-qwen3-xs(.|\n)*Hint"):
        build_tiny_model("mini-gpt", **IDS, seed=0)


@pytest.mark.parametrize("name", TINY_MODELS)
def test_the_dimensions_of_a_name_are_those_of_the_model_built(name):
    model, shape = build_tiny_model(name, 22, 0, 1, seed=0), tiny_architecture(name, 22)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert (shape.layers, shape.hidden) == (
        model.config.num_hidden_layers,
        model.config.hidden_size,
    )
    assert (shape.head, shape.family) == (model.config.head_dim, model.config.model_type)
