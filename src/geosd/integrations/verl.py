r"""GeoSD's losses among the distillation losses of verl 0.9, for its FSDP engines.

    VERL_USE_EXTERNAL_MODULES=geosd.integrations.verl python -m verl.trainer.main_ppo ... \
      distillation.enabled=True distillation.distillation_loss.loss_mode=hellinger_topk \
      distillation.distillation_loss.use_policy_gradient=False \
      distillation.distillation_loss.use_task_rewards=False \
      actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean

verl imports this module in each of its processes, and the module registers the losses.
`hellinger_topk` is the pull alone, to any teacher server of verl. `geosd_topk` is GeoSD's loss,
with the privileged teacher and the anchor of `geosd.integrations.verl_teachers`, whose head has the
options. What verl does not allow:

- A server returns its model's own top K tokens alone. So each term has its own tokens, the
  teacher's or the anchor's, and one outcome for all others; the paper takes the union of the
  models' top K. Lumping never raises a divergence.
- The student's logits have the engine's precision: in bfloat16 they are rounded, and the anchor's
  come from another engine. Both count as drift (docs/method.md says how much).
- verl's engines step their optimisers themselves, so there is no K-FAC.

`seq-mean-token-mean` is the paper's mean, and `token-mean`, verl's default, is not. verl divides a
microbatch's sum over responses by `global_batch_size`, the responses of the whole mini-batch on all
ranks, and adds the microbatches up, so that the loss does not depend on how a mini-batch is cut. A
batch without that number is refused: the means of its microbatches would be added. A response
without a token counts in that number. The metrics are means over the tokens of a microbatch.

N = positions of a packed batch, V = vocabulary, K = tokens that a server returns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from verl.trainer.distillation import losses
from verl.utils.ulysses import get_ulysses_sequence_parallel_world_size, slice_input_tensor

from geosd.geometry import fisher_rao_squared, hellinger
from geosd.geometry.lumping import append_lump, lump

PULL, GEOSD = LOSS_MODES = ("hellinger_topk", "geosd_topk")
STRATEGIES = ("fsdp", "fsdp2", "veomni")
"""verl's engines that hold whole rows of logits."""
CHUNK = 512
"""Positions whose lumped logits are held at once."""


def _lumped_loss(
    student_logits: Tensor, log_probs: Tensor, ids: Tensor, drift_penalty: float | None = None
) -> dict[str, Tensor]:
    """D_H(p, q) + lambda d_FR^2(p, anchor) at each position, each on the other model's top K.

    p = student, q = teacher. verl takes the mean by its own `loss_agg_mode`.

    Args:
        student_logits: [1, N, V]. Takes the gradient.
        log_probs: [1, N, K] of the teacher's full softmax; with the second term [1, N, 2 K], the
            anchor's behind the teacher's.
        ids: Their tokens.
        drift_penalty: lambda; None leaves the second term and the anchor out.

    Returns:
        "distillation_losses", and without gradient "student_mass" and "teacher_mass", the
        probability of the teacher's K tokens, and "prox", the second term without lambda: each
        [1, N].
    """
    parts = zip(*(each[0].split(CHUNK) for each in (student_logits, log_probs, ids)), strict=True)
    chunks = [checkpoint(_of_chunk, drift_penalty, *part, use_reentrant=False) for part in parts]
    return {name: torch.cat([each[name] for each in chunks])[None] for name in chunks[0]}


def _of_chunk(
    drift_penalty: float | None, logits: Tensor, log_probs: Tensor, ids: Tensor
) -> dict[str, Tensor]:
    models = 1 if drift_penalty is None else 2
    pairs = zip(ids.long().chunk(models, -1), log_probs.chunk(models, -1), strict=True)
    (log_p, log_q), *anchor = [(lump(logits, own), append_lump(known)) for own, known in pairs]
    values = {"distillation_losses": hellinger(log_p, log_q)}
    for name, each in (("student_mass", log_p), ("teacher_mass", log_q)):
        values[name] = 1 - each[..., -1].detach().exp()
    for log_p_there, log_anchor in anchor:
        prox = fisher_rao_squared(log_p_there, log_anchor)
        values["distillation_losses"] = values["distillation_losses"] + drift_penalty * prox
        values["prox"] = prox.detach()
    return values


def _compute_topk_loss(
    config: Any, distillation_config: Any, data: Any, student_logits: Tensor, data_format: str
) -> dict[str, Tensor]:
    """Losses by this module or by verl; ValueError if an engine splits the rows of logits."""
    mode = distillation_config.distillation_loss.loss_mode
    if mode not in LOSS_MODES:
        return _OF_VERL(config, distillation_config, data, student_logits, data_format)
    if config.strategy not in STRATEGIES:
        raise ValueError(
            f"loss_mode {mode}: strategy is {config.strategy!r}; allowed are"
            f" {', '.join(STRATEGIES)}.\nHint: others hold a part of the vocabulary a rank."
        )
    known = [data[name].values()[None] for name in ("teacher_logprobs", "teacher_ids")]
    if get_ulysses_sequence_parallel_world_size() > 1:
        known = [slice_input_tensor(each, dim=1) for each in known]
    penalty = None
    if mode == GEOSD:  # verl's options have a place for lambda at the anchor's server alone
        anchor, *_ = distillation_config.teacher_models.values()
        penalty = float((anchor.inference.custom or {}).get("drift_penalty", 1.0))
    return _lumped_loss(student_logits, *known, penalty)


def _loss_and_metrics(
    config: Any, distillation_config: Any, model_output: dict, data: Any
) -> tuple[Tensor, dict[str, Any]]:
    """The second step of verl, from positions to responses, with the mean of the second term.

    ValueError if verl cannot tell of how many responses or tokens the loss is a mean.
    """
    of = "batch_num_tokens" if config.loss_agg_mode == "token-mean" else "global_batch_size"
    if data[of] is None:
        raise ValueError(
            f"loss_agg_mode {config.loss_agg_mode}: the batch has no {of}, so that verl would add"
            " the means of its microbatches.\nHint: train by verl.trainer.main_ppo, which sets it."
        )
    values, metrics = losses.compute_forward_kl_topk(
        config, distillation_config, model_output, data
    )
    if "prox" in model_output:
        prox = losses.no_padding_2_padding(model_output["prox"], data)
        mask = data["response_mask"]
        mask = (mask.to_padded_tensor(0) if mask.is_nested else mask).bool()
        metrics["distillation/prox"] = prox[mask].mean().item()
    return values, metrics


_OF_VERL = losses.compute_topk_loss
if PULL not in losses.DISTILLATION_LOSS_REGISTRY:
    settings = losses.DistillationLossSettings(names=[*LOSS_MODES], use_topk=True)
    losses.register_distillation_loss(settings)(_loss_and_metrics)
    losses.compute_topk_loss = _compute_topk_loss
