"""Inside vLLM's workers: weights arrive in shared buffers or in files, at any parallelism.

vLLM's own backends need CUDA, unpickle what they are sent, and do not look for parameters that no
update had. This one is put into vLLM's registry when a worker imports the module, which
`worker_extension_cls` makes every worker do before it builds its engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

from geosd.sampling.shared_buffers import Handle, buffer_device_name, open_shared
from geosd.sampling.weight_delivery import unpacked_weights

BACKEND = "geosd"
"""Name of the transfer in vLLM's registry."""


@dataclass
class _NoHandshake(WeightTransferInitInfo):
    """The exchange of trainer and vLLM before the first transfer: none."""


@dataclass
class _WeightsPart(WeightTransferUpdateInfo):
    """Some of the new weights: in a safetensors file, or in a shared buffer on each device.

    `path` is on a disk that the worker reads. `handles` are those of the buffer by device, which
    holds the weights `names` of the given shapes and `dtype`, one after the other.
    """

    path: str = ""
    names: list[str] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)
    dtype: str = ""
    handles: dict[str, Handle] = field(default_factory=dict)


class CheckedWeightTransfer(WeightTransferEngine[_NoHandshake, _WeightsPart]):
    """Replaces a vLLM worker's weights by others that come in parts.

    An update that leaves some parameter with its old values is an error.
    """

    init_info_cls, update_info_cls = _NoHandshake, _WeightsPart

    def init_transfer_engine(self, init_info: _NoHandshake) -> None:
        """Nothing to prepare."""

    def start_weight_update(self) -> None:
        """Make the layers ready to be loaded; what they hold is kept until a layer is complete."""
        # Before: while layers are reloaded, a tied head counts as a parameter of its own.
        self.missing = {name for name, _ in self.model.named_parameters()}
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict) -> None:
        """Load one part."""
        self.receive_weights(self.parse_update_info(update_info))
        if not current_platform.is_cpu():  # the base class's version waits on a CPU in vain
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: _WeightsPart) -> None:
        """Load one part into the layers that its weights belong to."""
        if update_info.path:
            weights = load_file(Path(update_info.path))
        else:
            weights = _shared_weights(update_info, self.device)
        self.missing -= self.model.load_weights(iter(weights.items()))

    def finish_weight_update(self) -> None:
        """Put the new weights in place of the old.

        Raises:
            RuntimeError: Some parameters were in no part: vLLM itself would go on with their old
                values and only log it.
        """
        finalize_layerwise_reload(self.model, self.model_config)
        _repack_tied_head(self.model)
        if self.missing:
            raise RuntimeError(
                f"{len(self.missing)} parameters were not in the update, the first"
                f" {min(self.missing)}; they keep their old values.\nHint: the weights sent must be"
                " all of a model of the architecture that the engine was started on."
            )

    def shutdown(self) -> None:
        """Nothing to release."""


def _shared_weights(part: _WeightsPart, device: torch.device) -> dict[str, torch.Tensor]:
    """The weights of a shared buffer, copied: vLLM may load a layer later, when it is complete.

    Raises:
        RuntimeError: None of the processes that share the weights is on this worker's device.
    """
    buffer = open_shared(_own_handle(part.handles, device), device, getattr(torch, part.dtype))
    copy = buffer.clone()
    return unpacked_weights(part.names, part.shapes, copy)


def _own_handle(handles: Mapping[str, Handle], device: torch.device) -> Handle:
    """The handle of the buffer on a worker's own device; RuntimeError if there is none."""
    name = buffer_device_name(device)
    if name not in handles:
        raise RuntimeError(
            f"no process that shares weights is on the device {name} of this worker of vLLM; they"
            f" are on {', '.join(handles)}.\nHint: a training's processes and vLLM's must see the"
            " same devices in the same order; look at CUDA_VISIBLE_DEVICES."
        )
    return handles[name]


def _repack_tied_head(model: torch.nn.Module) -> bool:
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

    def opens_shared(self, handles: dict[str, Handle]) -> bool:
        """Whether this worker can open the buffer that is shared on its device; one of bytes."""
        device = self.model_runner.device
        try:
            open_shared(_own_handle(handles, device), device, torch.uint8)
        except RuntimeError:
            return False
        return True

    def attention_backends(self) -> list[str]:
        """Names of the attention kernels that the worker uses."""
        groups = [group for groups in self.model_runner.attn_groups for group in groups]
        return sorted({group.backend.get_name() for group in groups})


if BACKEND not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine(BACKEND, CheckedWeightTransfer)
