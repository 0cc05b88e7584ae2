"""From gradients to a step: one rule per training run, and the warm-up of its learning rate.

Four rules: AdamW (the baselines); K-FAC before AdamW (`inner="adamw"`: the preconditioned gradient
takes the place of the gradient); K-FAC alone (`inner="plain"`: the paper's natural-gradient formula
for the projections, AdamW for all other tensors); Muon for the projections, AdamW for all others.
"""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn

from geosd.optim.dtensors import DTensorSquaredNorm, local_shard, read_dtensor_norms
from geosd.optim.kfac import KFAC
from geosd.optim.muon import Muon

RULES = ("adamw", "kfac", "muon")
INNER_RULES = ("adamw", "plain")


def warmup(step: int, steps: int) -> float:
    """Warm-up factor on the learning rate of a step, from 0: min(1, (step + 1) / steps).

    The first step already moves, and step `steps - 1` is the first at the full rate; 0 steps turn
    the warm-up off.

    Raises:
        ValueError: `step` or `steps` is negative.

    Source: the paper's table of hyperparameters (tab:hparams), "20-step warmup"; its shape is not
    given.

    Example:
        >>> [warmup(step, 4) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """
    if step < 0 or steps < 0:
        raise ValueError(
            f"step={step} and steps={steps} must not be negative.\nHint: steps count from 0."
        )
    return 1.0 if steps == 0 else min(1.0, (step + 1) / steps)


