"""Gradients through the output head, against plain autograd in float64."""

import pytest
import torch
from torch import nn

from geosd.geometry import union_support
from geosd.models.tiny_models import build_tiny_model as build_model
from geosd.objectives.objective import ObjectiveStates, build_objective
from geosd.training.chunked_logits import (
    ChunkedLogits,
    chunked_hidden_states,
    chunked_position_scalars,
)
from geosd.training.packing import pack

N, WIDTH, VOCABULARY, TOP_K = 11, 6, 40, 5
METHODS = ["fwdkl", "geosd", "sft", "grpo", "tropd", "tip"]


def models(bias):
    """Student, teacher, anchor and pi_0 with heads of their own; the student takes gradients."""
    torch.manual_seed(0)
    chunked = {}
    for name in ("student", "teacher", "anchor", "reference"):
        model = nn.Module()
        model.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=bias, dtype=torch.float64)
        model.requires_grad_(name == "student")
        hidden = torch.randn(N, WIDTH, dtype=torch.float64, requires_grad=name == "student")
        chunked[name] = ChunkedLogits(model, hidden)
    return chunked


def by_autograd(objective, chunked, token, top_k=TOP_K):
    """The method's quantities, computed by autograd from whole logits."""
    z = {name: model.logits(slice(None)) for name, model in chunked.items()}
    names = [name for name in ("student", "teacher", "anchor") if name in z]
    log_prob = {}
    if len(names) > 1:
        log_prob = {name: z[name].log_softmax(-1) for name in names}
    if log_prob and top_k is not None:
        support = union_support([z[name].detach() for name in names], top_k)
        log_prob = {name: support.restrict(z[name]) for name in names}
    chosen = {name: z[name].log_softmax(-1).gather(-1, token[:, None])[:, 0] for name in z}
    return objective.per_position(
        ObjectiveStates(
            log_prob.get("student"),
            log_prob.get("teacher"),
            log_prob.get("anchor"),
            chosen["student"],
            chosen.get("teacher"),
            chosen.get("reference"),
        )
    )


@pytest.mark.parametrize("top_k", [TOP_K, None])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("chunk", [N, 4])
@pytest.mark.parametrize("name", METHODS)
def test_gradients_through_kept_logits_are_those_of_autograd(name, chunk, bias, top_k):
    objective = build_objective(name)
    chunked = {key: m for key, m in models(bias).items() if key in {"student", *objective.needs}}
    student = chunked["student"]
    leaves = [student.hidden, *student.model.lm_head.parameters()]
    token = torch.randint(VOCABULARY, (N,))
    found = chunked_position_scalars(objective, chunked, token, top_k, chunk)
    reference = by_autograd(objective, chunked, token, top_k)
    assert found.keys() == reference.keys()
    for key, expected in reference.items():
        torch.testing.assert_close(found[key], expected, rtol=1e-12, atol=1e-13)
        if expected.requires_grad:
            weights = torch.linspace(0.5, 2, N, dtype=torch.float64)
            grads = torch.autograd.grad((found[key] * weights).sum(), leaves, retain_graph=True)
            again = torch.autograd.grad((expected * weights).sum(), leaves, retain_graph=True)
            for grad, value in zip(grads, again, strict=True):
                torch.testing.assert_close(grad, value, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("top_k", "kept"), [(VOCABULARY, True), (None, False)])
@pytest.mark.parametrize("name", ["fwdkl", "geosd", "tropd", "tip"])
def test_of_the_whole_vocabulary_no_chunk_is_kept_for_the_backward_pass(name, top_k, kept):
    objective, chunk = build_objective(name), 4
    chunked = {key: m for key, m in models(False).items() if key in {"student", *objective.needs}}
    shapes = []

    def note(tensor):
        shapes.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        chunked_position_scalars(objective, chunked, torch.zeros(N, dtype=torch.long), top_k, chunk)
    assert ((chunk, VOCABULARY) in shapes) == kept


def test_under_autocast_a_half_precision_head_leaves_gradients_in_the_weights_dtype():
    torch.manual_seed(0)
    model = nn.Module()
    model.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
    hidden = torch.randn(N, WIDTH, requires_grad=True)
    frozen = ChunkedLogits(model.requires_grad_(True), torch.randn(N, WIDTH))
    token = torch.randint(VOCABULARY, (N,))
    for name in ("fwdkl", "sft"):
        grads = []
        for enabled in (False, True):
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                chunked = {"student": ChunkedLogits(model, hidden), "teacher": frozen}
                loss = chunked_position_scalars(build_objective(name), chunked, token, TOP_K, 4)[
                    "loss"
                ].mean()
                grads.append(torch.autograd.grad(loss, [hidden, model.lm_head.weight]))
        for exact, cast in zip(*grads, strict=True):
            assert cast.dtype == torch.float32
            assert (cast - exact).norm() < 0.05 * exact.norm()


def test_a_log_probability_that_no_method_reads_is_not_computed(monkeypatch):
    chunked = {key: m for key, m in models(False).items() if key in ("student", "teacher")}
    calls = []
    monkeypatch.setattr(
        "geosd.training.chunked_logits._token_log_prob",
        lambda logits, token: calls.append(name) or logits[:, 0],
    )
    token = torch.zeros(N, dtype=torch.long)
    for name in ("fwdkl", "sft"):
        chunked_position_scalars(build_objective(name), chunked, token, TOP_K, 4)
    assert calls == ["sft"] * 3


def test_a_long_common_prefix_goes_through_the_model_once_and_through_kfac_at_every_row():
    model = build_model("mini-qwen3-xs", vocabulary=22, pad_id=0, end_id=1, seed=0)
    packed = pack([[5, 6, 7, 8, 9]] * 4, [[3, 4], [6], [7, 7, 7], [3]], pad_id=0)
    seen = []
    layer = model.model.layers[0].mlp.up_proj
    layer.register_forward_hook(lambda _, args, output: seen.append(tuple(output.shape[:2])))
    once = chunked_hidden_states(model, packed)
    every = chunked_hidden_states(model, packed, every_position=True)
    assert seen == [(1, 4), (4, 4), (4, 8)]
    torch.testing.assert_close(once, every)
