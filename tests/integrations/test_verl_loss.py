"""The loss inside verl's own two steps, against the formula; needs verl (`make test-verl`)."""

import importlib
from types import SimpleNamespace

import pytest
import torch
from cases import python

from geosd.geometry import fisher_rao_squared, hellinger
from geosd.geometry.lumping import append_lump, lump
from geosd.objectives.reduce import mean_loss

pytest.importorskip("verl", reason="verl is not installed; `make test-verl` installs it")

K, V = 4, 19
PROMPTS, RESPONSES = (3, 2, 4), (5, 1, 3)


@pytest.fixture(scope="module")
def losses():
    """The distillation losses of verl, with ours registered."""
    importlib.import_module("geosd.integrations.verl")
    return importlib.import_module("verl.trainer.distillation.losses")


def configurations(
    loss_mode: str, strategy: str = "fsdp2", loss_agg_mode: str = "seq-mean-token-mean"
):
    """Configurations of actor and distillation."""
    from verl.workers.config import ActorConfig, DistillationConfig, DistillationLossConfig

    loss = DistillationLossConfig(
        loss_mode=loss_mode, topk=K, use_task_rewards=False, use_policy_gradient=False
    )
    actor = ActorConfig(
        strategy=strategy,
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        loss_agg_mode=loss_agg_mode,
        loss_scale_factor=1,
    )
    return actor, DistillationConfig(distillation_loss=loss)


@pytest.fixture
def batch():
    """Logits of packed sequences, the teacher's top K of them, and verl's micro batch."""
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(5)
    lengths = [prompt + response for prompt, response in zip(PROMPTS, RESPONSES, strict=True)]
    logits, teacher = 2 * torch.randn(2, sum(lengths), V, generator=generator)
    log_q, ids = teacher.log_softmax(-1).topk(K)

    def jagged(tensor, of):
        return torch.nested.as_nested_tensor(list(tensor.split(of)), layout=torch.jagged)

    tokens = torch.arange(sum(lengths))
    data = {
        "teacher_logprobs": jagged(log_q, lengths),
        "teacher_ids": jagged(ids.int(), lengths),
        "prompts": jagged(tokens[: sum(PROMPTS)], PROMPTS),
        "responses": jagged(tokens[: sum(RESPONSES)], RESPONSES),
        "response_mask": jagged(torch.ones(sum(RESPONSES), dtype=torch.int64), RESPONSES),
    }
    batch = TensorDict(data, batch_size=[len(lengths)])
    return logits.requires_grad_(), log_q, ids, batch, lengths


def through_verl(losses, loss_mode, batch, loss_agg_mode="seq-mean-token-mean", **changed):
    """The loss as verl's engine computes it: at each position, then over the responses."""
    logits, _, _, data, lengths = batch
    actor, distillation = configurations(loss_mode, loss_agg_mode=loss_agg_mode)
    anchor = SimpleNamespace(inference=SimpleNamespace(custom={"drift_penalty": 0.5}))
    distillation.teacher_models = {"default": anchor}
    at_positions = losses.distillation_ppo_loss(
        actor, distillation, data=data, student_logits=logits[None]
    )
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    output = {
        name: torch.nested.nested_tensor_from_jagged(each[0], offsets)
        for name, each in at_positions.items()
    }
    counts = {
        "dp_size": 1,
        "batch_num_tokens": sum(RESPONSES),
        "global_batch_size": len(RESPONSES),
    }
    return losses.distillation_ppo_loss(
        actor, distillation, output, dict(data.items()) | counts | changed
    )


def part_of(batch, rows, lengths):
    """A microbatch: some of the rows of a packed batch."""
    from tensordict import TensorDict

    logits, log_q, ids, data, _ = batch
    at = torch.cat([torch.arange(sum(lengths)).split(lengths)[row] for row in rows])
    taken = {}
    for name, each in data.items():
        chosen = [each.unbind()[row] for row in rows]
        taken[name] = torch.nested.as_nested_tensor(chosen, layout=torch.jagged)
    some = TensorDict(taken, batch_size=[len(rows)])
    return logits[at], log_q[at], ids[at], some, [lengths[row] for row in rows]


