"""The anchor of a trainer: a copy of what trains, of the adapters alone where a model has some.

The adapters are peft's where it is installed (`make test-core`), and written out as peft's LoRA is.
"""

import copy

import pytest
import torch
from cases import decoder
from torch import nn
from transformers import Trainer, TrainerState, TrainingArguments

from geosd.integrations.anchor import Anchor
from geosd.integrations.callback_state import trained_by_callback
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


def model(adapters="written"):
    whole = decoder(num_hidden_layers=LAYERS)
    if adapters == "peft":
        peft = pytest.importorskip("peft", reason="make test-core runs this where peft is")
        lora = peft.LoraConfig(r=RANK, lora_dropout=0.5, target_modules="all-linear")
        return peft.get_peft_model(whole, lora)
    if adapters == "written":
        whole.requires_grad_(False)
        for parent in list(whole.modules()):
            for name, child in list(parent.named_children()):
                if name in PROJECTIONS:
                    setattr(parent, name, LoraLinear(child))
    return whole


def begun(student, step=0):
    """An anchor at the first step of a training."""
    anchor, state = Anchor(every=2), TrainerState(global_step=step)
    anchor.on_train_begin(None, state, None, model=student)
    anchor.on_step_begin(None, state, None, model=student)
    return anchor


@pytest.mark.parametrize("adapters", ["written", "peft", "none"])
def test_it_computes_what_a_whole_copy_computes_while_the_student_moves_on(adapters):
    student = model(adapters)
    for value in trained_by_callback(student).values():
        nn.init.normal_(value, std=0.3)
    whole, anchor = copy.deepcopy(student).eval(), begun(student)
    copied = sum(each.numel() for each in anchor.weights.values())
    factors = RANK * LAYERS * 232  # the seven projections' rows and columns
    assert copied == (student.num_parameters() if adapters == "none" else factors)
    with torch.no_grad():
        for value in trained_by_callback(student).values():
            value.add_(1.0)
    moved, ids = copy.deepcopy(student.state_dict()), torch.arange(10)[None]
    with torch.no_grad():
        with anchor.within(student):
            assert torch.equal(student(ids).logits, whole(ids).logits)
        assert student.training and not any(each.requires_grad for each in anchor.weights.values())
        for name, value in student.state_dict().items():
            assert torch.equal(value, moved[name])
        assert not torch.allclose(student.eval()(ids).logits, whole(ids).logits, atol=1e-2)


def test_before_a_training_it_is_the_student():
    student, ids = model(), torch.arange(10)[None]
    expected = student.eval()(ids).logits
    with torch.no_grad(), Anchor().within(student.train()):
        assert torch.equal(student(ids).logits, expected)


class Weights(Anchor):
    """Notes at each step whether the anchor has the student's weights."""

    def on_step_begin(self, args, state, *control, model, **others):
        super().on_step_begin(args, state, *control, model=model, **others)
        values = trained_by_callback(model)
        same = all(torch.equal(own, values[name]) for name, own in self.weights.items())
        self.__dict__.setdefault("fresh", []).append(same)


def training(folder, adapters, resume=None):
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(32, (8, 6), generator=draw)
    rows = [{"input_ids": row, "attention_mask": row**0, "labels": row} for row in ids]
    student = model(adapters)
    anchor, kfac = Weights(every=2), KFACCallback(subsample=1.0)
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


@pytest.mark.parametrize("adapters", ["written", "peft"])
def test_a_training_of_adapters_refreshes_saves_and_continues(adapters, tmp_path):
    student, anchor, kfac = training(tmp_path, adapters)
    names = trained_by_callback(student).keys()
    assert len(names) == 2 * 7 * LAYERS and all("lora_" in name for name in names)
    assert {f"{name}.weight" for name in kfac.kfac.layers} == names  # without a selection
    assert anchor.fresh == [True, False, True, False]
    saved = torch.load(tmp_path / "checkpoint-3/anchor.pt", weights_only=True)
    assert saved.keys() == {*names, "of_checkpoint"}  # and no word of the base
    assert len(saved["of_checkpoint"]["weights"]) == len(names)
    start = model(adapters)
    for name, value in student.named_parameters():
        assert torch.equal(value, start.get_parameter(name)) != (name in names)
    checkpoint = str(tmp_path / "checkpoint-3")
    again, anchor_again, _ = training(tmp_path, adapters, resume=checkpoint)
    assert anchor_again.fresh == [False]  # of step 2, not of step 3
    for name, value in trained_by_callback(student).items():
        assert torch.equal(again.get_parameter(name), value), name
        assert torch.equal(anchor_again.weights[name], anchor.weights[name]), name


def test_a_number_of_steps_below_one_is_refused():
    with pytest.raises(ValueError, match="(?s)anchor_every is 0.*Hint: at least 1"):
        Anchor(0)
