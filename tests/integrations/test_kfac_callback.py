"""K-FAC as a callback of transformers' Trainer, against K-FAC in a loop written out."""

import warnings
from types import SimpleNamespace

import pytest
import torch
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from cases import decoder
from transformers import Trainer, TrainingArguments

from geosd.integrations.kfac_callback import (
    KFACCallback,
    check_kfac_parallel,
    kfac_callback_microbatches,
    kfac_callback_positions,
)
from geosd.optim.kfac import KFAC

RATE = 0.05
SETTINGS = {"blocks": 2, "subsample": 1.0}
LENGTHS = [(9, 6), (7, 3), (8, 2), (6, 4), (9, 1), (5, 3)]  # tokens of a row, those of the loss


def model():
    return decoder(vocab_size=32)


@pytest.fixture(scope="module")
def rows():
    """Padded examples, the first tokens of each outside of the loss."""
    draw = torch.Generator().manual_seed(0)
    examples = []
    for length, counted in LENGTHS:
        ids = torch.zeros(9, dtype=torch.long)
        ids[:length] = torch.randint(1, 32, (length,), generator=draw)
        labels = torch.full_like(ids, -100)
        labels[length - counted : length] = ids[length - counted : length]
        mask = (torch.arange(9) < length).long()
        examples.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return examples


def trainer(rows, folder, callback, cls=Trainer, trained=None, **arguments):
    """A Trainer of plain gradient steps."""
    chosen = dict(
        per_device_train_batch_size=2,
        gradient_accumulation_steps=3,
        max_steps=1,
        max_grad_norm=0,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        optim="sgd",
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        seed=3,
    )
    args = TrainingArguments(str(folder), **{**chosen, **arguments})
    return cls(trained or model(), args, train_dataset=rows, callbacks=[callback])


def one_pass(trained, rows):
    """K-FAC and the gradients of the mean loss over all tokens, in one pass over all rows."""
    kfac = KFAC(trained, **SETTINGS)
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    labels = batch.pop("labels")[:, 1:]
    with kfac.observe(batch["attention_mask"], loss_terms=(labels != -100).sum()):
        logits = trained(**batch).logits[:, :-1]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
    kfac.step()
    return kfac


def weights(trained):
    return {name: value.detach().clone() for name, value in trained.named_parameters()}