@pytest.mark.parametrize("cut", [[[0], [1], [2]], [[2, 0], [1]]])
def test_the_loss_does_not_depend_on_the_microbatches(losses, batch, cut):
    logits, *_, lengths = batch
    whole, _ = through_verl(losses, "hellinger_topk", batch)
    whole.backward()
    gradient, logits.grad = logits.grad, None
    parts = [
        through_verl(losses, "hellinger_topk", part_of(batch, rows, lengths))[0] for rows in cut
    ]
    for part in parts:  # as verl's engine does
        part.backward()
    torch.testing.assert_close(sum(parts), whole, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(logits.grad, gradient, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("mode", "name"),
    [("seq-mean-token-mean", "global_batch_size"), ("token-mean", "batch_num_tokens")],
)
def test_a_batch_of_unknown_size_is_refused(losses, batch, mode, name):
    with pytest.raises(ValueError, match=f"(?s){mode}: the batch has no {name}.*Hint:"):
        through_verl(losses, "hellinger_topk", batch, mode, **{name: None})


def response_rows():
    """The rows of a packed batch that predict responses, and the sequence of each."""
    rows, sequence, at = [], [], 0
    for index, (prompt, response) in enumerate(zip(PROMPTS, RESPONSES, strict=True)):
        first = at + prompt - 1  # the last token of the prompt predicts the first of the response
        rows += range(first, first + response)
        sequence += [index] * response
        at += prompt + response
    return rows, sequence


def test_the_loss_is_the_papers_mean_of_the_lumped_divergence(losses, batch):
    logits, log_q, ids, _, _ = batch
    value, metrics = through_verl(losses, "hellinger_topk", batch)
    value.backward()
    gradient, logits.grad = logits.grad, None
    rows, sequence = response_rows()
    local = hellinger(lump(logits, ids), append_lump(log_q))[rows]
    expected = mean_loss(local, torch.ones(len(rows)), torch.tensor(sequence), over="sequence")
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-7)
    expected.backward()
    torch.testing.assert_close(gradient, logits.grad, rtol=1e-5, atol=1e-8)
    mass = log_q.exp().sum(-1)[rows].mean().item()
    assert metrics["distillation/teacher_mass"] == pytest.approx(mass, rel=1e-5)


def test_the_proximal_term_goes_through_both_steps(losses, batch):
    logits, log_q, ids, data, lengths = batch
    pull, alone = through_verl(losses, "hellinger_topk", batch)
    for name, each in (("teacher_logprobs", log_q), ("teacher_ids", ids)):
        data[name] = torch.nested.as_nested_tensor(
            list(torch.cat([each, each], -1).split(lengths)), layout=torch.jagged
        )
    value, metrics = through_verl(losses, "geosd_topk", (logits, log_q, ids, data, lengths))
    local = fisher_rao_squared(lump(logits, ids), append_lump(log_q))[response_rows()[0]]
    assert metrics["distillation/prox"] == pytest.approx(local.mean().item(), rel=1e-5)
    counted = torch.ones(len(local)), torch.tensor(response_rows()[1])
    expected = pull + 0.5 * mean_loss(local, *counted, over="sequence")
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-7)
    mass = "distillation/teacher_mass"
    assert metrics[mass] == pytest.approx(alone[mass], rel=1e-6)


def test_chunks_change_nothing(losses, batch, monkeypatch):
    whole, _ = through_verl(losses, "hellinger_topk", batch)
    monkeypatch.setattr("geosd.integrations.verl.CHUNK", 4)
    in_chunks, _ = through_verl(losses, "hellinger_topk", batch)
    torch.testing.assert_close(whole, in_chunks, rtol=1e-6, atol=0)


def test_verls_own_loss_is_left_as_it_is(losses, batch):
    of_verl = importlib.import_module("geosd.integrations.verl")._OF_VERL
    logits, _, _, data, _ = batch
    actor, distillation = configurations("forward_kl_topk")
    through = losses.compute_topk_loss(actor, distillation, data, logits[None], "thd")
    alone = of_verl(actor, distillation, data, logits[None], "thd")
    assert through.keys() == alone.keys() and "overlap_count" in through
    for name, each in alone.items():
        assert torch.equal(each, through[name])


def test_an_engine_that_splits_the_vocabulary_is_refused(losses, batch):
    logits, _, _, data, _ = batch
    _, distillation = configurations("hellinger_topk")

    class Megatron:
        strategy = "megatron"

    with pytest.raises(ValueError, match=r"(?s)megatron.*Hint"):
        losses.compute_topk_loss(Megatron, distillation, data, logits[None], "thd")


def test_verl_registers_it_in_each_process():
    program = (
        "import verl; from verl.trainer.distillation import losses;"
        " print(losses.get_distillation_loss_settings('hellinger_topk').use_topk)"
    )
    external = {"VERL_USE_EXTERNAL_MODULES": "geosd.integrations.verl"}
    done = python("-c", program, environment=external)
    assert done.stdout.split()[-1:] == ["True"], done.stderr
