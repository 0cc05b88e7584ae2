"""Logits of an output head in float32 from bfloat16, and their gradients."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from geosd.geometry import fisher_rao, fisher_rao_squared
from geosd.models import output_head
from geosd.models.output_head import float32_head_logits, head_product, output_logits
from geosd.models.tiny_models import build_tiny_model
from geosd.optim.kfac import KFAC

N, WIDTH, VOCABULARY = 9, 32, 50


def head_and_hidden(bias=True, dtype=torch.bfloat16, scale=3.0):
    torch.manual_seed(0)
    head = nn.Linear(WIDTH, VOCABULARY, bias=bias)
    nn.init.normal_(head.weight, std=scale)
    return head.to(dtype), torch.randn(N, WIDTH).to(dtype)


def exact(head, hidden):
    bias = None if head.bias is None else head.bias.double()
    return nn.functional.linear(hidden.double(), head.weight.double(), bias)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [7, 8192])
def test_logits_of_a_bfloat16_head_are_float32_and_not_rounded(monkeypatch, bias, rows):
    monkeypatch.setattr(output_head, "ROWS", rows)
    head, hidden = head_and_hidden(bias)
    expected = exact(head, hidden)
    found = output_logits(head, hidden.view(3, 3, WIDTH))
    assert found.dtype == torch.float32 and found.shape == (3, 3, VOCABULARY)
    torch.testing.assert_close(found.view(N, -1).double(), expected, rtol=1e-6, atol=1e-4)
    assert (head(hidden).double() - expected).abs().max() > 0.05


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_have_the_types_of_their_tensors_and_the_values_of_float64(bias):
    head, hidden = head_and_hidden(bias)
    leaves = [hidden.requires_grad_(), *head.parameters()]
    weights = torch.randn(N, VOCABULARY)
    found = torch.autograd.grad((output_logits(head, hidden) * weights).sum(), leaves)
    expected = torch.autograd.grad((exact(head, hidden) * weights).sum(), leaves)
    for leaf, grad, right in zip(leaves, found, expected, strict=True):
        assert grad.dtype == leaf.dtype == torch.bfloat16
        assert (grad - right).norm() < 0.01 * right.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_logits_and_gradients_of_a_wider_head_keep_their_bytes(dtype):
    head, hidden = head_and_hidden(dtype=dtype)
    leaves = [hidden.requires_grad_(), *head.parameters()]
    found, expected = output_logits(head, hidden), head(hidden)
    assert torch.equal(found, expected)
    assert torch.equal(head_product(hidden, head.weight, head.bias, dtype), expected)
    for one, other in zip(
        torch.autograd.grad(found.sin().sum(), leaves),
        torch.autograd.grad(expected.sin().sum(), leaves),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_under_autocast_the_operands_alone_are_rounded():
    head, hidden = head_and_hidden(bias=False, dtype=torch.float32)
    rounded = head_and_hidden(bias=False)
    with torch.autocast("cpu", torch.bfloat16):
        found = output_logits(head, hidden.requires_grad_())
    assert torch.equal(found, output_logits(*rounded))
    grads = torch.autograd.grad(found.sum(), [hidden, *head.parameters()])
    assert {grad.dtype for grad in grads} == {torch.float32}


def test_the_gradient_of_the_proximal_term_near_the_anchor_is_no_rounding():
    head, hidden = head_and_hidden(scale=1.0)
    anchor = (hidden.float() + 0.01 * torch.randn(N, WIDTH)).bfloat16()

    def gradient(make):
        student = make(head, hidden).detach().requires_grad_()
        other = make(head, anchor).detach()
        loss = fisher_rao_squared(student, other).sum()
        return torch.autograd.grad(loss, student)[0].double(), fisher_rao(student, other).mean()

    right, distance = gradient(exact)
    assert 0.01 < distance < 0.06
    close, far = (
        torch.cosine_similarity(gradient(make)[0], right, dim=-1).min()
        for make in (output_logits, lambda head, hidden: head(hidden))
    )
    assert close > 0.999 and far < 0.9


def test_a_head_that_is_more_than_a_linear_layer_decides_for_itself():
    class Adapted(nn.Linear):
        def forward(self, hidden):
            return super().forward(hidden) + 1

    head, hidden = head_and_hidden()
    adapted = Adapted(WIDTH, VOCABULARY).bfloat16()
    adapted.load_state_dict(head.state_dict())
    assert torch.equal(output_logits(adapted, hidden), head(hidden) + 1)


@pytest.mark.parametrize("tied", ["mini-qwen3", "mini-llama"])
@torch.no_grad()
def test_a_whole_model_gives_float32_logits_inside_and_its_own_again_outside(tied):
    model = build_tiny_model(tied, vocabulary=22, pad_id=0, end_id=1, seed=0).bfloat16().eval()
    ids = torch.randint(3, 22, (2, 6), generator=torch.Generator().manual_seed(0))
    hidden = model.model(ids).last_hidden_state
    with float32_head_logits(model):
        found = model(ids).logits
    torch.testing.assert_close(found, output_logits(model.lm_head, hidden), rtol=1e-6, atol=1e-6)
    assert model(ids).logits.dtype == torch.bfloat16
    assert "forward" not in vars(model.lm_head)
    with float32_head_logits(model.float()):
        assert "forward" not in vars(model.lm_head)  # nothing to do


def test_cuda_multiplies_bfloat16_into_float32_without_a_float32_copy_of_the_head():
    calls = []

    class Recording(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(str(function))
            return function(*args, **(kwargs or {}))

    with FakeTensorMode():  # shapes and types alone: no GPU is needed
        made = {"dtype": torch.bfloat16, "device": "cuda"}
        hidden, weight = torch.empty(4, WIDTH, **made), torch.empty(VOCABULARY, WIDTH, **made)
        with Recording():
            logits = head_product(hidden, weight, None, torch.bfloat16)
    assert (logits.dtype, logits.shape) == (torch.float32, (4, VOCABULARY))
    assert "aten.mm.dtype" in calls and "aten._to_copy.default" not in calls


def test_hooks_of_the_head_act_as_those_of_any_layer():
    head, hidden = head_and_hidden()
    kfac = KFAC(nn.Sequential(head), blocks=2, subsample=1.0, select=lambda name, module: True)
    with kfac.observe(loss_terms=N):
        output_logits(head, hidden.view(3, 3, WIDTH)).square().mean().backward()
    before = head.weight.grad.clone()
    kfac.step()
    assert not torch.equal(head.weight.grad, before)