class UpdateRule:
    """Update rule: turns gradients into a step by AdamW, K-FAC with or without it, or Muon.

    Args:
        model: Its parameters that require a gradient are trained.
        rule: "adamw"; "kfac" for K-FAC, the `preconditioner`, before the inner rule; or "muon" for
            `Muon` on the matrices that K-FAC would take, and AdamW on all other parameters.
        inner: What follows K-FAC: "adamw" for all parameters, or "plain" gradient steps for the
            preconditioned ones and AdamW for the others. Without effect under other rules.
        betas: Of AdamW (the paper's table of hyperparameters: .9, .95).
        weight_decay: Decoupled, for all parameters (the paper gives none: 0).
        kfac: Keyword arguments of `KFAC`; None takes its defaults, the paper's values.

    Raises:
        ValueError: A rule or an argument of K-FAC is unknown or outside its range, or Muon cannot
            take the model's matrices.

    Source: the paper, equations (nat-grad) and (app-checkpoint-pullback), the table of
    hyperparameters, and "Kronecker factorization" (app:exp-kfac).
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        rule: Literal["adamw", "kfac", "muon"] = "adamw",
        inner: Literal["adamw", "plain"] = "adamw",
        betas: tuple[float, float] = (0.9, 0.95),
        weight_decay: float = 0.0,
        kfac: Mapping[str, Any] | None = None,
    ) -> None:
        for key, value, allowed in (("rule", rule, RULES), ("inner", inner, INNER_RULES)):
            if value not in allowed:
                raise ValueError(f"{key} is {value!r}.\nHint: allowed are {', '.join(allowed)}.")
        self.model, self.weight_decay = model, weight_decay
        self.preconditioner: KFAC | None = None
        if rule == "kfac":
            try:
                self.preconditioner = KFAC(model, **(kfac or {}))
            except TypeError as error:
                settings = ", ".join(KFAC.__init__.__kwdefaults__ or ())
                raise ValueError(f"K-FAC: {error}.\nHint: allowed are {settings}.") from error
        self.plain: list[torch.nn.Parameter] = []
        if self.preconditioner is not None and inner == "plain":
            self.plain = self.preconditioner.parameters()
        self.muon = Muon(model, weight_decay) if rule == "muon" else None
        matrices = self.muon.matrices.values() if self.muon is not None else []
        taken = {id(p) for p in (*self.plain, *matrices)}
        rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
        self.adam: torch.optim.AdamW | None = None
        if rest:
            # One kernel per tensor in place of ten: a third of the time on a CPU. The rate is each
            # step's own.
            self.adam = torch.optim.AdamW(rest, betas=betas, weight_decay=weight_decay, fused=True)
        self._lr = 0.0
        self._plain_squared: Tensor | None = None
        self._adam_steps: dict[nn.Parameter, int] = {}
        """Steps that AdamW took of each parameter; its own count lies on the parameter's device."""

    def observe(self, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
        """Around forward and backward: see `KFAC.observe`. Does nothing without K-FAC."""
        if self.preconditioner is None:
            return nullcontext()
        return self.preconditioner.observe(*args, **kwargs)

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Take one step with the gradients in place, at a learning rate for all parameters."""
        self._lr = lr
        if self.preconditioner is not None:
            self.preconditioner.step()
        self._plain_squared = None
        for parameter in self.plain:
            if parameter.grad is None:
                continue
            change = parameter.grad.to(parameter.dtype)
            square = local_shard(change).norm().square()
            if self._plain_squared is not None:
                square = self._plain_squared + square
            self._plain_squared = square
            if self.weight_decay:
                change = change + self.weight_decay * parameter
            parameter.sub_(change, alpha=lr)
        if self.muon is not None:
            self.muon.step(lr)
        if self.adam is not None:
            for group in self.adam.param_groups:
                group["lr"] = lr
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._adam_steps[parameter] = self._adam_steps.get(parameter, 0) + 1
            self.adam.step()

    def skip(self) -> None:
        """End a step without an update: weights, moments and factors stay as they are."""
        self.zero_grad()
        if self.preconditioner is not None:
            self.preconditioner.skip()

    @torch.no_grad()
    def relative_step(self) -> float:
        """||delta theta|| / ||theta|| of the last step, without decay; AdamW's from its moments.

        With m and v its moments after t steps, and beta_1, beta_2 their decays, AdamW moves a
        weight by lr m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + eps).
        """
        moved, weights = DTensorSquaredNorm(), DTensorSquaredNorm()
        if self._plain_squared is not None:
            moved.add_square(self._plain_squared * self._lr**2, self.plain[0])
        for parameter in self.plain:
            weights.add(parameter)
        if self.muon is not None:
            self.muon.add_norms(moved, weights)
        if self.adam is not None:
            self._add_adam_norms(self.adam, moved, weights)
        moved_squared, weights_squared = read_dtensor_norms(moved, weights)
        return math.sqrt(moved_squared / weights_squared) if weights_squared else 0.0

    def _add_adam_norms(
        self, adam: torch.optim.AdamW, moved: DTensorSquaredNorm, weights: DTensorSquaredNorm
    ) -> None:
        for group in adam.param_groups:
            for parameter in group["params"]:
                weights.add(parameter)
                state = adam.state.get(parameter)
                if not state:
                    continue
                taken = self._adam_steps[parameter]
                first, second = (1 - beta**taken for beta in group["betas"])
                root = state["exp_avg_sq"].sqrt().add_(group["eps"] * math.sqrt(second))
                size = group["lr"] * math.sqrt(second) / first
                moved.add(torch.div(state["exp_avg"], root, out=root), size**2)

    @property
    def blocks_in_float64(self) -> int:
        """Blocks of K-FAC's factors for which float32 was too coarse at the last inversion."""
        return 0 if self.preconditioner is None else self.preconditioner.blocks_in_float64

    def zero_grad(self) -> None:
        """Drop the gradients of every trained parameter."""
        for parameter in self.plain:
            parameter.grad = None
        if self.muon is not None:
            self.muon.zero_grad()
        if self.adam is not None:
            self.adam.zero_grad(set_to_none=True)

    def spectrum(self) -> dict[str, float]:
        """See `KFAC.spectrum`; empty without K-FAC."""
        return {} if self.preconditioner is None else self.preconditioner.spectrum()

    def state_dict(self) -> dict[str, Any]:
        """Tensors (not copied) and plain numbers; `torch.load(weights_only=True)` reads it back.

        Of sharded parameters every rank calls this; the state is full on the first rank, as on one
        alone.
        """
        adam: dict[str, Any] | None = None if self.adam is None else {"state": {}}
        if self.adam is not None and self.adam.state:  # torch would take a step to have a state
            from torch.distributed.checkpoint import state_dict  # not at the import of the core

            full = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
            adam = state_dict.get_optimizer_state_dict(self.model, self.adam, options=full)
        kfac = None if self.preconditioner is None else self.preconditioner.state_dict()
        muon = {} if self.muon is None else {"muon": self.muon.state_dict()}
        return {"adam": adam, "kfac": kfac, **muon}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, bit for bit; ValueError if it is of another rule."""
        parts = (("adam", self.adam), ("kfac", self.preconditioner), ("muon", self.muon))
        for part, own in parts:
            if (state.get(part) is None) != (own is None):
                raise ValueError(
                    f"the saved optimiser state {'lacks' if own else 'has'} {part}, this rule does"
                    " not.\nHint: resume with the rule that wrote the state."
                )
        if self.adam is not None:
            self._load_adam_state(self.adam, state["adam"])
        if self.preconditioner is not None:
            self.preconditioner.load_state_dict(state["kfac"])
        if self.muon is not None:
            self.muon.load_state_dict(state["muon"])

    def _load_adam_state(self, adam: torch.optim.AdamW, state: Mapping[str, Any]) -> None:
        from torch.distributed.checkpoint import state_dict

        if state["state"]:
            full = state_dict.StateDictOptions(full_state_dict=True)
            state_dict.set_optimizer_state_dict(self.model, adam, dict(state), options=full)
        # torch gives every parameter a state; one that never had a gradient must not have any.
        for name, parameter in self.model.named_parameters():
            if name not in state["state"]:
                adam.state.pop(parameter, None)
        self._adam_steps = {
            parameter: int(of_parameter["step"])
            for parameter, of_parameter in adam.state.items()
            if of_parameter
        }
