"""A decode step whose linear layers read copies of their weights that oneDNN has packed.

A product of few rows is bound by reading the weights, and oneDNN's kernel for few rows reads them
faster in an order of its own; how much faster, benchmarks/decoding.py measures. The copies are made
for one batch of responses, of the weights as they are then, and go with it: no batch reads those of
another one. The last bits of the logits differ from those of the eager step.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from geosd.models.output_head import HALF
from geosd.sampling.decoding.decode_step import EagerStep
from geosd.sampling.decoding.kv_cache import KeyValueCache

PROCESSORS = ("x86_64", "AMD64")
"""Where oneDNN's packed layers have been tried."""

_Forward = Callable[[Tensor], Tensor]


class PackedStep(EagerStep):
    """`EagerStep`, but that linear layers on a CPU read packed copies of their weights.

    Attributes:
        bytes: Memory of the copies, beyond the weights themselves.
    """

    def __init__(self, model: nn.Module, rows: int) -> None:
        """Pack the weights that the model has now, for batches of about `rows` rows."""
        super().__init__(model)
        self._forwards: list[tuple[nn.Linear, _Forward]] = []
        self.bytes = 0
        head = getattr(model, "lm_head", None)
        with torch.no_grad():
            for module in model.modules():
                if type(module) is nn.Linear:
                    weight = module.weight.detach()
                    # As in `output_head`: logits are float32 where all else is half precision.
                    if module is head and weight.dtype in HALF:
                        weight = weight.float()
                    self._pack(module, weight, rows)
        self.record = {"kind": "packed", "bytes": self.bytes}

    def _pack(self, module: nn.Linear, weight: Tensor, rows: int) -> None:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        self.bytes += packed.numel() * packed.element_size()
        product = torch.ops.mkldnn._linear_pointwise
        bias, dtype = module.bias, weight.dtype
        wide_bias = None if bias is None else bias.detach().to(dtype)

        def forward(x: Tensor) -> Tensor:
            # In float32 one row is faster as it is: a product of a matrix and a vector.
            if dtype == torch.float32 == x.dtype and x.numel() == x.shape[-1]:
                return linear(x, module.weight, bias)
            return product(x.to(dtype).contiguous(), packed, wide_bias, "none", [], "")

        self._forwards.append((module, forward))

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """See `DecodeStep`."""
        with self._in_place():
            return super().__call__(ids_B, cache)

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Inside, the linear layers compute with the packed copies."""
        before = [vars(module).get("forward") for module, _ in self._forwards]
        for module, forward in self._forwards:
            module.forward = forward
        try:
            yield
        finally:
            for (module, _), own in zip(self._forwards, before, strict=True):
                if own is None:
                    del module.forward
                else:
                    module.forward = own


def can_pack_step(model: nn.Module) -> bool:
    """Whether a model's linear layers can be packed here, as they are now.

    They can in float32 and, where oneDNN multiplies it, in bfloat16, as whole tensors on a CPU of
    `PROCESSORS`, and not under autocast.
    """
    if platform.machine() not in PROCESSORS or not torch.backends.mkldnn.is_available():
        return False
    if torch.is_autocast_enabled("cpu"):
        return False
    types = {torch.float32}
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        types.add(torch.bfloat16)
    weights = [module.weight for module in model.modules() if type(module) is nn.Linear]
    return bool(weights) and all(
        type(weight.data) is Tensor and weight.device.type == "cpu" and weight.dtype in types
        for weight in weights
    )
