"""The mean over a step's tokens in GeoSDTrainer, whatever the step's microbatches."""

import pytest
import torch

pytest.importorskip("trl", reason="make test-core runs this where TRL is")

from datasets import Dataset
from transformers import TrainerCallback
from trl.experimental.sdft import SDFTConfig

from geosd.integrations.trl import GeoSDLoss, GeoSDTrainer, KFACCallback

LENGTHS = {"a": 3, "b": 14, "c": 1, "d": 9}
WIDTH = max(LENGTHS.values())
CUTS = [(4, 1), (2, 2), (1, 4)]


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "benchmarks"))
        for name in ("HF_HUB_OFFLINE", "TRL_EXPERIMENTAL_SILENCE"):
            patch.setenv(name, "1")
        import synthetic

        yield synthetic.save(synthetic.SHAPES["tiny"], tmp_path_factory.mktemp("base") / "model")


class Uneven(GeoSDTrainer):
    """Responses of known tokens and lengths, by the letter of the problem."""

    def compute_loss(self, model, inputs, *args, **kwargs):
        prompts = self.processing_class.batch_decode(inputs["prompt_ids"])
        for row, prompt in enumerate(prompts):
            letter = prompt.partition("letter ")[2][0]
            draw = torch.Generator().manual_seed(ord(letter))
            tokens = torch.randint(10, 100, (WIDTH,), generator=draw)
            counted = (torch.arange(WIDTH) < LENGTHS[letter]).int()
            inputs["completion_ids"][row], inputs["completion_mask"][row] = tokens, counted
            inputs["teacher_input_ids"][row, -WIDTH:] = tokens
            inputs["teacher_attention_mask"][row, -WIDTH:] = counted
        return super().compute_loss(model, inputs, *args, **kwargs)


class Gradients(TrainerCallback):
    """What the optimiser would have taken, at each step."""

    def __init__(self):
        self.seen = []

    def on_pre_optimizer_step(self, *args, model, **kwargs):
        grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        self.seen.append(torch.cat(grads).clone())


def trained(folder, out, size, parts, steps=1, kfac=None, norm=0.0, mean="token"):
    """Gradients of the steps, and the log."""
    rows = [
        {"prompt": [{"role": "user", "content": f"letter {letter}"}], "solution": f"It is {letter}"}
        for letter in LENGTHS
    ]
    args = SDFTConfig(
        str(out),
        bf16=False,
        use_cpu=True,
        per_device_train_batch_size=size,
        gradient_accumulation_steps=parts,
        max_steps=steps,
        num_generations=1,
        learning_rate=0.0,
        max_completion_length=WIDTH,
        generation_kwargs={"min_new_tokens": WIDTH},
        teacher_model_kind="live",
        max_grad_norm=norm,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )
    looks = Gradients()
    trainer = Uneven(
        str(folder),
        args,
        loss=GeoSDLoss(20, loss_mean=mean),
        privileged_column="solution",
        train_dataset=Dataset.from_list(rows),
        callbacks=[*([kfac] if kfac else []), looks],
    )
    trainer.train()
    return looks.seen, trainer.state.log_history


def test_gradient_and_log_are_those_of_one_pass_over_the_step(folder, tmp_path):
    (whole, *again), (log, *_) = trained(folder, tmp_path, *CUTS[0], steps=2)
    torch.testing.assert_close(again, [whole])
    for size, parts in CUTS[1:]:
        seen, (cut, *_) = trained(folder, tmp_path, size, parts, steps=2)
        for gradient in seen:
            assert (gradient - whole).norm() < 1e-5 * whole.norm()
        for name in ("loss", "geosd/loss", "geosd/distil"):
            assert cut[name] == pytest.approx(log[name], rel=1e-4), name
        assert cut["loss"] == pytest.approx(cut["geosd/loss"], rel=1e-4)
    by_sequence, _ = trained(folder, tmp_path, *CUTS[0], mean="sequence")
    assert (by_sequence[0] - whole).norm() > 0.1 * whole.norm()


def test_gradients_are_clipped_after_they_are_a_mean(folder, tmp_path):
    for size, parts in CUTS:
        (gradient,), (log, *_) = trained(folder, tmp_path, size, parts, norm=1e-4)
        assert gradient.norm() == pytest.approx(1e-4, rel=1e-3)
        if parts == 1:
            norm = log["grad_norm"]
        assert log["grad_norm"] == pytest.approx(norm, rel=1e-4)


def test_kfac_of_a_step_does_not_know_its_microbatches(folder, tmp_path):
    results = []
    for size, parts in CUTS:
        kfac = KFACCallback(blocks=2, subsample=1.0)
        (gradient,), _ = trained(folder, tmp_path, size, parts, kfac=kfac)
        results.append((gradient, kfac.kfac.state_dict()["factors"]["averages"]))
    (whole, averages), *others = results
    for gradient, cut in others:
        assert (gradient - whole).norm() < 1e-4 * whole.norm()
        for expected, average in zip(averages, cut, strict=True):
            torch.testing.assert_close(average, expected, rtol=1e-3, atol=1e-8)
