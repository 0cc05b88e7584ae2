"""The anchor of a trainer: a copy of what trains, of the adapters alone where a model has some.

The adapters here are written out with the names and the interface of peft's LoRA.
"""

import copy

import pytest
import torch
from torch import nn
from transformers import Qwen3Config, Qwen3ForCausalLM, Trainer, TrainingArguments

from geosd.integrations.anchor import AnchorCallback, frozen_copy
from geosd.integrations.kfac_callback import KFACCallback
from geosd.optim.layer_selection import PROJECTIONS

RANK, LAYERS = 3, 2


class LoraLinear(nn.Module):
    """As peft's: the base's layer beside two matrices, by the adapter's name."""

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        rows, columns = base_layer.weight.shape
        self.lora_dropout = nn.ModuleDict({"default": nn.Dropout(0.5)})
        self.lora_A = nn.ModuleDict({"default": nn.Linear(columns, RANK, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(RANK, rows, bias=False)})
        nn.init.zeros_(self.lora_B["default"].weight)

    def forward(self, x):
        inner = self.lora_A["default"](self.lora_dropout["default"](x))
        return self.base_layer(x) + 2 * self.lora_B["default"](inner)


def model(lora=True):
    torch.manual_seed(0)
    dims = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=LAYERS, head_dim=8)
    heads = dict(num_attention_heads=2, num_key_value_heads=1)
    whole = Qwen3ForCausalLM(Qwen3Config(vocab_size=32, **dims, **heads))
    if lora:
        whole.requires_grad_(False)
        for parent in list(whole.modules()):
            for name, child in list(parent.named_children()):
                if name in PROJECTIONS:
                    setattr(parent, name, LoraLinear(child))
    return whole


def names(of, training):
    return {name for name, each in of.named_parameters() if each.requires_grad is training}


def test_the_base_is_shared_and_the_adapters_are_copied():
    student = model()
    anchor = frozen_copy(student)
    adapters, base = names(student, True), names(student, False)
    assert len(adapters) == 2 * 7 * LAYERS and all("lora_" in name for name in adapters)
    for name in base:
        assert anchor.get_parameter(name) is student.get_parameter(name)
    for name in adapters:
        assert anchor.get_parameter(name).data_ptr() != student.get_parameter(name).data_ptr()
        assert torch.equal(anchor.get_parameter(name), student.get_parameter(name))
    assert names(student, True) == adapters and not names(anchor, True)  # the student goes on
    assert student.training and not any(each.training for each in anchor.modules())


def test_it_computes_what_a_whole_copy_computes_while_the_student_moves_on():
    student = model()
    for name in names(student, True):
        nn.init.normal_(student.get_parameter(name), std=0.3)
    whole, anchor = copy.deepcopy(student).eval(), frozen_copy(student)
    with torch.no_grad():
        for name in names(student, True):
            student.get_parameter(name).add_(1.0)
    ids = torch.arange(10)[None]
    with torch.no_grad():
        assert torch.equal(anchor(ids).logits, whole(ids).logits)
        assert not torch.allclose(student.eval()(ids).logits, whole(ids).logits, atol=1e-2)


def test_a_model_that_trains_whole_is_copied_whole():
    student = model(lora=False)
    anchor = frozen_copy(student)
    own = {each.data_ptr() for each in anchor.parameters()}
    assert not own & {each.data_ptr() for each in student.parameters()}


class Weights(AnchorCallback):
    """Notes at each step whether the anchor has the student's weights."""

    def on_step_begin(self, args, state, *control, model, **others):
        super().on_step_begin(args, state, *control, model=model, **others)
        same = all(torch.equal(own, value) for own, value in self._weights(model).values())
        self.__dict__.setdefault("fresh", []).append(same)


def trained(folder, resume=None):
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(32, (8, 6), generator=draw)
    rows = [{"input_ids": row, "attention_mask": row**0, "labels": row} for row in ids]
    student = model()
    anchor, kfac = Weights(frozen_copy(student), every=2), KFACCallback(subsample=1.0)
    args = TrainingArguments(
        str(folder),
        per_device_train_batch_size=2,
        max_steps=4,
        max_grad_norm=0,
        learning_rate=0.1,
        lr_scheduler_type="constant",
        optim="sgd",
        use_cpu=True,
        report_to=[],
        save_strategy="steps",
        save_steps=3,
        logging_strategy="no",
        disable_tqdm=True,
        seed=3,
    )
    trainer = Trainer(student, args, train_dataset=rows, callbacks=[anchor, kfac])
    trainer.train(resume_from_checkpoint=resume)
    return student, anchor, kfac


def test_a_training_of_adapters_refreshes_saves_and_continues(tmp_path):
    student, anchor, kfac = trained(tmp_path)
    adapters = names(student, True)
    assert {f"{name}.weight" for name in kfac.kfac.layers} == adapters  # without a selection
    assert anchor.fresh == [True, False, True, False]
    saved = torch.load(tmp_path / "checkpoint-3/anchor.pt", weights_only=True)
    assert saved.keys() == {*adapters, "of_checkpoint"}  # and no word of the base
    assert len(saved["of_checkpoint"]["weights"]) == len(adapters)
    start = model()
    for name in names(student, False):
        assert torch.equal(student.get_parameter(name), start.get_parameter(name))
    again, anchor_again, _ = trained(tmp_path, resume=str(tmp_path / "checkpoint-3"))
    assert anchor_again.fresh == [False]  # of step 2, not of step 3
    for name in adapters:
        assert torch.equal(again.get_parameter(name), student.get_parameter(name)), name
        own = anchor_again.anchor.get_parameter(name)
        assert torch.equal(own, anchor.anchor.get_parameter(name)), name


def test_a_number_of_steps_below_one_is_refused():
    with pytest.raises(ValueError, match="(?s)anchor_every is 0.*Hint: at least 1"):
        AnchorCallback(nn.Linear(1, 1), 0)
