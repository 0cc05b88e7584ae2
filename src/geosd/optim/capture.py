"""Record the inputs and the output gradients of linear layers during a backward pass.

A plain forward hook sees the input twice under activation checkpointing, and would keep it alive.
Here the layer's output passes through an identity, `_Probe`, that saves the input for its backward
just as the layer itself does. That backward runs once per counted call, with the output gradient at
hand, and autograd gives it the input: from memory, or recomputed where it was checkpointed.

Reentrant checkpointing is another matter: its forward pass has no gradients, and the calls that
count are those of its backward pass. They are of the observation that is open at that time.

Shapes: B = sequences, T = tokens, N = positions (B * T), n = drawn positions, I/O = in/out dims.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.module_tracker import ModuleTracker

from geosd.seeds import seed_of

# (rows of the input [n, I] or None, rows of the scaled output gradient [n, O])
Record = Callable[[Tensor | None, Tensor], None]
PASSES = ModuleTracker()
"""Says whether a backward pass is under way; it need not be entered for that."""


class CapturedBatch:
    """Positions of a pass whose inputs and output gradients K-FAC captures, and their scale.

    For `mask` and `among` see `KFAC.observe`. A number, [B] or [B, T] of `loss_terms` is a factor
    on the output gradients; the share `fraction`, in (0, 1], of the counted positions is drawn, at
    least one, by `seed`.

    Source: the paper, "Kronecker factorization" (app:exp-kfac): a 1/8 token subsample.
    """

    def __init__(
        self,
        mask: Tensor | None,
        loss_terms: float | Tensor,
        fraction: float,
        seed: int,
        among: tuple[int, int] | None = None,
    ) -> None:
        self.mask = None if mask is None else mask.detach().bool()
        self.fraction, self.seed, self.among = fraction, seed, among
        self.scale = loss_terms
        if isinstance(loss_terms, Tensor) and loss_terms.dim():
            if self.mask is None or self.mask.shape[: loss_terms.dim()] != loss_terms.shape:
                raise ValueError(
                    f"loss_terms has shape {tuple(loss_terms.shape)}, the mask"
                    f" {None if self.mask is None else tuple(self.mask.shape)}.\n"
                    "Hint: loss_terms is a number, or [B] or [B, T] beside a mask [B, T]."
                )
            terms = loss_terms.detach().reshape(
                *loss_terms.shape, *[1] * (self.mask.dim() - loss_terms.dim())
            )
            self.scale = terms.expand(self.mask.shape).flatten()
        self.beside_others = False  # whether it is of a step that has observations of its own
        self._without_gradients: Counter[str] = Counter()
        self._calls: dict[str, int] = {}
        self._drawn: dict[tuple[int, int, torch.device], Tensor | None] = {}

    def check(self, name: str, lead: torch.Size) -> None:
        """Refuse a layer's input whose leading dimensions do not have the mask's positions."""
        if self.mask is not None and self.mask.numel() != math.prod(lead):
            raise ValueError(
                f"{name} was called on {tuple(lead)} positions, the mask has"
                f" {tuple(self.mask.shape)}.\nHint: pass observe() the mask of this very batch;"
                " layers that see only some positions (experts) cannot be selected."
            )

    def called_without_gradients(self, name: str) -> None:
        """Count a call of a layer that autograd does not see; a checkpoint may repeat it later."""
        self._without_gradients[name] += 1

    def check_repeated(self, name: str) -> None:
        """Refuse a call that a reentrant checkpoint repeats, if this pass did not begin it."""
        self._without_gradients[name] -= 1
        if self.beside_others or self._without_gradients[name] < 0:
            raise RuntimeError(
                f"{name} was called again in the backward pass by reentrant checkpointing, outside"
                " of the observe() of its forward pass: mask and loss_terms are lost.\nHint: call"
                " backward() inside observe(), before the next pass begins, or checkpoint with"
                " use_reentrant=False (gradient_checkpointing_enable({'use_reentrant': False}))."
            )

    def positions(self, name: str, lead: torch.Size, device: torch.device) -> Tensor | None:
        """The positions drawn for this call of layer `name`; None stands for all of them.

        They are sorted indices [n] into the leading dimensions of the layer's input, flattened, the
        same for layers that are called equally often, which may share their input.
        """
        total = math.prod(lead)
        call = self._calls[name] = self._calls.get(name, -1) + 1
        key = (call, total, device)
        if key not in self._drawn:
            self._drawn[key] = self._draw(call, total, device)
        return self._drawn[key]

    def _draw(self, call: int, total: int, device: torch.device) -> Tensor | None:
        if self.mask is not None:
            allowed = self.mask.flatten().nonzero().flatten().cpu()
        elif self.fraction == 1:
            return None
        else:
            allowed = torch.arange(total)
        if self.fraction < 1 and len(allowed):
            first, among = self.among or (0, len(allowed))
            # On the CPU, so that every kind of device draws the same positions.
            generator = torch.Generator().manual_seed(seed_of("kfac positions", self.seed, call))
            keep = max(1, round(self.fraction * among))
            drawn = torch.randperm(among, generator=generator)[:keep].sort().values - first
            allowed = allowed[drawn[(drawn >= 0) & (drawn < len(allowed))]]
        return allowed.to(device)

    def rows(self, value: Tensor, positions: Tensor | None) -> Tensor:
        """The drawn rows [n, D] of a tensor [B, T, D]."""
        rows = value.reshape(-1, value.shape[-1])
        return rows if positions is None else rows.index_select(0, positions)

    def times_loss_terms(
        self, delta_nO: Tensor, positions: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """The output gradients times the number of loss terms, in the covariances' dtype."""
        scale = self.scale
        if isinstance(scale, Tensor) and scale.dim():
            scale = scale.to(delta_nO.device, dtype)
            scale = (scale if positions is None else scale.index_select(0, positions))[:, None]
        return delta_nO.to(dtype) * scale


