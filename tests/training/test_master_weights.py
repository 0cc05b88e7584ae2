"""bfloat16 passes over float32 weights: how close, and what they leave behind."""

import copy

import pytest
import torch
from torch.nn.functional import cosine_similarity

from geosd.models.load_and_save import load_model
from geosd.models.precision import weights_in_precision
from geosd.training import measurement
from geosd.training.arguments import training_arguments
from geosd.training.loop import train_step
from geosd.training.run import RunInputs, assemble_run

IDS = torch.arange(48).reshape(3, 16) % 13


def loss_and_gradients(model, dtype, passes=(IDS,)):
    """Cross-entropy summed over passes, with the gradients added up."""
    model.zero_grad()
    total = 0.0
    with weights_in_precision(model, dtype):
        for ids in passes:
            logits = model(input_ids=ids).logits
            assert logits.dtype == dtype
            loss = torch.nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten()
            )
            loss.backward()
            total += loss.item()
    return total, {name: p.grad for name, p in model.named_parameters()}


@pytest.fixture
def model(tiny):
    return load_model(tiny / "base")[0]


def step_of(tiny, settings, precision, steps=1, **changes):
    settings = {**settings, "precision": precision, **changes}
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    values = [train_step(run, training_arguments(settings), step) for step in range(steps)]
    return run, values


def test_loss_and_gradients_of_bfloat16_passes_are_near_those_of_float32(model):
    exact, exact_gradients = loss_and_gradients(model, torch.float32)
    loss, gradients = loss_and_gradients(model, torch.bfloat16)
    assert loss == pytest.approx(exact, rel=0.01) and loss != exact
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        alike = cosine_similarity(gradient.flatten(), exact_gradients[name].flatten(), dim=0)
        assert alike > 0.995, name


def test_the_weights_and_their_buffers_are_untouched_afterwards(model):
    before = copy.deepcopy(model.state_dict())
    frequencies = dict(model.named_buffers())
    with weights_in_precision(model, torch.bfloat16):
        assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
        assert {b.dtype for b in model.buffers()} == {torch.float32}
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert dict(model.named_buffers()) == frequencies


def test_gradients_of_several_passes_are_added_up_in_float32(model):
    parts = [loss_and_gradients(model, torch.bfloat16, [ids[None]])[1] for ids in IDS]
    _, gradients = loss_and_gradients(model, torch.bfloat16, [ids[None] for ids in IDS])
    for name, gradient in gradients.items():
        assert torch.equal(gradient, parts[0][name] + parts[1][name] + parts[2][name]), name


def test_a_gradient_from_before_waits_outside_and_is_added_to(model):
    _, gradients = loss_and_gradients(model, torch.bfloat16)
    kept = {name: gradient.clone() for name, gradient in gradients.items()}
    with weights_in_precision(model, torch.bfloat16):
        assert all(p.grad is None for p in model.parameters())
    with weights_in_precision(model, torch.bfloat16):
        model(input_ids=IDS).logits.float().logsumexp(-1).mean().backward()
    together = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    with weights_in_precision(model, torch.bfloat16):
        model(input_ids=IDS).logits.float().logsumexp(-1).mean().backward()
    for name, parameter in model.named_parameters():
        assert torch.equal(together[name], kept[name] + parameter.grad), name


def test_each_step_has_the_gradient_of_its_own_loss_alone(tiny, settings):
    common = {"steps": 3, "response_tokens": 1, "learning_rate": 1e-9}
    _, exact = step_of(tiny, settings, "float32", **common)
    _, values = step_of(tiny, settings, "bfloat16", **common)
    norms = [value["update/gradient_norm"] for value in values]
    assert norms == pytest.approx([value["update/gradient_norm"] for value in exact], rel=0.05)


def test_an_error_inside_leaves_the_float32_weights(model):
    with pytest.raises(ZeroDivisionError), weights_in_precision(model, torch.bfloat16):
        1 / 0  # noqa: B018
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("microbatch", [None, 1])
def test_a_step_in_bfloat16_is_near_the_step_in_float32(tiny, settings, microbatch):
    settings["objective"]["drift_penalty"] = 0.0
    common = {"response_tokens": 1, "microbatch": microbatch}  # the same responses in both
    _, (exact,) = step_of(tiny, settings, "float32", **common)
    run, (values,) = step_of(tiny, settings, "bfloat16", **common)
    assert {p.dtype for p in run.student.parameters()} == {torch.float32}
    assert {p.dtype for p in run.reference_models.anchor.parameters()} == {torch.bfloat16}
    assert values["loss/total"] == pytest.approx(exact["loss/total"], rel=0.05, abs=1e-4)
    assert values["update/gradient_norm"] == pytest.approx(exact["update/gradient_norm"], rel=0.05)
    assert values["update/kl_old_new"] == pytest.approx(exact["update/kl_old_new"], rel=0.1)
    assert values["update/kl_old_new"] > 0


def test_an_average_teacher_is_kept_in_float32_and_read_in_bfloat16(tiny, settings):
    run, values = step_of(tiny, settings, "bfloat16", steps=3, teacher="average")
    average = run.reference_models.average
    assert {p.dtype for p in average.parameters()} == {torch.float32}
    apart = [
        (mean - now).abs().max()
        for mean, now in zip(average.parameters(), run.student.parameters(), strict=True)
    ]
    assert max(apart) > 0 and values[-1]["loss/total"] > 0


@pytest.mark.parametrize(
    ("precision", "rule", "recompute", "rows"),
    [
        ("bfloat16", "kfac", False, [3]),  # K-FAC reads every token of the student
        ("bfloat16", "adamw", True, [3]),  # a pass that is made again keeps no prefix
        ("bfloat16", "adamw", False, [1, 3]),
        ("float32", "kfac", False, [1, 3]),
    ],
)
def test_in_bfloat16_anchor_and_base_model_add_up_in_the_order_of_the_student(
    tiny, settings, precision, rule, recompute, rows
):
    """Rows whole, or first the prefix that all have; else equal weights would be apart."""
    settings["optimiser"]["rule"] = rule
    settings |= {"precision": precision, "recompute": recompute}
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    own = run.encoding._ids
    run.encoding._ids = lambda text: [*range(3, 20), *own(text)]
    seen = {"anchor": [], "reference": []}
    for name, passes in seen.items():
        model = getattr(run.reference_models, name)
        model.model.layers[0].mlp.register_forward_hook(
            lambda layer, args, output, passes=passes: passes.append(len(output))
        )
    after, response_logits = [], measurement.policy_response_logits

    def spy(model, packed, every_position=False):
        after.append(every_position)
        return response_logits(model, packed, every_position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "policy_response_logits", spy)
        values = train_step(run, training_arguments(settings), 0)
    assert seen == {"anchor": rows, "reference": rows}
    assert after == [precision == "bfloat16" and rule == "kfac"]
    if precision == "bfloat16":
        assert values["drift/anchor"] == values["drift/pi_0"] == values["loss/prox"] == 0
