r"""GeoSD's two other models in verl 0.9: the student with privileged context, and the anchor.

    VERL_USE_EXTERNAL_MODULES=geosd.integrations.verl,geosd.integrations.verl_teachers \
      python -m verl.trainer.main_ppo ... distillation.enabled=True \
      distillation.distillation_loss.loss_mode=geosd_topk distillation.distillation_loss.topk=1024 \
      distillation.distillation_loss.use_policy_gradient=False \
      distillation.distillation_loss.use_task_rewards=False \
      distillation.n_gpus_per_node=1 distillation.nnodes=1 \
      distillation.teacher_models.teacher_model.model_path=$MODEL \
      distillation.teacher_models.teacher_model.inference.tensor_model_parallel_size=1 \
      +distillation.teacher_models.teacher_model.inference.custom.drift_penalty=1.0 \
      actor_rollout_ref.model.path=$MODEL actor_rollout_ref.rollout.max_model_len=12288 \
      +actor_rollout_ref.rollout.engine_kwargs.vllm.max_logprobs=1024 \
      actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean \
      actor_rollout_ref.actor.checkpoint.save_contents=[model,optimizer,extra,hf_model] \
      trainer.checkpoint_callback_class=geosd.integrations.verl_teachers.VerlAnchorCallback \
      trainer.save_freq=64 trainer.total_training_steps=625 \
      data.train_batch_size=8 data.max_response_length=4096 \
      actor_rollout_ref.rollout.n=1 actor_rollout_ref.rollout.temperature=1.0 \
      actor_rollout_ref.actor.ppo_mini_batch_size=8 \
      actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.optim.lr_warmup_steps=20 \
      actor_rollout_ref.actor.optim.lr_scheduler_type=constant \
      actor_rollout_ref.actor.optim.betas=[0.9,0.95] actor_rollout_ref.actor.optim.weight_decay=0.0

These numbers are the paper's. verl clips gradients at a norm of 1, of which the paper says nothing
(`actor_rollout_ref.actor.optim.clip_grad`).

The teacher is the current student, asked on the rollout's own servers before they sleep, so that it
needs no GPUs. It reads the data set's column `teacher_prompt`, chat messages with the problem and
the solution; `max_model_len` must hold them and a response. verl's one teacher server holds the
anchor. It reads what the student reads, and takes the weights of each checkpoint that the training
saves: K_ckpt is `trainer.save_freq`. What verl does not allow:

- Weights cannot be pushed to a teacher's server (verl looks its name up among the rollout's), so
  they go through the checkpoint's files, which the server's node must see.
- A resumed training builds the server anew: give it
  `model_path=.../global_step_<N>/actor/huggingface` of the checkpoint that it resumes from.
- trainer_mode is sync: with rollouts ahead of the updates the teacher would be an older student.
- Text alone, and servers of vLLM without data parallelism.

verl renders the chats, and gives a template that asks for it the date of today (Llama 3.2, SmolLM3,
Granite): such a prompt is refused, unless `data.apply_chat_template_kwargs` or the template itself
holds the date.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import ray
import torch
from torch import Tensor
from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
from verl.experimental.teacher_loop.teacher_manager import AsyncTeacherLLMServerManager
from verl.trainer.ppo.checkpoint_callback import CheckpointCallback

from geosd.integrations.same_each_day import check_same_each_day
from geosd.integrations.verl import GEOSD

COLUMN = "teacher_prompt"
"""Column of the data set: the chat messages that the teacher reads."""


class VerlAnchorCallback(CheckpointCallback):
    """Gives the anchor's servers the weights of each checkpoint, when no request is under way."""

    def on_save(self, trainer: Any, global_step: int, checkpoint_dir: str, **others: Any) -> None:
        """Load the weights; FileNotFoundError if the checkpoint has none that a server can read."""
        folder = Path(checkpoint_dir, "actor", "huggingface").resolve()
        if not any(folder.glob("*.safetensors")):
            raise FileNotFoundError(
                f"{folder} has no weights, which the anchor takes after step {global_step}.\nHint:"
                " actor_rollout_ref.actor.checkpoint.save_contents needs hf_model."
            )
        for manager in trainer.teacher_model_manager.teacher_model_managers.values():
            servers = [replica.server_handle for replica in manager.rollout_replicas]
            call = ("reload_weights", None, (), {"weights_path": str(folder)})
            ray.get([each.collective_rpc.remote(*call) for each in servers])
            ray.get([each.clear_kv_cache.remote() for each in servers])


async def _compute_teacher_logprobs(
    self: AgentLoopWorker,
    output: Any,
    prompt_ids: list[int],
    response_ids: list[int],
    validate: bool,
    sample_kwargs: dict[str, Any] | None = None,
) -> None:
    """Ask teacher and anchor about a response; the anchor's tokens go behind the teacher's."""
    enabled = self.distillation_enabled and not validate
    if not enabled or self.config.distillation.distillation_loss.loss_mode != GEOSD:
        await _OF_VERL(self, output, prompt_ids, response_ids, validate, sample_kwargs)
        return
    if output.multi_modal_data:
        raise ValueError(
            f"loss_mode {GEOSD}: a prompt has {', '.join(output.multi_modal_data)}.\nHint: only"
            " text is supported."
        )
    anchor = self.teacher_server_manager
    clients = dict.fromkeys(anchor.teacher_client, self.llm_client)
    teacher = AsyncTeacherLLMServerManager(self.config, clients)
    read = verl_teacher_ids(self.tokenizer, self.config.data, sample_kwargs or {})
    (ids_q, log_q), (ids, log_anchor) = await asyncio.gather(
        teacher.compute_teacher_logprobs_single(sequence_ids=read + response_ids),
        anchor.compute_teacher_logprobs_single(sequence_ids=prompt_ids + response_ids),
    )
    at = len(prompt_ids), len(response_ids)
    output.extra_fields["teacher_ids"] = torch.cat([verl_teacher_rows(ids_q, *at), ids], -1)
    output.extra_fields["teacher_logprobs"] = torch.cat(
        [verl_teacher_rows(log_q, *at), log_anchor], -1
    )


def verl_teacher_ids(tokenizer: Any, data: Any, row: dict[str, Any]) -> list[int]:
    """Tokens of the teacher's prompt; ValueError if the row has none, or if the day changes it."""
    if COLUMN not in row:
        raise ValueError(
            f"loss_mode {GEOSD}: a row has no column {COLUMN!r}; it has {', '.join(row)}.\nHint:"
            " chat messages with the problem and the solution."
        )
    turns = [*row[COLUMN]]
    variables = dict(data.get("apply_chat_template_kwargs") or {})
    check_same_each_day(tokenizer, turns, variables, "data.apply_chat_template_kwargs")
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
    return tokenizer.apply_chat_template(turns, **options | variables)


def verl_teacher_rows(rows: Tensor, prompt: int, response: int) -> Tensor:
    """A server's rows [T', K] at the student's positions [prompt + response, K].

    Row t says what follows token t. Before the prompt's last token, where no loss counts, stands
    the row of that token.
    """
    own = rows[-response - 1 :]
    return torch.cat([own[:1].expand(prompt - 1, -1), own])


_OF_VERL = AgentLoopWorker._compute_teacher_logprobs
if _OF_VERL is not _compute_teacher_logprobs:
    AgentLoopWorker._compute_teacher_logprobs = _compute_teacher_logprobs