class MeanOfMicrobatches(Trainer):
    """A trainer whose loss is the mean of each microbatch, whatever the others hold."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return model(**inputs).loss

    loss_is_scaled_for_ga = False


def test_factors_and_step_are_those_of_one_pass_over_the_whole_step(rows, tmp_path):
    callback = KFACCallback(**SETTINGS)
    hf_trainer = trainer(rows, tmp_path, callback)
    hf_trainer.train()
    alone = model()
    kfac = one_pass(alone, rows)
    averages = callback.kfac.state_dict()["factors"]["averages"]
    for reference, average in zip(kfac.state_dict()["factors"]["averages"], averages, strict=True):
        torch.testing.assert_close(average, reference, rtol=1e-4, atol=1e-9)
    sizes = kfac.spectrum()
    assert sizes["g_mean"] > 0.01 * sizes["sqrt_damping"]  # G acts
    with torch.no_grad():
        for parameter in alone.parameters():
            parameter -= RATE * parameter.grad
    for (name, value), expected in zip(
        hf_trainer.model.named_parameters(), alone.parameters(), strict=True
    ):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6, msg=name)


def test_a_mean_of_microbatch_means_is_counted_by_the_microbatches(rows, tmp_path):
    equal = [{**rows[0], "input_ids": row["input_ids"].clamp(min=1)} for row in rows]
    for row in equal:
        row["labels"] = row["input_ids"].clone()
    whole, apart = KFACCallback(**SETTINGS), KFACCallback(**SETTINGS)
    trainer(equal, tmp_path, whole).train()
    trainer(equal, tmp_path, apart, MeanOfMicrobatches).train()
    for whole_average, apart_average in zip(
        whole.kfac.state_dict()["factors"]["averages"],
        apart.kfac.state_dict()["factors"]["averages"],
        strict=True,
    ):
        torch.testing.assert_close(whole_average, apart_average, rtol=1e-4, atol=1e-9)


def test_a_training_continued_from_a_checkpoint_has_the_same_bits(rows, tmp_path):
    settings = dict(max_steps=3, save_strategy="steps", save_steps=2, optim="adamw_torch")
    sampled = {**SETTINGS, "subsample": 0.4}
    whole = trainer(rows, tmp_path, KFACCallback(**sampled), **settings)
    whole.train()
    again = KFACCallback(**sampled)
    resumed = trainer(rows, tmp_path, again, **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.kfac.steps == 3
    for name, value in weights(resumed.model).items():
        assert torch.equal(value, whole.model.get_parameter(name)), name


@pytest.mark.slow
def test_the_factors_of_a_checkpoint_are_used(rows, tmp_path):
    settings = dict(max_steps=3, save_strategy="steps", save_steps=2)
    whole = trainer(rows, tmp_path, KFACCallback(**SETTINGS), **settings)
    whole.train()
    path = tmp_path / "checkpoint-2/kfac.pt"
    saved = torch.load(path, weights_only=True)
    for average in saved["factors"]["averages"]:
        average *= 4
    torch.save(saved, path)
    resumed = trainer(rows, tmp_path, KFACCallback(**SETTINGS), **settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    projection = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(
        resumed.model.get_parameter(projection), whole.model.get_parameter(projection)
    )


@pytest.mark.slow
def test_a_checkpoint_without_or_with_another_models_factors_is_refused(rows, tmp_path):
    settings = dict(max_steps=2, save_strategy="steps", save_steps=1)
    trainer(rows, tmp_path, KFACCallback(**SETTINGS), **settings).train()
    first, second = (tmp_path / f"checkpoint-{step}" for step in (1, 2))

    def resume():
        resumed = trainer(rows, tmp_path, KFACCallback(**SETTINGS), **{**settings, "max_steps": 3})
        resumed.train(resume_from_checkpoint=str(second))

    (second / "kfac.pt").write_bytes((first / "kfac.pt").read_bytes())
    with pytest.raises(ValueError, match="(?s)saved with other weights.*Hint:"):
        resume()
    (second / "kfac.pt").unlink()
    with pytest.raises(FileNotFoundError, match="(?s)kfac.pt: the training continues.*Hint:"):
        resume()


@pytest.mark.slow
def test_a_checkpoint_elsewhere_is_found_by_the_arguments(rows, tmp_path):
    settings = dict(max_steps=2, save_strategy="steps", save_steps=1)
    trainer(rows, tmp_path / "one", KFACCallback(**SETTINGS), **settings).train()
    first = str(tmp_path / "one/checkpoint-1")
    callback = KFACCallback(**SETTINGS)
    resumed = trainer(rows, tmp_path / "two", callback, resume_from_checkpoint=first, **settings)
    resumed.train(resume_from_checkpoint=first)
    assert callback.kfac.steps == 2


def test_clipping_before_kfac_is_refused_and_it_is_the_default(rows, tmp_path):
    assert TrainingArguments(str(tmp_path), use_cpu=True).max_grad_norm == 1.0
    with pytest.raises(ValueError, match="(?s)max_grad_norm is 1.0.*Hint: set max_grad_norm=0"):
        trainer(rows, tmp_path, KFACCallback(), max_grad_norm=1.0).train()


@pytest.mark.parametrize(("kind", "name"), [("FSDP", "FSDP1"), ("DEEPSPEED", "DEEPSPEED")])
def test_fsdp1_and_deepspeed_are_refused_by_name(rows, tmp_path, monkeypatch, kind, name):
    args = trainer(rows, tmp_path, KFACCallback()).args
    version = SimpleNamespace(fsdp_version=1)
    for shared in (PartialState._shared_state, AcceleratorState._shared_state):
        monkeypatch.setitem(shared, "distributed_type", DistributedType[kind])
    monkeypatch.setitem(shared, "fsdp_plugin", version)
    with pytest.raises(ValueError, match=f"(?s){name}: GeoSD reads .*Hint: .*by FSDP2"):
        check_kfac_parallel(args)
    version.fsdp_version = 2
    if kind == "FSDP":
        check_kfac_parallel(args)


def test_a_g_far_below_the_damping_is_warned_of_once_and_a_right_one_never(rows, tmp_path):
    class Small(Trainer):
        def compute_loss(self, *args, **kwargs):
            return 1e-4 * super().compute_loss(*args, **kwargs)

    with pytest.warns(UserWarning, match="(?s)far below sqrt.gamma..*Hint:") as caught:
        trainer(rows, tmp_path, KFACCallback(**SETTINGS), Small, max_steps=2).train()
    assert len([each for each in caught if "sqrt(gamma)" in str(each.message)]) == 1
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="K-FAC's G")
        trainer(rows, tmp_path, KFACCallback(**SETTINGS), max_steps=2).train()


def test_a_trainer_whose_loss_is_outside_of_the_model_must_say_what_it_is(rows, tmp_path):
    class Outside(Trainer):
        observed = False

        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            labels = inputs.pop("labels")[:, 1:]
            if self.observed:
                microbatches = self.current_gradient_accumulation_steps
                terms = (labels != -100).sum() * microbatches
                self.kfac.observe(inputs["attention_mask"], terms)
            logits = model(**inputs).logits[:, :-1]
            mean = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            return mean / self.current_gradient_accumulation_steps

        loss_is_scaled_for_ga = True

    class Parts(Outside):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            return model.model(input_ids=inputs["input_ids"]).last_hidden_state.square().mean()

    with pytest.raises(ValueError, match="(?s)called with input_ids, attention_mask.*Hint:.*obs"):
        trainer(rows, tmp_path, KFACCallback(**SETTINGS), Outside).train()
    with pytest.raises(RuntimeError, match="(?s)called parts of the model.*Hint:.*observe"):
        trainer(rows, tmp_path, KFACCallback(**SETTINGS), Parts).train()
    equal = [rows[0]] * 6
    whole, by_observe = KFACCallback(**SETTINGS), KFACCallback(**SETTINGS)
    trainer(equal, tmp_path, whole).train()
    outside = trainer(equal, tmp_path, by_observe, Outside)
    outside.observed, outside.kfac = True, by_observe
    outside.train()
    for whole_average, observed_average in zip(
        whole.kfac.state_dict()["factors"]["averages"],
        by_observe.kfac.state_dict()["factors"]["averages"],
        strict=True,
    ):
        torch.testing.assert_close(whole_average, observed_average, rtol=1e-4, atol=1e-9)


def test_the_log_has_the_state_of_kfac(rows, tmp_path):
    callback = KFACCallback(**SETTINGS)
    run = trainer(rows, tmp_path, callback, max_steps=2, logging_strategy="steps", logging_steps=1)
    run.train()
    kept = {f"geosd/kfac_{name}": size for name, size in callback.kfac.spectrum().items()}
    first, second, _ = run.state.log_history
    assert kept.items() <= second.items() and first.keys() == second.keys()
    assert first["geosd/kfac_g_max"] != second["geosd/kfac_g_max"] > 0


def test_the_model_has_no_hook_left_after_the_training(rows, tmp_path):
    trained = model()
    trainer(rows, tmp_path, KFACCallback(**SETTINGS), trained=trained).train()
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in trained.modules())


def test_positions_of_the_loss():
    labels = torch.tensor([[-100, -100, 5, 6, -100], [7, 8, -100, -100, -100]])
    assert kfac_callback_positions({"labels": labels}).tolist() == [
        2,
        1,
    ]  # the first predicts nothing
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    assert kfac_callback_positions({"labels": labels, "attention_mask": mask}).tolist() == [1, 1]
    padded = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]])  # prompts of 2 columns
    assert kfac_callback_positions({"logits_to_keep": 4, "attention_mask": padded}).tolist() == [
        2,
        3,
    ]


@pytest.mark.parametrize(
    ("batches", "accumulation", "expected"),
    [(6, 3, [3, 3, 3]), (7, 3, [3, 3, 1, 3, 3, 1]), (2, 4, [2, 2]), (None, 4, [4, 4])],
)
def test_the_last_step_of_an_epoch_has_fewer_microbatches(batches, accumulation, expected):
    counted = [kfac_callback_microbatches(s, batches, accumulation) for s in range(len(expected))]
    assert counted == expected
