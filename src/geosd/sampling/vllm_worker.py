"""Inside vLLM's workers: weights arrive as safetensors files, on any device, at any parallelism.

vLLM's own weight-transfer backends need CUDA. This one is put into its registry when a worker
imports the module, which `worker_extension_cls` makes every worker do before it builds its engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.model_loader.reload import (
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)
from vllm.platforms import current_platform

BACKEND = "geosd_files"
"""Name of the file transfer in vLLM's registry."""


@dataclass
class NoHandshake(WeightTransferInitInfo):
    """The exchange of trainer and vLLM before the first transfer of files: none."""


@dataclass
class WeightFilePath(WeightTransferUpdateInfo):
    """Path of a safetensors file with some of the new weights, on a disk that the worker reads."""

    path: str = ""


class SafetensorsWeightTransfer(WeightTransferEngine[NoHandshake, WeightFilePath]):
    """Replaces a vLLM worker's weights by those of safetensors files, a few tensors a file.

    An update that leaves some parameter with its old values is an error.
    """

    init_info_cls, update_info_cls = NoHandshake, WeightFilePath

    def init_transfer_engine(self, init_info: NoHandshake) -> None:
        """Nothing to prepare."""

    def start_weight_update(self) -> None:
        """Make the layers ready to be loaded; what they hold is kept until a layer is complete."""
        # Before: while layers are reloaded, a tied head counts as a parameter of its own.
        self.missing = {name for name, _ in self.model.named_parameters()}
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict) -> None:
        """Load one file."""
        self.receive_weights(self.parse_update_info(update_info))
        if not current_platform.is_cpu():  # the base class's version waits on a CPU in vain
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: WeightFilePath) -> None:
        """Load one file into the layers that its weights belong to."""
        self.missing -= self.model.load_weights(iter(load_file(Path(update_info.path)).items()))

    def finish_weight_update(self) -> None:
        """Put the new weights in place of the old.

        Raises:
            RuntimeError: Some parameters were in no file: vLLM itself would go on with their old
                values and only log it.
        """
        finalize_layerwise_reload(self.model, self.model_config)
        repack_tied_head(self.model)
        if self.missing:
            raise RuntimeError(
                f"{len(self.missing)} parameters were not in the update, the first"
                f" {min(self.missing)}; they keep their old values.\nHint: the weights sent must be"
                " all of a model of the architecture that the engine was started on."
            )

    def shutdown(self) -> None:
        """Nothing to release."""


def repack_tied_head(model: torch.nn.Module) -> bool:
    """Give a tied output head the embedding's new weights; returns whether there was such a head.

    On a CPU vLLM packs a head into its kernel's layout and multiplies by the packed copy. A reload
    packs anew only layers that had weights loaded, and those of a tied head go by the embedding's
    name: without this the engine goes on with the head of the model it was started on.
    """
    head = getattr(model, "lm_head", None)
    embedding = getattr(getattr(model, "model", None), "embed_tokens", None)
    if head is None or embedding is None or head is embedding:
        return False
    if head.weight.data_ptr() != embedding.weight.data_ptr():
        return False
    head.quant_method.process_weights_after_loading(head)
    return True


class WorkerExtension:
    """Methods that vLLM adds to each of its workers; its name makes a worker import this module."""

    def attention_backends(self) -> list[str]:
        """Names of the attention kernels that the worker uses."""
        groups = [group for groups in self.model_runner.attn_groups for group in groups]
        return sorted({group.backend.get_name() for group in groups})


if BACKEND not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine(BACKEND, SafetensorsWeightTransfer)
