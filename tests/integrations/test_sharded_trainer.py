"""GeoSD over TRL's trainer with the weights in shards (FSDP2) of two processes, against one.

Run as a program, this file is what each of the two processes does.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

pytest.importorskip("trl", reason="make test-core runs this where TRL is")

from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from cases import launch
from datasets import Dataset
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
)
from transformers import AutoModelForCausalLM
from trl.experimental.sdft import SDFTConfig

from geosd.integrations.trl import GeoSDLoss, GeoSDTrainer, KFACCallback

IMPORTED = ("geosd.integrations.geosd_trainer", "transformers.models.qwen3.modeling_qwen3")
ROWS = [{"prompt": f"{i}+{i}?", "solution": f"{i} and {i} make {2 * i}."} for i in range(8)]
CASES = {  # without FSDP2 first: what is said below of a process stays said
    "token, whole copies": {"model": "tied", "loss_mean": "token", "sharded": False},
    "live": {"model": "untied"},
    "base": {"model": "tied", "teacher_model_kind": "base"},
    "token": {"model": "tied", "loss_mean": "token"},
    "lora": {"model": "tied", "lora": True},
}
if not find_spec("peft"):
    del CASES["lora"]
CONTINUED = [case for case in CASES if case in ("live", "lora")]


class Recording(GeoSDTrainer):
    """Keeps the mean of the losses of each microbatch over the processes."""

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.__dict__.setdefault("losses", []).append(
            self.accelerator.reduce(loss.detach(), "mean")
        )
        return loss


def trained(
    folder,
    out,
    processes,
    model,
    resume=None,
    lora=False,
    loss_mean="sequence",
    sharded=True,
    **changed,
):
    """Losses of three steps, or of those after a checkpoint, and the weights at their end."""
    chosen = dict(
        bf16=False,
        use_cpu=True,
        per_device_train_batch_size=4 // processes,
        gradient_accumulation_steps=2,
        max_steps=3,
        max_completion_length=12,
        num_generations=1,
        teacher_model_kind="live",
        top_k=1,
        max_grad_norm=0,
        learning_rate=0.1,
        lr_scheduler_type="constant",
        optim="adamw_torch",
        adam_epsilon=1.0,  # a small one makes directions of the rounding of small gradients
        report_to=[],
        save_strategy="no",
        save_steps=1,
        disable_tqdm=True,
        seed=1,
    )
    if processes > 1:
        chosen["ddp_backend"] = "gloo"
        if sharded:
            chosen |= dict(fsdp=True, fsdp_config={"version": 2})
    others = {}
    if lora:
        from peft import LoraConfig

        others["peft_config"] = LoraConfig(
            r=4, target_modules="all-linear", init_lora_weights=False
        )
    model = AutoModelForCausalLM.from_pretrained(folder / model, dtype=torch.float32)
    model.generation_config.eos_token_id = [*range(0, model.config.vocab_size, 7)]
    trainer = Recording(
        model,
        SDFTConfig(str(out), **{**chosen, **changed}),
        loss=GeoSDLoss(20, loss_mean=loss_mean, chunk=7),
        anchor_every=2,
        privileged_column="solution",
        train_dataset=Dataset.from_list(ROWS),
        callbacks=[KFACCallback(blocks=2, subsample=1.0)],
        **others,
    )
    trainer.train(resume_from_checkpoint=resume and str(resume))
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(trainer.model, options=whole)
    if lora:
        weights = {name: value for name, value in weights.items() if "lora" in name}
    return torch.stack(trainer.losses).view(-1, 2).sum(1), weights


def allow_fsdp_without_devices():
    """accelerate shards on accelerators alone; its own state says that these processes shard."""
    init = AcceleratorState.__init__

    def with_fsdp(self, *args, fsdp_plugin=None, **kwargs):
        init(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if fsdp_plugin is not None:
            self.fsdp_plugin, self.distributed_type = fsdp_plugin, DistributedType.FSDP
            PartialState._shared_state["distributed_type"] = DistributedType.FSDP

    AcceleratorState.__init__ = with_fsdp


def program(folder):
    allow_fsdp_without_devices()
    torch.set_num_threads(1)
    for case, changed in CASES.items():
        out = folder / case
        results = [*trained(folder, out, 2, save_strategy="steps", **changed)]
        if case in CONTINUED:
            results += trained(folder, out, 2, resume=out / "checkpoint-1", **changed)
        if os.environ["RANK"] == "0":
            torch.save(results, folder / f"{case}.pt")


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "benchmarks"))
        import synthetic

        folder = tmp_path_factory.mktemp("sharded")
        synthetic.save(synthetic.SHAPES["tiny"], folder / "tied")
        shutil.copytree(folder / "tied", folder / "untied")
        model = AutoModelForCausalLM.from_pretrained(folder / "tied")
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(1.1 * model.lm_head.weight.detach())
        model.save_pretrained(folder / "untied")
        for name in ("HF_HUB_OFFLINE", "TRL_EXPERIMENTAL_SILENCE"):
            patch.setenv(name, "1")
        launch(__file__, folder, timeout=1500, imported=IMPORTED)
        yield folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_with_half_the_weights_each_train_as_one(folder, case, tmp_path):
    losses, weights, *_ = torch.load(folder / f"{case}.pt")
    assert ("lm_head.weight" in weights) == (case != "lora")
    alone_losses, alone = trained(folder, tmp_path, 1, **CASES[case])
    torch.testing.assert_close(losses, alone_losses, rtol=1e-5, atol=1e-5)
    assert losses[-1] > 1e-4
    torch.testing.assert_close(weights, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("case", CONTINUED)
def test_a_sharded_training_that_continues_has_the_same_bits(folder, case):
    losses, weights, last_losses, again = torch.load(folder / f"{case}.pt")
    assert torch.equal(last_losses, losses[1:])
    assert all(torch.equal(value, again[name]) for name, value in weights.items())


if __name__ == "__main__":
    program(Path(sys.argv[1]))
