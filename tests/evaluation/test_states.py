"""What is measured at a state is what the paper's formulas give, computed without torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from geosd.evaluation.alignment import AlignmentRollout, alignment_top_tokens
from geosd.evaluation.states import state_gradient_norms, survey_states
from geosd.json_lines import read_jsonl, write_jsonl
from geosd.models.tiny_models import build_tiny_model

V = 22


def weights(p, q):
    """The paper's w of each divergence (equations w-fkl, w-rkl, w-h), zero where p or q is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, np.log(q / p), 0.0)
    kl = -(p * ratio).sum(-1, keepdims=True)
    return {"fwdkl": q, "revkl": p * (ratio + kl), "hellinger": 0.5 * np.sqrt(p * q)}


def closed_form(p, q):
    """Norm of -sum_i w_i grad_z log p_i, where grad_z log p_i = e_i - p."""
    return {
        name: np.linalg.norm(w - p * w.sum(-1, keepdims=True), axis=-1)
        for name, w in weights(p, q).items()
    }


def distributions(seed, scale, n=50, v=9):
    draw = np.random.default_rng(seed)
    logits = scale * draw.normal(size=(2, n, v))
    p, q = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return p, q


@pytest.mark.parametrize("scale", [0.01, 1.0, 5.0])
def test_gradient_norms_are_the_papers_weighted_scores(scale):
    p, q = distributions(0, scale)
    norms = state_gradient_norms(torch.tensor(p).log(), torch.tensor(q).log())
    for name, expected in closed_form(p, q).items():
        np.testing.assert_allclose(norms[name], expected, rtol=1e-8, atol=1e-14)


def test_slots_without_a_token_change_no_gradient():
    p, q = distributions(1, 2.0)
    log_p, log_q = torch.tensor(p).log(), torch.tensor(q).log()
    empty = torch.full((len(p), 3), -torch.inf, dtype=torch.float64)
    padded = state_gradient_norms(torch.cat([log_p, empty], -1), torch.cat([log_q, empty], -1))
    for name, norm in state_gradient_norms(log_p, log_q).items():
        torch.testing.assert_close(padded[name], norm)


def test_forward_kl_pulls_hardest_where_hellinger_lets_go():
    """q is sure of one token; the student's mass on it falls to nothing (paper, section 3.1)."""
    p = np.array([[0.5, 0.5], [1e-2, 1 - 1e-2], [1e-6, 1 - 1e-6]])
    q = np.tile([0.99, 0.01], (3, 1))
    norms = state_gradient_norms(torch.tensor(p).log(), torch.tensor(q).log())
    assert (np.diff(norms["fwdkl"]) > 0).all() and (np.diff(norms["hellinger"]) < 0).all()


@pytest.fixture(scope="module")
def model():
    network = build_tiny_model("mini-qwen3-xs", V, 0, 1, seed=0)
    with torch.no_grad():
        network.lm_head.weight.mul_(30)  # far from uniform
    return network.double()


ROLLOUTS = ([[3, 5], [4, 6, 7]], [[3, 9, 9, 5], [4, 8, 6, 7]], [[10, 11, 12], [13, 14, 15, 16, 1]])


def survey(model, rows=8, chunk=4096, top_k=V):
    return survey_states(model, *ROLLOUTS, pad_id=0, top_k=top_k, batch_size=rows, chunk=chunk)


@torch.no_grad()
def softmax_after(model, prompt, response):
    """Next-token distributions at each response position, from one unpadded pass [T, V]."""
    logits = model(torch.tensor([[*prompt, *response]])).logits[0].numpy()
    logits = logits[len(prompt) - 1 : -1]
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def test_every_position_is_what_two_plain_forward_passes_say(model):
    found = survey(model)
    p = np.concatenate([softmax_after(model, s, r) for s, _, r in zip(*ROLLOUTS, strict=True)])
    q = np.concatenate([softmax_after(model, t, r) for _, t, r in zip(*ROLLOUTS, strict=True)])
    best, every = q.argmax(-1), np.arange(len(q))
    expected = {
        "rollout": [0, 0, 0, 1, 1, 1, 1, 1],
        "position": [0, 1, 2, 0, 1, 2, 3, 4],
        "token": [10, 11, 12, 13, 14, 15, 16, 1],
        "entropy": entropy(p, axis=-1),
        "overlap": np.sqrt(p * q).sum(-1),
        "top_token": best,
        "q_star": q[every, best],
        "p_star": p[every, best],
        "ranked": np.argsort(-q, axis=-1)[:, :8],
        **{f"gradient_{name}": norm for name, norm in closed_form(p, q).items()},
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize(("rows", "chunk"), [(1, 4096), (8, 3), (1, 1)])
def test_how_much_is_held_at_once_changes_nothing(model, rows, chunk):
    whole, cut = survey(model, top_k=4), survey(model, rows, chunk, top_k=4)
    for name, value in whole.items():
        torch.testing.assert_close(cut[name], value, rtol=1e-9, atol=1e-12, msg=name)


def test_the_teacher_s_tokens_are_ranked_best_first():
    assert alignment_top_tokens(torch.tensor([[0.1, 3.0, -1.0, 2.0]])).tolist() == [[1, 3, 0, 2]]


def test_fixed_rollouts_come_back_from_their_file(tmp_path):
    rows = [AlignmentRollout("p", (1, 2), (1, 3, 2), (4, 5), (1,), ((7, 8),))]
    write_jsonl(tmp_path / "states.jsonl", rows)
    assert read_jsonl(tmp_path / "states.jsonl", AlignmentRollout) == rows
