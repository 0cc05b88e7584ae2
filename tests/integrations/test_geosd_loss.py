"""GeoSD's loss for other trainers against the training loop's loss, and against its formula."""

import pytest
import torch
from torch import nn

from geosd.geometry import fisher_rao_squared, hellinger, jsd
from geosd.integrations.trl import GeoSDLoss
from geosd.models.tiny_models import build_tiny_model as build_model
from geosd.objectives.objective import build_objective
from geosd.objectives.reduce import mean_loss
from geosd.training.chunked_logits import chunked_position_scalars
from geosd.training.packing import pack
from geosd.training.policy import policy_response_logits

VOCABULARY = 40
PROMPTS = [[5, 6, 7], [5, 8, 9, 10, 11], [12, 6]]
RESPONSES = [[3, 4, 20, 21, 7], [6], [30, 31, 8]]


@pytest.fixture(scope="module")
def batch():
    """Packed prompts and responses, and the three models."""
    packed = pack(PROMPTS, RESPONSES, pad_id=0)
    models = {}
    for seed, name in enumerate(("student", "teacher", "anchor")):
        models[name] = build_model("mini-qwen3-xs", VOCABULARY, pad_id=0, end_id=1, seed=seed)
        models[name].requires_grad_(name == "student")
    return packed, models


def loss_of_loop(packed, models, top_k, over, chunk, **settings):
    """The loss as training.loop makes it."""
    objective = build_objective("geosd", **settings)
    names = ["student", *(name for name in models if name in objective.needs)]
    logits = {name: policy_response_logits(models[name], packed) for name in names}
    local = chunked_position_scalars(objective, logits, packed.token, top_k, chunk)["loss"]
    return mean_loss(local, torch.ones_like(local), packed.row, over)


def parameters_gradient(model, loss):
    parameters = list(model.parameters())
    return torch.cat([each.flatten() for each in torch.autograd.grad(loss, parameters)])


@pytest.mark.parametrize("hidden", [True, False], ids=["hidden states", "logits"])
@pytest.mark.parametrize("chunk", [512, 4])
@pytest.mark.parametrize(
    ("settings", "over"),
    [
        ({}, "sequence"),
        ({"drift_penalty": 0.3}, "token"),
        ({"drift_penalty": 0.0}, "sequence"),
        ({"divergence": "jsd"}, "sequence"),
    ],
)
def test_loss_and_gradient_are_those_of_the_training_loop(batch, settings, over, chunk, hidden):
    packed, models = batch
    expected = loss_of_loop(packed, models, 6, over, chunk=5, **settings)
    mask = torch.zeros_like(packed.mask)
    mask[packed.row, packed.column] = True
    states = [model.model(input_ids=packed.ids).last_hidden_state for model in models.values()]
    heads = [model.lm_head for model in models.values()]
    if not hidden:
        states = [head(state) for head, state in zip(heads, states, strict=True)]
    if settings.get("drift_penalty") == 0:
        states[2] = None
    loss = GeoSDLoss(6, **settings, loss_mean=over, chunk=chunk)
    terms = loss.terms(*states, mask, heads if hidden else None)
    torch.testing.assert_close(terms["loss"], expected, rtol=1e-6, atol=1e-6)
    penalty = settings.get("drift_penalty", 1.0)
    sums = terms["distil"] + (penalty * terms["prox"] if penalty else 0)
    torch.testing.assert_close(terms["loss"], sums, rtol=1e-6, atol=1e-6)
    expected_gradient = parameters_gradient(models["student"], expected)
    gradient = parameters_gradient(models["student"], terms["loss"])
    assert (expected_gradient - gradient).norm() < 1e-6 * expected_gradient.norm()


@pytest.mark.parametrize(("name", "divergence"), [("hellinger", hellinger), ("jsd", jsd)])
def test_over_the_whole_vocabulary_it_is_the_formula_in_double_precision(name, divergence):
    torch.manual_seed(0)
    student, teacher, anchor = 2 * torch.randn(3, 3, 5, 12, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]])
    loss = GeoSDLoss(12, 0.7, name, temperature=1.5, chunk=3)(student, teacher, anchor, mask)
    p, q, a = (each / 1.5 for each in (student, teacher, anchor))
    local = divergence(p, q) + 0.7 * fisher_rao_squared(p, a)
    expected = ((local * mask).sum(1) / mask.sum(1)).mean()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)


