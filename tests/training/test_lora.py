"""A training of adapters alone (training.lora); needs peft (`make test-core`)."""

import pytest
import torch

from geosd.models.load_and_save import load_model, load_weights, save_model, weights_as_saved
from geosd.preemption import PreemptionError
from geosd.training.arguments import training_arguments
from geosd.training.fsdp import full_model
from geosd.training.loop import train
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog

pytest.importorskip("peft", reason="peft is not installed; `make .venv/installed-lora` installs it")

LORA = {"rank": 2, "alpha": 4.0, "targets": ["q_proj", "v_proj", "down_proj"]}
IDS = torch.arange(8)[None]


@pytest.fixture
def settings(settings):
    return settings | {"response_tokens": 6, "lora": LORA}


def inputs_of(tiny, settings):
    return RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)


def train_to_end(run, settings, scratch, stop=lambda: False):
    resume, snapshots = ResumeState(scratch, [0]), Snapshots(scratch / "snapshots", [4])
    arguments = training_arguments(settings)
    train(run, arguments, resume, lambda s: StepLog(scratch / "log", s), snapshots, stop)
    return {name: value.clone() for name, value in run.student.state_dict().items()}


def test_it_begins_as_pi_0_and_the_other_models_are_adapters(tiny, settings):
    run = assemble_run(inputs_of(tiny, settings))
    base, _ = load_model(tiny / "base")
    assert torch.equal(run.student(IDS).logits, base(IDS).logits)
    own = {p.data_ptr(): p for p in run.student.parameters()}
    trained = sum(p.numel() for p in run.student.parameters() if p.requires_grad)
    for model in (run.reference_models.anchor, run.reference_models.reference):
        copied = [p for p in model.parameters() if p.data_ptr() not in own]
        assert sum(p.numel() for p in copied) == trained < 0.2 * sum(map(torch.numel, own.values()))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_only_adapters_move_and_kfac_shapes_their_step(tiny, settings, tmp_path, precision):
    settings |= {"precision": precision}
    adamw = settings | {"optimiser": {"rule": "adamw", "inner": None, "kfac": None}}
    ends = []
    for at, each in enumerate((settings, adamw)):
        run = assemble_run(inputs_of(tiny, each))
        ends.append(train_to_end(run, each, tmp_path / str(at)))
    base = dict(weights_as_saved(load_model(tiny / "base")[0]))
    for name, value in ends[0].items():
        plain = name.replace(".base_layer.", ".")
        assert plain not in base or torch.equal(value, base[plain]), name
    moved = [name for name in ends[0] if ".lora_B." in name and ends[0][name].any()]
    assert len(moved) == len([name for name in ends[0] if ".lora_B." in name]) > 0
    assert any(not torch.equal(ends[0][name], ends[1][name]) for name in moved)


def test_the_anchor_lags_and_pi_0_stays(tiny, settings, tmp_path):
    run = assemble_run(inputs_of(tiny, settings | {"steps": 5, "anchor_every": 2}))
    train_to_end(run, settings | {"steps": 5}, tmp_path)
    base, _ = load_model(tiny / "base")
    now, anchor, first = (
        model(IDS).logits
        for model in (run.student, run.reference_models.anchor, run.reference_models.reference)
    )
    assert torch.equal(first, base(IDS).logits)
    assert not torch.equal(now, anchor) and not torch.equal(anchor, first)


def test_a_stopped_run_goes_on_from_adapters_alone_with_the_same_bits(tiny, settings, tmp_path):
    whole = train_to_end(assemble_run(inputs_of(tiny, settings)), settings, tmp_path / "whole")
    log = tmp_path / "parts/log/plots/metrics/loss/total.tsv"
    stop = lambda: log.exists() and len(log.read_text().splitlines()) == 4  # noqa: E731
    run = assemble_run(inputs_of(tiny, settings))
    with pytest.raises(PreemptionError, match="asked to stop after 3 steps"):
        train_to_end(run, settings, tmp_path / "parts", stop)
    state = torch.load(tmp_path / "parts/state.pt", weights_only=True)["state"]
    for weights in (state["student"], state["reference_models"]["anchor"]):
        assert weights and all(".lora_" in name for name in weights)
    # Without `stop`: the log still has its three steps, and a stop is looked for in rollouts too.
    run = assemble_run(inputs_of(tiny, settings))
    parts = train_to_end(run, settings, tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_what_is_evaluated_is_merged(tiny, settings, tmp_path):
    run = assemble_run(inputs_of(tiny, settings))
    ends = train_to_end(run, settings, tmp_path)
    save_model(full_model(run.student), run.encoding.tokenizer, tmp_path / "out")
    merged, _ = load_model(tmp_path / "out")
    assert type(merged) is type(load_model(tiny / "base")[0])
    torch.testing.assert_close(merged(IDS).logits, run.student(IDS).logits, rtol=1e-4, atol=1e-5)
    layer = "model.layers.0.mlp.down_proj."
    parts = (f"{layer}lora_B.default.weight", f"{layer}lora_A.default.weight")
    b, a = (ends[name] for name in parts)
    by_hand = ends[layer + "base_layer.weight"] + LORA["alpha"] / LORA["rank"] * b @ a
    torch.testing.assert_close(dict(merged.named_parameters())[layer + "weight"], by_hand)
    load_weights(merged, tmp_path / "snapshots/step_4.safetensors")  # of the model's own names


def test_several_processes_are_refused(tiny, settings):
    with pytest.raises(ValueError, match=r"(?s)training\.lora trains in one process.*Hint"):
        assemble_run(inputs_of(tiny, settings), worker=object())
