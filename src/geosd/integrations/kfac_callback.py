"""K-FAC before the optimiser of a transformers Trainer, as a callback.

    trainer = SFTTrainer(..., args=SFTConfig(max_grad_norm=0), callbacks=[KFACCallback()])

B = sequences, T = tokens.
"""

import math
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
import torch.distributed as dist
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_utils import has_length

from geosd.integrations.callback_state import load_callback_state, save_callback_state
from geosd.integrations.lost_updates import check_updates_move
from geosd.objectives.reduce import LossMean, mean_loss_terms
from geosd.optim.kfac import KFAC
from geosd.seeds import seed_of

FILE = "kfac.pt"

# Of sqrt(gamma). In GeoSD with the right number of terms G's largest eigenvalue lies at 1e-3 to
# 1 of it (docs/reading.md, "The update"); gradients of a mean loss as they are leave 1e-7.
NEGLIGIBLE = 1e-4
SPECTRUM_EVERY = 100

PARALLEL = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)


class KFACCallback(TrainerCallback):
    """Preconditions the gradients before every step of the trainer's optimiser.

    G is a second moment of the gradients of single tokens' losses, so K-FAC has to know how many
    terms the loss is a mean of (`KFAC.observe`). The callback counts them at each call of the model
    with gradients, from `labels`, or from `logits_to_keep` as TRL's trainers give it, and
    multiplies by the microbatches of the step. A trainer that knows better calls `observe`.

    The log gets K-FAC's state: `geosd/kfac_a_mean` and so on, the values of `KFAC.spectrum`, in
    `log_history` and for the callbacks that come after this one.

    Its state is the file `kfac.pt` of each checkpoint. A training that continues from a checkpoint
    has the same bits as one that was never stopped.

    Args:
        loss_mean: What the trainer's loss is a mean over: "token" (Trainer, SFTTrainer) or
            "sequence" (SDFTTrainer). Without effect where the trainer calls `observe`.
        settings: Keyword arguments of `KFAC`; the defaults are the paper's values, and its layers
            are those of each block, or the matrices of LoRA in them where these train.

    Raises:
        ValueError: At the start of the training: the arguments clip gradients, or train in fp16 or
            in parallel by other means than DDP and FSDP2; the weights are of a precision in which
            the optimiser's updates are lost (`lost_updates`); or K-FAC refuses the model's layers.

    Source: the paper, "Kronecker factorization" (app:exp-kfac).
    """

    def __init__(self, loss_mean: LossMean = "token", **settings: Any) -> None:
        self.loss_mean, self.settings = loss_mean, settings
        self.kfac: KFAC | None = None
        self._closing = ExitStack()

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        *control: Any,
        model: nn.Module,
        train_dataloader: DataLoader | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        **others: Any,
    ) -> None:
        """Hook the model, and continue from a checkpoint's state."""
        _check_arguments(args)
        check_updates_move(model, optimizer)
        self._closing.close()
        group = dist.group.WORLD if args.world_size > 1 else None
        self.kfac = KFAC(model, **{"group": group, **self.settings})
        self._closing.callback(self.kfac.close)
        hook = model.register_forward_pre_hook(self._before_forward, with_kwargs=True)
        self._closing.callback(hook.remove)
        self._pass = self._closing.enter_context(ExitStack())
        self._args, self._state = args, state
        self._batches = len(train_dataloader) if has_length(train_dataloader) else None
        self._trainer_observes = self._warned = False
        if state.global_step:
            self.kfac.load_state_dict(load_callback_state(args, state, FILE, model))

    def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
        """Begin to count the passes of a step."""
        self._passes = 0

    def observe(self, mask: Tensor | None, terms: float | Tensor) -> None:
        """Say what the coming pass through the model is made of, in place of the callback.

        For mask [B, T] and terms see `KFAC.observe`; the terms are those of the whole step.
        """
        self._trainer_observes = True
        self._observe(mask, terms)

    def _observe(self, mask: Tensor | None, terms: float | Tensor) -> None:
        # Until the next pass or the step's end: a pass may be computed again in its backward pass.
        self._pass.close()
        seed = seed_of("curvature", self._args.seed, self._args.process_index, self._passes)
        self._pass.enter_context(self.kfac.observe(mask, terms, seed))
        self._passes += 1

    def _before_forward(
        self, model: nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        if self._trainer_observes or not (model.training and torch.is_grad_enabled()):
            return
        mask, args = named.get("attention_mask"), self._args
        if (items := named.get("num_items_in_batch")) is not None:
            terms = items / (args.world_size if args.average_tokens_across_devices else 1)
        else:
            step, accumulation = self._state.global_step, args.gradient_accumulation_steps
            microbatches = kfac_callback_microbatches(step, self._batches, accumulation)
            terms = mean_loss_terms(kfac_callback_positions(named), self.loss_mean) * microbatches
            if mask is None:  # one row without padding, or several
                mask = torch.ones_like(named["labels"], dtype=torch.bool)
        self._observe(mask, terms)

    def on_substep_end(self, *args: Any, **kwargs: Any) -> None:
        """End a microbatch's observation."""
        self._pass.close()

    def on_pre_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        """Replace the gradients by the preconditioned ones; RuntimeError if no pass was seen."""
        self._pass.close()
        if not self._passes:
            raise RuntimeError(
                "KFACCallback: the trainer called parts of the model in place of the model, so that"
                " nothing says how many terms the loss has.\nHint: let the trainer call observe()"
                " of the callback before its pass."
            )
        self.kfac.step()
        if self._warned or (self.kfac.steps - 1) % SPECTRUM_EVERY:
            return
        sizes = self.kfac.spectrum()
        if sizes["g_max"] < NEGLIGIBLE * sizes["sqrt_damping"]:
            self._warned = True
            warnings.warn(
                f"K-FAC's G has mean {sizes['g_mean']:.1e} and largest eigenvalue"
                f" {sizes['g_max']:.1e}, far below sqrt(gamma) = {sizes['sqrt_damping']:.1e}: A"
                " alone shapes the step.\nHint: loss_mean must be what the trainer's loss is a mean"
                " over; with a loss this small lower the damping.",
                stacklevel=2,
            )

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        *_: Any,
        logs: dict[str, float],
        **__: Any,
    ) -> None:
        """Add K-FAC's state to what is logged."""
        if self.kfac is not None and self.kfac.steps:
            sizes = {f"geosd/kfac_{name}": size for name, size in self.kfac.spectrum().items()}
            logs |= sizes
            state.log_history[-1] |= sizes

    def on_save(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Write K-FAC's state into the checkpoint."""
        save_callback_state(args, state, FILE, self.kfac.state_dict(), model)

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        """Take the hooks off the model."""
        self._closing.close()


def _check_arguments(args: TrainingArguments) -> None:
    """Refuse, by ValueError, what would clip, scale or hide what K-FAC reads."""
    if args.max_grad_norm:
        raise ValueError(
            f"max_grad_norm is {args.max_grad_norm}: the Trainer clips gradients before K-FAC sees"
            " them, and K-FAC undoes most of it.\nHint: set max_grad_norm=0 (the default of"
            " TrainingArguments is 1.0); the damping bounds K-FAC's step."
        )
    if AcceleratorState().mixed_precision == "fp16":
        raise ValueError(
            "fp16 scales the loss by a factor that K-FAC does not know.\nHint: set bf16=True in"
            " place of fp16=True."
        )
    check_kfac_parallel(args)


def check_kfac_parallel(args: TrainingArguments) -> None:
    """Refuse, by ValueError, several devices by other means than DDP and FSDP2."""
    parallel = AcceleratorState()
    kind = parallel.distributed_type
    if args.n_gpu > 1 or not (kind in PARALLEL or parallel.is_fsdp2):
        name = {"FSDP": "FSDP1", "NO": "DataParallel"}.get(kind.value, kind.value)
        raise ValueError(
            f"{name}: GeoSD reads weights and gradients by layer; DeepSpeed and FSDP1 keep them"
            " in buffers of their own.\nHint: start one process a device, with whole copies (DDP:"
            ' torchrun) or shards by FSDP2 (fsdp=True, fsdp_config={"version": 2} of the arguments,'
            " or fsdp_version: 2 of accelerate)."
        )


def kfac_callback_positions(named: Mapping[str, Any]) -> Tensor:
    """How many tokens of each sequence the loss counts, [B], from a model's named arguments.

    They are `labels` [B, T], -100 where the loss does not count, or `logits_to_keep`, the length of
    padded responses plus one, with `attention_mask` [B, T]; ValueError without either.
    """
    labels, keep, mask = (named.get(n) for n in ("labels", "logits_to_keep", "attention_mask"))
    if labels is not None:
        counted = labels[:, 1:] != -100
        return (counted if mask is None else counted & mask[:, 1:].bool()).sum(1)
    if isinstance(keep, int) and keep > 1 and mask is not None:
        return mask[:, 1 - keep :].sum(1)
    raise ValueError(
        f"KFACCallback cannot tell what the loss is a mean of: the model was called with"
        f" {', '.join(named) or 'no named arguments'}, without labels and logits_to_keep.\nHint:"
        " let the trainer call observe() of the callback before its pass."
    )


def kfac_callback_microbatches(step: int, batches: int | None, accumulation: int) -> int:
    """Microbatches of an optimiser step, from 0, in epochs of `batches`; the last may have fewer.

    Example:
        >>> [kfac_callback_microbatches(step, batches=5, accumulation=2) for step in range(4)]
        [2, 2, 1, 2]
    """
    if batches is None:
        return accumulation
    steps = max(1, math.ceil(batches / accumulation))
    return accumulation if (step + 1) % steps else batches - (steps - 1) * accumulation
