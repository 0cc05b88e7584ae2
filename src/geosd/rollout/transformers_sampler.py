"""The sampler that needs nothing but transformers: the laptop's, and everyone's fallback."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from tqdm import tqdm
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from geosd.rollout.sampler import Completion, OnFinish, SamplingParams
from geosd.seeds import seed_of


class TransformersSampler:
    """Samples from a live transformers model, so weights never need to be moved to it.

    B = rows of one batch, P = longest prompt of the batch, R = tokens generated.

    Args:
        model: A causal language model; its current weights are what is sampled.
        end_ids: Tokens that end a response.
        pad_id: Fills the left of short prompts; never seen by the model behind the mask.
        rows: Prompts generated together.
        progress: What the progress bar says; None shows none.
    """

    def __init__(
        self,
        model: nn.Module,
        end_ids: Iterable[int],
        pad_id: int,
        rows: int = 256,
        progress: str | None = None,
    ) -> None:
        """Remember what to sample from and how."""
        self.model, self.rows, self.progress = model, rows, progress
        self.end_ids, self.pad_id = sorted(set(end_ids)), pad_id
        self.on_finish: OnFinish | None = None

    @torch.inference_mode()  # a twentieth cheaper than no_grad for the miniature's small models
    def sample(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seed: int
    ) -> list[Completion]:
        """One completion per prompt, in the prompts' order; see `Sampler.sample`.

        Prompts of like length share a batch. The draws of a batch depend on the seed and on the
        batch's number, so the result depends on `rows` as well.
        """
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        starts = range(0, len(order), self.rows)
        bar = tqdm(starts, desc=self.progress, mininterval=2, disable=self.progress is None)
        done: dict[int, Completion] = {}
        training = self.model.training
        self.model.eval()
        try:
            for start in bar:
                batch = order[start : start + self.rows]
                draws = seed_of(seed, "batch", start)
                completions = self._batch([prompts[i] for i in batch], sampling, draws, batch)
                done.update(zip(batch, completions, strict=True))
        finally:
            self.model.train(training)
        return [done[i] for i in range(len(prompts))]

    def record(self) -> dict[str, Any]:
        """Engine, version and rows: which prompts share a batch decides which draws they get."""
        version = transformers.__version__
        return {"engine": "transformers", "version": version, "rows": self.rows}

    def _batch(
        self, prompts: list[Sequence[int]], sampling: SamplingParams, seed: int, places: list[int]
    ) -> list[Completion]:
        device = next(self.model.parameters()).device
        width = max(map(len, prompts))
        padded = [[self.pad_id] * (width - len(p)) + list(p) for p in prompts]
        ids_BP = torch.tensor(padded, device=device)
        lengths_B = torch.tensor([len(p) for p in prompts], device=device)
        mask_BP = torch.arange(width, device=device) >= width - lengths_B[:, None]
        criteria = None
        if self.on_finish is not None:
            report = ReportFinished(places, width, self.end_ids, self.on_finish)
            criteria = StoppingCriteriaList([report])
        # generate() draws from the global generator: lend it one, and give the caller's back.
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            output = self.model.generate(
                input_ids=ids_BP,
                attention_mask=mask_BP.long(),
                generation_config=self._generation(sampling),
                stopping_criteria=criteria,
                synced_gpus=False,  # a rank that samples does so alone, from whole weights
            )
        return [self._completion(row, sampling) for row in output[:, width:].tolist()]

    def _generation(self, sampling: SamplingParams) -> GenerationConfig:
        # top_k=0: transformers would otherwise cut every distribution to its 50 best tokens.
        drawn = {"temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        return GenerationConfig(
            do_sample=sampling.temperature > 0,
            **(drawn if sampling.temperature > 0 else {}),
            # Left out, it would be what the model's release says, and bend the distribution.
            repetition_penalty=1.0,
            max_new_tokens=sampling.max_new_tokens,
            eos_token_id=self.end_ids,
            pad_token_id=self.pad_id,
        )

    def _completion(self, ids_R: list[int], sampling: SamplingParams) -> Completion:
        for position, token in enumerate(ids_R):
            if token in self.end_ids:
                return Completion(tuple(ids_R[: position + 1]), "stop")
        return Completion(tuple(ids_R[: sampling.max_new_tokens]), "length")


class ReportFinished(StoppingCriteria):
    """Stops nothing; reports each row that has just ended while the others go on."""

    def __init__(
        self, places: list[int], width: int, end_ids: Collection[int], on_finish: OnFinish
    ) -> None:
        """Watch rows whose prompts have the indices `places`, all padded to `width` tokens."""
        self.unfinished = dict(enumerate(places))
        self.width, self.end_ids, self.on_finish = width, frozenset(end_ids), on_finish

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Look at the newest token of each sequence of `input_ids`."""
        newest = input_ids[:, -1].tolist()
        for row in [row for row in self.unfinished if newest[row] in self.end_ids]:
            response = input_ids[row, self.width :].tolist()
            self.on_finish(self.unfinished.pop(row), Completion(tuple(response), "stop"))
        return torch.zeros(len(newest), dtype=torch.bool, device=input_ids.device)
