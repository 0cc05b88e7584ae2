"""Responses scored by frozen models as they are finished, on each process of a rollout worker.

Where several processes share the frozen models out, a round scores a response on each of them: all
gather the same block of the same model at the same time, and each runs its own response through it.
So a response is scored by the same operations as on one process.

T = tokens of a response, D = hidden width.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor, nn

from geosd.sampling.sampler import Completion, Sampler, SamplingParams
from geosd.training.packing import pack
from geosd.training.policy import Policy, response_logits
from geosd.training.processes import Ranks


class FinishedResponse(NamedTuple):
    """A response that is to be scored: its place in the step, and the tokens of both parts."""

    place: int
    prompt: list[int]
    ids: list[int]


class ResponseScorer:
    """The frozen models of a rollout worker, and the responses of a step that they score.

    Args:
        models: By name, sharded over the worker's processes or whole on its only one.
        pad_id: Fills the right of short rows.
        ranks: The worker's processes.

    Attributes:
        times: Beginning and end, in seconds of one clock, of the scoring of each response here.
        scores: Place of a response -> hidden states [T, D] of each model at it, of those responses
            of the step that this process has scored.
        scored_by: Place of a response -> the process of the worker that has scored it.
    """

    def __init__(self, models: Mapping[str, nn.Module], pad_id: int, ranks: Ranks) -> None:
        """Score nothing yet."""
        self.models, self.pad_id, self.ranks = models, pad_id, ranks
        self.times: list[tuple[float, float]] = []
        self.begin_step()

    def begin_step(self) -> None:
        """Forget the scores of the step before."""
        self.scores: dict[int, dict[str, Tensor]] = {}
        self.scored_by: dict[int, int] = {}

    def rounds(
        self, names: Collection[str], waiting: queue.SimpleQueue[FinishedResponse | None]
    ) -> None:
        """Score responses until the first process's queue gives None; every process calls this.

        Args:
            names: The models.
            waiting: The first process's; those of the others are not read.
        """
        first, *others = self.models.values()
        with Policy(first).passes(*others):
            while responses := self.ranks.broadcast(lambda: self._next(waiting)):
                here = self.ranks.rank
                # A process without a response of its own must gather the models all the same.
                response = responses[min(here, len(responses) - 1)]
                scores = self._score(response, names)
                if here < len(responses):
                    self.scores[response.place] = scores
                self.scored_by |= {each.place: rank for rank, each in enumerate(responses)}

    def _next(self, waiting: queue.SimpleQueue[FinishedResponse | None]) -> list[FinishedResponse]:
        """The responses of a round, at most one a process; none at the end."""
        first = waiting.get()
        responses = [] if first is None else [first]
        while first is not None and len(responses) < self.ranks.size and not waiting.empty():
            if (response := waiting.get()) is None:
                waiting.put(None)  # after this round
                break
            responses.append(response)
        return responses

    @torch.no_grad()
    def _score(self, response: FinishedResponse, names: Collection[str]) -> dict[str, Tensor]:
        """Hidden states [T, D] of the named models that predict each token of a response."""
        began = time.monotonic()
        device = next(next(iter(self.models.values())).parameters()).device
        packed = pack([response.prompt], [response.ids], self.pad_id, device)
        scores = {name: response_logits(self.models[name], packed, True).hidden for name in names}
        self.times.append((began, time.monotonic()))
        return scores


class StreamingSampler:
    """A sampler whose completions are scored as they are finished, in a thread of their own.

    The model's own endings are reported while others are sampled; the rest are scored at the end.
    A context: at its end every submitted response is scored.

    Args:
        sampler: Samples.
        scorer: Scores; its other processes are in `ResponseScorer.rounds` at the same time.
        names: The models that score.

    Attributes:
        times: Beginning and end, in seconds of one clock, of each call of the sampler.
    """

    def __init__(self, sampler: Sampler, scorer: ResponseScorer, names: Collection[str]) -> None:
        """Submit nothing yet."""
        self.sampler, self.scorer, self.names = sampler, scorer, names
        self.copies_weights = sampler.copies_weights
        self.times: list[tuple[float, float]] = []
        self._waiting: queue.SimpleQueue[FinishedResponse | None] = queue.SimpleQueue()
        self._submitted: set[int] = set()
        self._pool = ThreadPoolExecutor(1)
        self._rounds: Future[None] | None = None

    def __enter__(self) -> StreamingSampler:
        """Begin to score."""
        device = next(next(iter(self.scorer.models.values())).parameters()).device
        self._rounds = self._pool.submit(self._score, device)
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the scores."""
        self._waiting.put(None)
        with self._pool:
            self._rounds.result()

    def _score(self, device: torch.device) -> None:
        if device.type == "cuda":  # a thread begins on the first device
            torch.cuda.set_device(device)
        self.scorer.rounds(self.names, self._waiting)

    def sample(
        self, prompts: list[list[int]], sampling: SamplingParams, seed: int
    ) -> list[Completion]:
        """See `Sampler.sample`."""
        began = time.monotonic()
        self.sampler.on_finish = lambda place, done: self.submit(prompts, [(place, done.ids)])
        try:
            completions = self.sampler.sample(prompts, sampling, seed)
        finally:
            self.sampler.on_finish = None
        self.times.append((began, time.monotonic()))
        self.submit(prompts, ((i, done.ids) for i, done in enumerate(completions)))
        return completions

    def submit(
        self, prompts: list[list[int]], finished: Iterable[tuple[int, Iterable[int]]]
    ) -> None:
        """Have those responses scored that are not yet."""
        for place, ids in finished:
            if place not in self._submitted:
                self._submitted.add(place)
                self._waiting.put(FinishedResponse(place, prompts[place], list(ids)))
