r"""GeoSD's pull as a distillation loss of verl 0.9, for its FSDP engines.

    VERL_USE_EXTERNAL_MODULES=geosd.integrations.verl python -m verl.trainer.main_ppo ... \
      distillation.enabled=True distillation.distillation_loss.loss_mode=hellinger_topk \
      distillation.distillation_loss.use_policy_gradient=False \
      distillation.distillation_loss.use_task_rewards=False \
      actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean

verl imports this module in each of its processes, and the module registers the loss. The loss lacks
what verl does not give:

- The teacher server returns the teacher's own top K tokens alone. All other tokens are one outcome
  here; the paper takes the union of the models' top K.
- Nothing returns a checkpoint's distribution, so there is no proximal term.
- The teacher reads the student's prompt. Privileged context is the agent loop's to add.
- The student's logits have the engine's precision: in bfloat16 they are rounded. With no proximal
  term no distance is taken to a distribution so near that this decides it.

N = positions of a packed batch, V = vocabulary, K = tokens that the teacher server returns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from verl.trainer.distillation import losses
from verl.utils.ulysses import get_ulysses_sequence_parallel_world_size, slice_input_tensor

from geosd.geometry import hellinger
from geosd.geometry.lumping import add_others, lump

LOSS_MODE = "hellinger_topk"
STRATEGIES = ("fsdp", "fsdp2", "veomni")
"""verl's engines that hold whole rows of logits."""
CHUNK = 512
"""Positions whose lumped logits are held at once."""


def hellinger_topk(
    student_logits: Tensor, teacher_log_probs: Tensor, teacher_ids: Tensor
) -> dict[str, Tensor]:
    """D_H(p, q) at each position, on the teacher's top K tokens and one outcome for all others.

    p = student, q = teacher. verl takes the mean by its own `loss_agg_mode`.

    Args:
        student_logits: [1, N, V]. Takes the gradient.
        teacher_log_probs: [1, N, K] of the teacher's full softmax.
        teacher_ids: [1, N, K], their tokens.

    Returns:
        "distillation_losses", and without gradient "student_mass" and "teacher_mass", the
        probability of the K tokens: each [1, N].
    """
    parts = zip(
        *(each[0].split(CHUNK) for each in (student_logits, teacher_log_probs, teacher_ids)),
        strict=True,
    )
    columns = zip(
        *(checkpoint(_of_chunk, *part, use_reentrant=False) for part in parts), strict=True
    )
    names = ("distillation_losses", "student_mass", "teacher_mass")
    return {name: torch.cat(each)[None] for name, each in zip(names, columns, strict=True)}


def _of_chunk(logits: Tensor, log_q: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    log_p, log_q = lump(logits, ids.long()), add_others(log_q)
    masses = (1 - each[..., -1].detach().exp() for each in (log_p, log_q))
    return hellinger(log_p, log_q), *masses


def _compute_topk_loss(
    config: Any, distillation_config: Any, data: Any, student_logits: Tensor, data_format: str
) -> dict[str, Tensor]:
    """Losses by this module or by verl; ValueError if an engine splits the rows of logits."""
    if distillation_config.distillation_loss.loss_mode != LOSS_MODE:
        return _OF_VERL(config, distillation_config, data, student_logits, data_format)
    if config.strategy not in STRATEGIES:
        raise ValueError(
            f"loss_mode {LOSS_MODE}: strategy is {config.strategy!r}; allowed are"
            f" {', '.join(STRATEGIES)}.\nHint: others hold a part of the vocabulary a rank."
        )
    teacher = [data[name].values()[None] for name in ("teacher_logprobs", "teacher_ids")]
    if get_ulysses_sequence_parallel_world_size() > 1:
        teacher = [slice_input_tensor(each, dim=1) for each in teacher]
    return hellinger_topk(student_logits, *teacher)


_OF_VERL = losses.compute_topk_loss
if LOSS_MODE not in losses.DISTILLATION_LOSS_REGISTRY:
    # Its second step, from positions to metrics and responses, is the same for every divergence.
    losses.register_distillation_loss(
        losses.DistillationLossSettings(names=[LOSS_MODE], use_topk=True)
    )(losses.compute_forward_kl_topk)
    losses.compute_topk_loss = _compute_topk_loss
