"""K-FAC: precondition the gradients of linear layers with a Kronecker-factored empirical Fisher.

For W [O, I] with inputs a and pre-activation gradients delta, F_W ~ A (x) G with A = E[a a^T] and
G = E[delta delta^T]; both are exponential averages, block-diagonal, and damped by sqrt(gamma):

    ~dW = (G + sqrt(gamma) I)^-1 dW (A + sqrt(gamma) I)^-1

Works in any training loop: `preconditioner.step()` before `optimizer.step()`.
Source: the paper, "Kronecker factorization" (app:exp-kfac).

Shapes: B = sequences, T = tokens, O/I = output/input dimensions of a layer, c = blocks of a range,
b = their size.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from geosd.optim.blocks import BlockFactors
from geosd.optim.capture import CapturedBatch, LayerCapture
from geosd.optim.damped_inverse import Inverse, solve_left, solve_right
from geosd.optim.distributed import precondition_distributed, sum_distributed
from geosd.optim.layer_selection import (
    Select,
    block_coverage,
    layer_is_in_block,
    layers_of_shared_input,
    select_layers,
)
from geosd.optim.spectrum import spectrum
from geosd.seeds import seed_of

GATHERED = 2**28
"""Elements of whole inverses that a rank holds at once while it preconditions: 1 GB in float32."""


class KFAC:
    """Preconditioner of the gradients of a model's linear layers.

    Build it after the model is on its device. It adds forward hooks; `close()` takes them off.

    Args:
        model: Any module; by default every linear layer of the transformer blocks is taken, which
            in the paper's families are seven projections, and in others may be fused.
        blocks: Diagonal blocks per factor (the paper's g); see `partition` for uneven dimensions.
        decay: Of the averages, per step, in [0, 1); bias-corrected from zero.
        damping: The paper's gamma, in squared units of the loss gradient; sqrt(gamma) is added to
            each factor, without the pi correction.
        subsample: Share of the positions that enters the factors, the paper's s, in (0, 1].
        inverse_every: Steps between two inversions; the averages are updated in every step.
        per_token: Scale output gradients by the number of terms of the mean loss, so that G is a
            second moment of single tokens' gradients; False takes them as they are backpropagated.
        storage: dtype, or its name, of averages and inverses; bfloat16 halves them. The
            factorisation itself is float32 in any case.
        select: Which linear layers, by full name and module; in place of those of the blocks.
        least_share: Least share of the blocks' trained weights that the layers must hold, in
            [0, 1]. Experts in one tensor of three dimensions, or layers of another class, cannot be
            taken: a model that has such weights is refused, and under a lower share warned of.
            Without effect where `select` is given.
        share_inputs: Keep one A for q, k, v and one for gate, up, which read the same input. Exact;
            False stores one each, as the paper's memory formula counts.
        group: Ranks whose positions are pooled and that share out the blocks, if there are several:
            every rank then calls `step`. Weights and gradients may be sharded by FSDP2 (build K-FAC
            after `fully_shard`): a rank then owns the blocks of the rows that it holds.

    Attributes:
        layers: The linear layers that are preconditioned, by name.
        share: Their share of the blocks' trained weights.
        left_out: The names of the other weights, `*` for a block's number; the optimiser behind
            K-FAC has them alone.

    Raises:
        ValueError: A value is outside its range, nothing is selected, or too little.

    Source: the paper, (app:exp-kfac): an approximation of the Fisher information (fisher-general)
    in its empirical form.

    Example:
        >>> from geosd.optim.kfac import KFAC
        >>> layer = torch.nn.Linear(4, 3)
        >>> kfac = KFAC(layer, blocks=1, subsample=1.0, select=lambda name, module: True)
        >>> loss = layer(torch.ones(2, 4)).square().mean()
        >>> loss.backward()
        >>> kfac.step()  # layer.weight.grad is now the preconditioned gradient
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        blocks: int = 16,
        decay: float = 0.95,
        damping: float = 1e-3,
        subsample: float = 1 / 8,
        inverse_every: int = 1,
        per_token: bool = True,
        storage: torch.dtype | str = torch.float32,
        select: Select = layer_is_in_block,
        least_share: float = 1.0,
        share_inputs: bool = True,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        storage = getattr(torch, storage, storage) if isinstance(storage, str) else storage
        dtypes = (torch.float32, torch.bfloat16, torch.float64)
        for key, value, valid, allowed in (
            ("blocks", blocks, blocks >= 1, "at least 1"),
            ("decay", decay, 0 <= decay < 1, "in [0, 1)"),
            ("damping", damping, damping > 0, "positive"),
            ("subsample", subsample, 0 < subsample <= 1, "in (0, 1]"),
            ("inverse_every", inverse_every, inverse_every >= 1, "at least 1"),
            ("storage", storage, storage in dtypes, "float32, bfloat16 or float64"),
            ("least_share", least_share, 0 <= least_share <= 1, "in [0, 1]"),
        ):
            if not valid:
                raise ValueError(
                    f"K-FAC's {key} is {value}; it must be {allowed}.\nHint: the paper uses blocks"
                    " 16, damping 1e-3 and subsample 0.125."
                )
        self.decay, self.damping, self.subsample = decay, damping, subsample
        self.inverse_every, self.per_token, self.group = inverse_every, per_token, group
        self.steps = self.blocks_in_float64 = 0
        self.layers = select_layers(model, select)
        self.share, self.left_out = block_coverage(model, self.layers)
        if select is layer_is_in_block and self.left_out:
            self._say_what_is_left_out(least_share)
        self._input_owner = {name: name for name in self.layers}
        if share_inputs:
            self._input_owner = layers_of_shared_input(list(self.layers))
        dims: dict[str, int] = {}
        devices: dict[str, torch.device] = {}
        for name, layer in self.layers.items():
            sides = {f"{name}.G": layer.out_features}
            if self._input_owner[name] == name:
                sides[f"{name}.A"] = layer.in_features
            dims |= sides
            devices |= dict.fromkeys(sides, layer.weight.device)
        self.factors = BlockFactors(dims, blocks, storage, devices, group)
        self._observation: CapturedBatch | None = None
        self._unobserved: CapturedBatch | None = None
        self._observed = False  # since the last step
        self._captures: dict[str, LayerCapture] = {}
        for name, layer in self.layers.items():
            self._captures[name] = LayerCapture(
                name,
                layer,
                self._captures.get(self._input_owner[name]),
                self._current,
                partial(self._record, name),
                self.factors.compute,
            )

    def _say_what_is_left_out(self, least_share: float) -> None:
        """Warn of the blocks' weights that K-FAC does not take; ValueError if it takes too few."""
        found = (
            f"K-FAC takes {self.share:.1%} of the weights of the model's layers; left out, to the"
            f" optimiser behind it alone, are {', '.join(self.left_out)}"
        )
        if self.share < least_share:
            raise ValueError(
                f"{found}. least_share asks for {least_share:.1%}.\nHint: K-FAC takes layers of"
                " torch.nn.Linear that read every position. If the others may go without,"
                f" lower least_share ({math.floor(1000 * self.share) / 1000}), in params.yaml"
                " training.optimiser.kfac.least_share."
            )
        warnings.warn(f"{found}.\nHint: least_share={least_share} allows it.", stacklevel=3)

    def _record(self, name: str, input_nI: Tensor | None, delta_nO: Tensor) -> None:
        if input_nI is not None:
            self.factors.add(f"{name}.A", input_nI)
        self.factors.add(f"{name}.G", delta_nO)

    def _current(self) -> CapturedBatch:
        if self._observation is not None:
            return self._observation
        if self._unobserved is None:
            self._unobserved = self._observed_batch(None, 1, 0, None)
        self._unobserved.beside_others = self._observed
        return self._unobserved

    def _observed_batch(
        self,
        mask: Tensor | None,
        loss_terms: float | Tensor,
        seed: int,
        among: tuple[int, int] | None,
    ) -> CapturedBatch:
        terms = loss_terms if self.per_token else 1
        own_seed = seed_of("kfac", seed, self.steps)
        return CapturedBatch(mask, terms, self.subsample, own_seed, among)

    def _end_step(self) -> None:
        self._unobserved, self._observed = None, False

    @contextmanager
    def observe(
        self,
        mask: Tensor | None = None,
        loss_terms: float | Tensor = 1,
        seed: int = 0,
        among: tuple[int, int] | None = None,
    ) -> Iterator[None]:
        """Say what the forward and backward pass inside the context are made of.

        Without it every pass that records gradients counts, at all its positions. With reentrant
        checkpointing backward() must be inside, which raises RuntimeError otherwise: the passes of
        its blocks that record gradients are those of the backward pass. Several passes in
        one step (gradient accumulation) are pooled: the factors are means over all their positions.

        Args:
            mask: [B, T], true at non-padding positions, the prompt's included.
            loss_terms: How many terms the loss is a mean of, in the whole step. A mean over n terms
                makes every delta n times smaller and G n^2 times, far below sqrt(gamma); delta
                times n is the gradient of a token's own loss. Where sequences are weighted each by
                its own length T_b, give B * T_b as a tensor [B].
            seed: Draws the positions, with the number of steps taken; one for each pass, unless
                `among`.
            among: (how many counted positions of the step come before this pass, how many the step
                has): passes of one seed then draw together what a single pass over all would.
        """
        outer = self._observation
        self._observation = self._observed_batch(mask, loss_terms, seed, among)
        self._observed = True
        try:
            yield
        finally:
            self._observation = outer

    def parameters(self) -> list[nn.Parameter]:
        """The parameters whose gradients `step` replaces: trained weights and biases."""
        parameters = []
        for layer in self.layers.values():
            for parameter in (layer.weight, layer.bias):
                if parameter is not None and parameter.requires_grad:
                    parameters.append(parameter)
        return parameters

    @torch.no_grad()
    def step(self) -> None:
        """Update the factors and replace the gradients of the layers by the preconditioned ones.

        ~dW = (G + sqrt(gamma) I)^-1 dW (A + sqrt(gamma) I)^-1, the paper's update (app:exp-kfac). A
        bias has the input 1: ~db = (G + sqrt(gamma) I)^-1 db / (1 + sqrt(gamma)).

        Raises:
            RuntimeError: A layer has a gradient, but no backward pass through it was ever recorded.
            FloatingPointError: An input or a gradient was not finite; nothing has been changed.
            torch.linalg.LinAlgError: A factor is no covariance, and not by rounding; averages and
                gradients are as they were.
        """
        if self.group is not None:
            sum_distributed(self.factors, self.group)
        for name, layer in self.layers.items():
            seen = self.factors.counts[f"{name}.G"] or self.factors.updates[f"{name}.G"]
            if layer.weight.grad is not None and not seen:
                raise RuntimeError(
                    f"{name} has a gradient, but no position of it was recorded.\nHint: build KFAC"
                    " before the forward pass, and let the mask hold at least one position; a layer"
                    " that the model reads without calling it is left out by select."
                )
        shift = math.sqrt(self.damping)
        due = self.steps % self.inverse_every == 0
        self.blocks_in_float64 = self.factors.update(self.decay, shift if due else None)
        self.steps += 1
        self._end_step()
        inverse_a: Inverse = []

        def solve_weight(inverse_g: Inverse, rows_OI: Tensor) -> Tensor:
            return solve_right(inverse_a, solve_left(inverse_g, rows_OI))

        def solve_bias(inverse_g: Inverse, rows_O: Tensor) -> Tensor:
            return solve_left(inverse_g, rows_O[:, None])[:, 0] / (1 + shift)

        inverses_of_inputs = self._inverses_of_inputs()
        input_owner = None
        for name, layer in self.layers.items():
            if layer.weight.grad is not None:
                if input_owner != self._input_owner[name]:  # layers of one input follow each other
                    input_owner, inverse_a = next(inverses_of_inputs)
                precondition_distributed(layer.weight.grad, f"{name}.G", self.factors, solve_weight)
            if layer.bias is not None and layer.bias.grad is not None:
                precondition_distributed(layer.bias.grad, f"{name}.G", self.factors, solve_bias)

    def _inverses_of_inputs(self) -> Iterator[tuple[str, Inverse]]:
        """The whole inverse of each factor A that this step needs, in the order of the layers.

        They come from all ranks in groups of at most `GATHERED` elements, with one collective a
        group for each size of blocks, and not one for each factor.
        """
        owners: list[str] = []
        for name, layer in self.layers.items():
            owner = self._input_owner[name]
            if layer.weight.grad is not None and owners[-1:] != [owner]:
                owners.append(owner)
        for group in self._groups(owners):
            inverses = self.factors.full_inverses([f"{owner}.A" for owner in group])
            for owner in group:
                yield owner, inverses.pop(f"{owner}.A")

    def _groups(self, owners: Sequence[str]) -> Iterator[list[str]]:
        """Consecutive factors A whose inverses are held at once; alone, one after the other."""
        most = GATHERED if self.group is not None else 0
        group: list[str] = []
        elements = 0
        for owner in owners:
            more = self.factors.whole_elements(f"{owner}.A")
            if group and (elements + more > most or owner in group):
                yield group
                group, elements = [], 0
            group.append(owner)
            elements += more
        if group:
            yield group

    def skip(self) -> None:
        """Forget what the passes since the last step recorded: the factors stay as they are."""
        self.factors.discard()
        self._end_step()

    def spectrum(self) -> dict[str, float]:
        """Mean and largest eigenvalue of A and G over all blocks, and sqrt(gamma), added to each.

        The largest are by power iteration, from below, of the bias-corrected averages.
        """
        return spectrum(self.factors, self.decay) | {"sqrt_damping": math.sqrt(self.damping)}

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on; see `BlockFactors.state_dict`."""
        return {"steps": self.steps, "factors": self.factors.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, bit for bit; raises as `BlockFactors.load_state_dict`."""
        self.factors.load_state_dict(state["factors"])
        self.steps = int(state["steps"])
        self._end_step()

    def close(self) -> None:
        """Take the hooks off the model."""
        for capture in self._captures.values():
            capture.handle.remove()
