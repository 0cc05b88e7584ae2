"""GeoSD over TRL's trainer for self-distillation.

B = sequences, T = tokens of the padded responses, D = hidden size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike, fspath
from typing import Any, TypeVar

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.utils.data import Sampler
from trl.experimental.sdft import SDFTConfig, SDFTTrainer
from trl.trainer.utils import RepeatSampler

from geosd.integrations.anchor import Anchor
from geosd.integrations.geosd_loss import GeoSDLoss
from geosd.integrations.kfac_callback import KFACCallback, check_kfac_parallel
from geosd.integrations.lost_updates import UpdatesMove
from geosd.integrations.own_sampling import own_sampling
from geosd.integrations.same_each_day import check_same_each_day
from geosd.integrations.token_mean import TokenMean
from geosd.objectives.reduce import mean_loss_terms
from geosd.optim.dtensors import full_tensor
from geosd.seeds import seed_of

PRIVILEGED = "privileged_context"  # the name of the column in TRL
DataSets = TypeVar("DataSets", Dataset, dict[str, Dataset], None)


class GeoSDTrainer(SDFTTrainer):
    """SDFTTrainer with GeoSD's loss: Hellinger to the teacher, Fisher-Rao to a recent checkpoint.

    TRL samples responses, writes the privileged context into the teacher's prompt
    (`teacher_prompt_template`) and chooses the teacher (`teacher_model_kind`; the paper's is
    "live"). `distillation_*` of the arguments have no effect. Prompts stay whole: at the beginning
    one beyond `max_prompt_length`, such as the teacher's with its solution, is refused, and so is
    one into which the chat template writes the date of today. K-FAC is
    `KFACCallback` among the callbacks; without it the training is GeoSD's loss with the trainer's
    optimiser.

    A training that continues from a checkpoint has the same bits as one that was never stopped,
    where every step generates its own responses, as is TRL's default.

    Responses are sampled as the arguments say: of the model's `generation_config.json` only the
    special tokens count (`own_sampling`). Trained weights in bfloat16 are refused where AdamW's
    updates would be lost, and warned of otherwise (`lost_updates`).

    With `loss_mean="token"` the loss of a step is the mean over all its tokens, however it is cut
    into microbatches and processes. The loss of an evaluation is TRL's mean over batches.

    A step costs one pass more than SDFT's, with the weights of the `Anchor`. Dropout of adapters
    would count as drift (peft's default is none). Logits exist for a chunk of positions at a time.
    Under FSDP2 the weights of student and anchor lie in shards, and the output heads of both are
    whole in a step. Arguments that are not named here are SDFTTrainer's.

    Args:
        model: A causal language model, or its name or folder.
        args: TRL's arguments.
        loss: GeoSD's loss; None takes the paper's values at the arguments' temperature.
        anchor_every: Steps between refreshes of the anchor (paper: K_ckpt = 64), whose weights are
            the student's at steps 0, K_ckpt, 2 K_ckpt, ...
        privileged_column: Column of the data sets that holds the privileged context.
        train_dataset: Has the columns `prompt` and `privileged_column`.
        eval_dataset: The same, or several by name, or None.

    Raises:
        ValueError: The arguments ask for what this trainer cannot do, or a column is missing.

    Source: the paper, equation (full-loss) and appendix "Training" (app:exp-rollouts).
    """

    _tag_names = ["trl", "geosd"]
    _name = "GeoSD"
    _paper = {}

    def __init__(
        self,
        model: str | nn.Module,
        args: SDFTConfig,
        *,
        loss: GeoSDLoss | None = None,
        anchor_every: int = 64,
        privileged_column: str = PRIVILEGED,
        train_dataset: Dataset,
        eval_dataset: Dataset | dict[str, Dataset] | None = None,
        **others: Any,
    ) -> None:
        if args.use_teacher_server:
            raise ValueError(
                "use_teacher_server is on: a server gives no hidden states and too few logits."
                "\nHint: set use_teacher_server=False; use_vllm may stay."
            )
        train_dataset = _with_privileged_context(train_dataset, privileged_column)
        eval_dataset = _with_privileged_context(eval_dataset, privileged_column)
        data = {"train_dataset": train_dataset, "eval_dataset": eval_dataset}
        super().__init__(model, args, **data, **others)
        self._check_prompts("train_dataset", self.train_dataset)
        self._check_prompts("eval_dataset", self.eval_dataset)
        check_kfac_parallel(args)
        if self.is_fsdp_enabled:  # all processes gather the shards, until the last response ends
            self.model.generate = partial(self.model.generate, synced_gpus=True)
        self.geosd_loss = loss or GeoSDLoss(temperature=args.temperature)
        self.token_mean = None
        if self.geosd_loss.loss_mean == "token":
            self.token_mean = TokenMean(self.accelerator)
        self.add_callback(UpdatesMove())
        self.anchor = None
        if self.geosd_loss.objective.drift_penalty:
            self.anchor = Anchor(anchor_every)
            self.add_callback(self.anchor)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """The loss of a microbatch, divided by the number of microbatches of its step."""
        place = torch.arange(inputs["completion_mask"].shape[1], device=self.accelerator.device)
        mask = inputs["completion_mask"].bool() & (place >= self.num_loss_tokens_to_skip)
        student = {
            "input_ids": torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1),
            "attention_mask": torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1),
        }
        teacher = {name: inputs[f"teacher_{name}"] for name in student}
        microbatches = self.current_gradient_accumulation_steps if model.training else 1
        width = mask.shape[1]
        token_mean = self.token_mean if model.training else None

        with torch.no_grad():
            with self._get_teacher_context_for_self_distillation():
                apart = self.teacher_model is not self.model
                references = [self._hidden_states(self.teacher_model, teacher, width, apart)]
            if self.anchor is not None:
                with self.anchor.within(self.model):
                    references.append(self._hidden_states(self.model, student, width, True))
        for callback in self.callback_handler.callbacks:
            if isinstance(callback, KFACCallback) and model.training:
                if token_mean is None:
                    terms_of_step = mean_loss_terms(mask.sum(1), "sequence") * microbatches
                else:  # what the tokens' losses are divided by when they are differentiated
                    terms_of_step = token_mean.expect(mask.sum(), microbatches)
                callback.observe(student["attention_mask"], terms_of_step)
        states, heads = zip(self._hidden_states(model, student, width), *references, strict=True)
        with self.accelerator.autocast():
            terms = self.geosd_loss.terms(
                states[0], states[1], states[2] if self.anchor is not None else None, mask, heads
            )

        if token_mean is not None:
            token_mean.expect(mask.sum(), microbatches)
            return token_mean.add(terms, mask.sum())
        means = {n: self.accelerator.gather(v.detach()).mean().item() for n, v in terms.items()}
        self._record("train" if model.training else "eval", means)
        return terms["loss"] / microbatches

    def training_step(
        self,
        model: nn.Module,
        inputs: Any,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Differentiate a microbatch; after a step's last one its mean is over all its tokens."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.token_mean is not None and self.accelerator.sync_gradients:
            loss, means = self.token_mean.end(model, loss)
            self._record("train", means)
        return loss

    def _record(self, mode: str, means: dict[str, float]) -> None:
        for name, mean in means.items():
            self._metrics[mode][f"geosd/{name}"].append(mean)

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Responses and prompts of a microbatch; see SDFTTrainer. Sampled as the arguments say."""
        with own_sampling(self.model):
            return super()._prepare_inputs(generation_batch)

    def _hidden_states(
        self, model: nn.Module, inputs: dict[str, Tensor], width: int, frozen: bool = False
    ) -> tuple[Tensor, nn.Module]:
        """Hidden states [B, T, D] that predict the last T = `width` tokens, and the output head.

        The model is called as a whole, as wrappers need it, with logits at the last token alone;
        ValueError if the logits are not the head's, applied to the hidden states.
        """
        unwrapped = self.accelerator.unwrap_model(model)
        kept = []
        hook = unwrapped.get_decoder().register_forward_hook(
            lambda module, args, output: kept.append(output.last_hidden_state)
        )
        try:
            logits = model(**inputs, use_cache=False, logits_to_keep=1).logits
        finally:
            hook.remove()
        (hidden,) = kept
        head = trainer_output_head(unwrapped, frozen)
        with torch.no_grad(), self.accelerator.autocast():
            own = head(hidden[:, -1:].to(head.weight.dtype)).float()
        if (own - logits).abs().max() > 1e-2 * logits.abs().max():
            raise ValueError(
                f"{type(unwrapped).__name__} does more to its logits than its output head, such as"
                " a soft cap.\nHint: give GeoSDLoss the logits in a trainer of your own."
            )
        return hidden[:, -width - 1 : -1], head

    def _get_train_sampler(self, dataset: Dataset | None = None) -> Sampler:
        sampler = super()._get_train_sampler(dataset)
        return _EpochSampler(sampler, epoch=lambda: int(self.state.epoch or 0))

    def train(
        self, resume_from_checkpoint: str | PathLike[str] | bool | None = None, **others: Any
    ) -> Any:
        """Train; see Trainer. The callbacks learn which checkpoint it continues from."""
        if isinstance(resume_from_checkpoint, str | PathLike):
            resume_from_checkpoint = fspath(resume_from_checkpoint)
        if resume_from_checkpoint:  # True is the last checkpoint of output_dir
            self.args.resume_from_checkpoint = str(resume_from_checkpoint)
        return super().train(resume_from_checkpoint, **others)

    def _tokenize_prompts(self, prompts: list[Any]) -> list[list[int]]:
        """Token ids of prompts, whole; see SDFTTrainer, which cuts them on the left.

        ValueError where the day changes a prompt.
        """
        for prompt in prompts:
            if not isinstance(prompt, str):
                check_same_each_day(
                    self.processing_class, prompt, self.chat_template_kwargs, "chat_template_kwargs"
                )
        limit, self.max_prompt_length = self.max_prompt_length, None
        try:
            return super()._tokenize_prompts(prompts)
        finally:
            self.max_prompt_length = limit

    def _check_prompts(self, name: str, dataset: DataSets) -> None:
        """Refuse, by ValueError, prompts beyond `max_prompt_length`, the teacher's among them."""
        if isinstance(dataset, dict):
            for part, each in dataset.items():
                self._check_prompts(f"{name}[{part!r}]", each)
            return
        limit, contexts_of = self.max_prompt_length, self.teacher_context_builder
        if dataset is None or limit is None:
            return
        for start in range(0, len(dataset), 256):
            rows = dataset[start : start + 256]
            prompts = rows["prompt"]
            contexts = contexts_of.select_generation_prompts(prompts, rows[PRIVILEGED])
            for reader, read in (("student", prompts), ("teacher", contexts)):
                for row, ids in enumerate(self._tokenize_prompts(read), start):
                    if len(ids) > limit:
                        raise ValueError(
                            f"{name}, row {row}: the {reader}'s prompt has {len(ids)} tokens, and"
                            f" max_prompt_length is {limit}; TRL would cut its beginning away"
                            " (TRL#5862).\nHint: set max_prompt_length of SDFTConfig to the"
                            " longest, or to None, which keeps every prompt whole; TRL's default is"
                            " 512."
                        )


def trainer_output_head(model: nn.Module, frozen: bool) -> nn.Module:
    """The output head of a GeoSDTrainer's model after a pass, to be applied outside of passes.

    A frozen one keeps the weights of now; another has those of the model's last pass. Of a model in
    shards (FSDP2) it is a plain layer: its own would gather its weights for each chunk.
    """
    head, sharded = model.get_output_embeddings(), isinstance(model, FSDPModule)

    def now(value: nn.Parameter) -> nn.Parameter:
        kept = full_tensor(value.detach())  # what is gathered, FSDP2 overwrites
        return nn.Parameter(kept.clone() if sharded else kept, requires_grad=False)

    if not isinstance(head, FSDPModule):
        return copy.deepcopy(head, {id(p): now(p) for p in head.parameters()}) if frozen else head
    if not isinstance(head, nn.Linear):
        raise ValueError(
            f"the output head is a {type(head).__name__}, which FSDP2 cannot apply apart from a"
            " pass.\nHint: leave the head out of target_modules and modules_to_save of LoRA."
        )
    layer = nn.Linear(1, 1, bias=head.bias is not None, device="meta")
    for name, value in head.named_parameters(recurse=False):
        setattr(layer, name, now(value) if frozen else value)
    return layer


class _EpochSampler(Sampler):
    """TRL's order of the problems, drawn anew from the seed and the epoch.

    TRL saves no generator: a training that continues in its second epoch would see the first's
    order.
    """

    def __init__(self, sampler: RepeatSampler, epoch: Callable[[], int]) -> None:
        self.sampler, self.epoch = sampler, epoch

    def __iter__(self) -> Iterator[int]:
        """Seed the generator, then the indices in TRL's order."""
        if self.sampler.shuffle:
            self.sampler.generator.manual_seed(seed_of("order", self.sampler.seed, self.epoch()))
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


def _with_privileged_context(dataset: DataSets, column: str) -> DataSets:
    """A GeoSDTrainer's data set, or several by name, its column renamed; ValueError without one."""
    if isinstance(dataset, dict):
        return {name: _with_privileged_context(each, column) for name, each in dataset.items()}
    if dataset is None:
        return dataset
    if column not in dataset.column_names:
        raise ValueError(
            f"the data set has no column {column!r}; it has {', '.join(dataset.column_names)}."
            "\nHint: privileged_column names what the teacher alone reads."
        )
    return dataset if column == PRIVILEGED else dataset.rename_column(column, PRIVILEGED)