class _Probe(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, record: Callable, inputs: Tensor | None) -> Tensor:
        ctx.record = record
        ctx.save_for_backward(inputs)
        # The same tensor, not a view of it: later in-place operations on the output stay allowed.
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, delta: Tensor) -> tuple[Tensor, None, None]:
        (inputs,) = ctx.saved_tensors
        with torch.no_grad():
            ctx.record(inputs, delta)
        return delta, None, None


class LayerCapture:
    """Captures a linear layer's inputs and output gradients in a backward pass, for K-FAC.

    `input_owner` captures the input which both layers read, None if this one does; `current` gives
    the observation under way; `record` takes the drawn rows, the output gradients as `dtype`.
    """

    def __init__(
        self,
        name: str,
        module: nn.Linear,
        input_owner: LayerCapture | None,
        current: Callable[[], CapturedBatch],
        record: Record,
        dtype: torch.dtype,
    ) -> None:
        self.name, self.input_owner, self.dtype = name, input_owner, dtype
        self.current, self.record = current, record
        self._seen: tuple[int, torch.Size] | None = None
        owner = weakref.ref(module)

        def hook(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor | None:
            # A deep copy of the model (a frozen teacher) carries the hook along: not ours.
            # Under no_grad no output requires a gradient.
            if module is not owner():
                return None
            if not output.requires_grad:
                self.current().called_without_gradients(self.name)
                return None
            return self._probe(args[0], output)

        self.handle = module.register_forward_hook(hook)

    def _probe(self, inputs: Tensor, output: Tensor) -> Tensor:
        # By memory, not by object: other hooks may hand each layer a view of its own.
        self._seen = (inputs.data_ptr(), inputs.shape)
        if self.input_owner is not None and self.input_owner._seen != self._seen:
            raise ValueError(
                f"{self.name} was called on another input than {self.input_owner.name}, but their"
                " names say that they share it.\nHint: KFAC(..., share_inputs=False)."
            )
        observation = self.current()
        observation.check(self.name, inputs.shape[:-1])
        # Within a backward pass only checkpoints call a layer. Those that are not reentrant throw
        # the repeated calls away, and `record` is not reached.
        repeated = PASSES.is_bw

        def record(inputs: Tensor | None, delta: Tensor) -> None:
            if repeated:
                observation.check_repeated(self.name)
            lead = delta.shape[:-1]
            positions = observation.positions(self.name, lead, delta.device)
            rows = None if inputs is None else observation.rows(inputs, positions)
            delta = observation.rows(delta, positions)
            self.record(rows, observation.times_loss_terms(delta, positions, self.dtype))

        return _Probe.apply(output, record, None if self.input_owner else inputs)