def test_a_row_without_a_response_counts_and_an_empty_batch_has_a_gradient_of_zero():
    torch.manual_seed(0)
    student, teacher, anchor = torch.randn(3, 2, 4, 12)
    student.requires_grad_()
    mask = torch.tensor([[1, 1, 0, 1], [0, 0, 0, 0]])
    loss = GeoSDLoss(5)
    alone = loss(student[:1], teacher[:1], anchor[:1], mask[:1])
    torch.testing.assert_close(loss(student, teacher, anchor, mask), alone / 2)
    empty = loss.terms(student, teacher, anchor, torch.zeros_like(mask))
    assert {name: value.item() for name, value in empty.items()} == {
        **{"loss": 0, "distil": 0, "prox": 0}
    }
    (gradient,) = torch.autograd.grad(empty["loss"], student)
    assert not gradient.any()


def test_only_inputs_are_kept_for_the_backward_pass_and_never_all_logits():
    torch.manual_seed(0)
    positions, width, vocabulary = 256, 8, 500
    head = nn.Linear(width, vocabulary, bias=False)
    states = torch.randn(3, 1, positions, width).unbind()
    states[0].requires_grad_()
    largest, kept = 0, 0

    class Sizes(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
            nonlocal largest
            output = operation(*arguments, **(keywords or {}))
            if isinstance(output, torch.Tensor):
                largest = max(largest, output.numel())
            return output

    def keep(tensor):
        nonlocal kept
        kept += tensor.numel()
        return tensor

    loss = GeoSDLoss(16, chunk=32)
    with Sizes(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = loss(*states, torch.ones(1, positions), [head] * 3)
    with Sizes():
        value.backward()
    assert largest <= 32 * vocabulary  # of one chunk
    assert kept < 16 * positions * width  # inputs, and no logits of 256 positions
    assert states[0].grad.norm() > 0 and head.weight.grad.norm() > 0


def test_a_shared_head_takes_its_gradient_from_the_student_alone():
    torch.manual_seed(0)
    head = nn.Linear(4, 12, bias=False)
    states = torch.randn(3, 1, 5, 4)
    mask = torch.ones(1, 5)
    frozen = nn.Linear(4, 12, bias=False).requires_grad_(False)
    frozen.weight.copy_(head.weight.detach())
    losses = [GeoSDLoss(6)(*states, mask, [head, other, other]) for other in (head, frozen)]
    shared, alone = (torch.autograd.grad(loss, head.weight)[0] for loss in losses)
    torch.testing.assert_close(shared, alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"anchor": None}, "anchor is None, but drift_penalty is 1.0"),
        ({"teacher": None}, r"teacher is None\.\n"),
        ({"teacher": torch.zeros(2, 4, 9)}, r"teacher has shape \(2, 4, 9\), the mask \(2, 3\)"),
        ({"lm_heads": [nn.Linear(9, 12)]}, "1 output heads for student, teacher, anchor"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    batch = dict.fromkeys(("student", "teacher", "anchor"), torch.zeros(2, 3, 9))
    with pytest.raises(ValueError, match=f"(?s){message}.*Hint:"):
        GeoSDLoss(4)(**{**batch, "mask": torch.ones(2, 3), **change})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_k": 0}, "top_k is 0"),
        ({"divergence": "kl"}, "hellinger"),
        ({"drift_penalty": -1.0}, "drift_penalty"),
    ],
)
def test_a_setting_that_is_not_allowed_is_named(settings, message):
    with pytest.raises(ValueError, match=f"(?s){message}.*Hint:"):
        GeoSDLoss(**settings)


def test_near_the_anchor_hidden_states_in_bfloat16_have_the_gradient_of_a_head_in_float64():
    torch.manual_seed(0)
    width, vocabulary = 64, 300
    head = nn.Linear(width, vocabulary, bias=False)
    nn.init.normal_(head.weight, std=0.7)
    head.bfloat16()
    student = torch.randn(1, 20, width).bfloat16()
    anchor = (student.float() + 5e-3 * torch.randn(1, 20, width)).bfloat16()
    mask, loss = torch.ones(1, 20), GeoSDLoss(100)

    def gradient(states, heads):
        leaf = states[0].clone().requires_grad_()
        terms = loss.terms(leaf, states[0], states[1], mask, heads and [heads] * 3)
        return terms, torch.autograd.grad(terms["loss"], leaf)[0]

    wide = nn.Linear(width, vocabulary, bias=False, dtype=torch.float64)
    wide.weight = nn.Parameter(head.weight.double())
    terms, exact = gradient((student.double(), anchor.double()), wide)
    assert 0.01 < terms["prox"].sqrt() < 0.06
    _, found = gradient((student, anchor), head)
    assert found.dtype == torch.bfloat16
    assert torch.cosine_similarity(found, exact, dim=-1).min() > 0.99
    with pytest.warns(UserWarning, match="(?s)logits are torch.bfloat16.*rounding.*Hint:"):
        _, rounded = gradient((head(student).detach(), head(anchor).detach()), None)
    chained = rounded.float() @ head.weight.float()
    assert torch.cosine_similarity(chained, exact, dim=-1).min() < 0.9
