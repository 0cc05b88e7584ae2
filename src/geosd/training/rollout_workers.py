"""Rollouts and frozen models on an inference worker, optimisation on training ranks.

A worker has a copy of the student, which is given the trainers' weights before each step, and the
anchor and pi_0. It samples, and scores each response as soon as it is finished, while it samples
the others. Hidden states cross to the trainers, not logits: the trainers keep the frozen models'
output heads, so the support stays the exact union, and D numbers a token travel and not V. The
same `RolloutWorker` serves a trainer in its own process (`InProcessRollouts`) or trainers in other
processes (`RemoteRollouts`).

Source: the paper, appendix "Hardware" and "Checkpoint placement".

T = tokens of a response, D = hidden width.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from geosd.models.forward import last_hidden_states
from geosd.rollout.sampler import Completion, Sampler, SamplingParams
from geosd.rollout.weight_transfer import named_weights
from geosd.training.packing import pack
from geosd.training.processes import Ranks, WorkerLink
from geosd.training.reference_models import copy_parameters, frozen_copy
from geosd.training.rollouts import HiddenStates, LocalRollouts, Rollouts

SCORED = ("anchor", "reference")
"""Frozen models that read the student's prompt; the teacher is the student, with its trainers."""


class RolloutWorker:
    """Inference worker: samples responses, and scores them with the frozen models at the same time.

    Args:
        local: Samples from this worker's own copy of the student.
        anchor_every: Steps between refreshes of the anchor.

    Attributes:
        times: Beginning and end, in seconds of one clock, of each call of the sampler ("sampled")
            and of the scoring of each response ("scored").
    """

    def __init__(self, local: LocalRollouts, anchor_every: int) -> None:
        """Copy pi_0, which the student is now."""
        self.local, self.anchor_every = local, anchor_every
        dtype = next(local.student.parameters()).dtype
        self.frozen = {name: frozen_copy(local.student, dtype) for name in SCORED}
        self.times: dict[str, list[tuple[float, float]]] = {"sampled": [], "scored": []}

    @torch.no_grad()
    def update_weights(self, weights: Iterable[Tensor]) -> None:
        """Take the trainers' weights, in the parameters' order."""
        for into, value in zip(self.local.student.parameters(), weights, strict=True):
            into.copy_(value)

    def sample_and_score(
        self, step: int, names: Collection[str], count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """The responses of a step, and the named frozen models' hidden states at them.

        Before a step the anchor is refreshed if it is due; `count` is `RolloutSource.collect`'s.
        """
        if count is None and step % self.anchor_every == 0:
            copy_parameters(self.frozen["anchor"], self.local.student)
        with ThreadPoolExecutor(1) as pool:
            streaming = StreamingSampler(self.local.sampler, self, names, pool)
            rollouts, _ = replace(self.local, sampler=streaming).collect(step, False, count)
            if not streaming.scores:  # nothing was sampled: solutions of the pool
                streaming.submit(rollouts.student_prompts, enumerate(rollouts.responses))
            scores = [streaming.scores[i].result() for i in range(len(rollouts.responses))]
        return rollouts, {name: [score[name] for score in scores] for name in names}

    @torch.no_grad()
    def score(
        self, prompt: list[int], response: list[int], names: Collection[str]
    ) -> dict[str, Tensor]:
        """Hidden states [T, D] of the named models that predict each token of a response."""
        began = time.monotonic()
        device = next(self.local.student.parameters()).device
        packed = pack([prompt], [response], self.local.encoding.pad_id, device)
        scores = {}
        for name in names:
            hidden = last_hidden_states(self.frozen[name], packed.ids)
            scores[name] = hidden[packed.row, packed.column]
        self.times["scored"].append((began, time.monotonic()))
        return scores


class StreamingSampler:
    """A sampler whose completions are scored as they are finished.

    The model's own endings are reported while others are sampled; the rest are scored at the end.
    """

    def __init__(
        self,
        sampler: Sampler,
        worker: RolloutWorker,
        names: Collection[str],
        pool: ThreadPoolExecutor,
    ) -> None:
        """Score nothing yet."""
        self.sampler, self.worker, self.names, self.pool = sampler, worker, names, pool
        self.scores: dict[int, Future] = {}

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
        self.worker.times["sampled"].append((began, time.monotonic()))
        self.submit(prompts, ((i, done.ids) for i, done in enumerate(completions)))
        return completions

    def submit(
        self, prompts: list[list[int]], finished: Iterable[tuple[int, Iterable[int]]]
    ) -> None:
        """Have those responses scored that are not yet."""
        for place, ids in finished:
            if place not in self.scores:
                self.scores[place] = self.pool.submit(
                    self.worker.score, prompts[place], list(ids), self.names
                )


@dataclass(frozen=True)
class InProcessRollouts:
    """Rollouts of a worker in the trainer's own process; see `rollouts.RolloutSource`."""

    student: nn.Module
    worker: RolloutWorker
    needs: frozenset[str]

    def record(self) -> dict[str, Any]:
        """The sampler's, for the manifest."""
        return self.worker.local.record()

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """See `RolloutSource.collect`."""
        self.worker.update_weights(value for _, value in named_weights(self.student))
        return self.worker.sample_and_score(step, models_to_score(self.needs, measured), count)

    def anchor_state_dict(self) -> dict[str, Tensor]:
        """The anchor's full weights."""
        return self.worker.frozen["anchor"].state_dict()

    def load_anchor_state_dict(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor_state_dict` gave."""
        self.worker.frozen["anchor"].load_state_dict(weights)


@dataclass(frozen=True)
class RemoteRollouts:
    """Rollouts of a worker in another process; see `rollouts.RolloutSource`."""

    student: nn.Module
    link: WorkerLink
    needs: frozenset[str]
    ranks: Ranks
    compute: torch.dtype

    def record(self) -> dict[str, Any]:
        """For the manifest; the sampler is not in this process."""
        return {"engine": "of the worker"}

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """See `RolloutSource.collect`."""
        names = models_to_score(self.needs, measured)
        self.link.share_command(("rollouts", step, names, count))
        for _, value in named_weights(self.student):  # all ranks gather, the first one sends
            self.link.copy_to_worker(value.to(self.compute))
        rollouts = self.link.share_rollouts()
        per_rank = len(rollouts.responses) // self.ranks.size
        first = self.ranks.rank * per_rank
        device = next(self.student.parameters()).device
        width = self.student.config.hidden_size
        states: HiddenStates = {name: [None] * len(rollouts.responses) for name in names}
        for i in range(first, first + per_rank):
            for name in names:
                shape = (len(rollouts.responses[i]), width)
                hidden = torch.empty(shape, dtype=self.compute, device=device)
                states[name][i] = self.link.recv_hidden(hidden)
        return rollouts, states

    def anchor_state_dict(self) -> dict[str, Tensor]:
        """The anchor's weights as a model's `state_dict` has them, on the first rank's CPU."""
        self.link.share_command(("anchor",))
        weights = {}
        for name, parameter in self.student.named_parameters():
            value = torch.empty(parameter.shape, dtype=self.compute, device=parameter.device)
            value = self.link.copy_from_worker(value)
            weights[name] = value.cpu() if self.ranks.is_main else torch.empty(0)
        if self.student.config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        return weights

    def load_anchor_state_dict(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor_state_dict` gave."""
        self.link.share_command(("load anchor",))
        for name, parameter in self.student.named_parameters():
            self.link.copy_to_worker(weights[name].to(parameter.device, self.compute))

    def end(self) -> None:
        """End the worker's process."""
        self.link.share_command(("end",))


def serve(worker: RolloutWorker, link: WorkerLink) -> None:
    """Main loop of a rollout worker's process: serves the trainers until `RemoteRollouts.end`."""
    student, anchor = worker.local.student, worker.frozen["anchor"]
    dtype = next(student.parameters()).dtype
    while True:
        command, *values = link.share_command()
        if command == "end":
            return
        if command == "anchor":
            for parameter in anchor.parameters():
                link.copy_from_worker(parameter.data)
        elif command == "load anchor":
            for parameter in anchor.parameters():
                link.copy_to_worker(parameter.data)
        else:
            step, names, count = values
            worker.update_weights(
                link.copy_to_worker(torch.empty_like(p)) for p in student.parameters()
            )
            rollouts, states = worker.sample_and_score(step, names, count)
            link.share_rollouts(rollouts)
            per_rank = len(rollouts.responses) // link.worker
            for i in range(per_rank * link.worker):
                for name in names:
                    link.send_hidden(states[name][i].to(dtype).contiguous(), rank=i // per_rank)


def models_to_score(needs: frozenset[str], measured: bool) -> list[str]:
    """Names of the frozen models that a rollout worker scores: an objective's, or all of them."""
    return [name for name in SCORED if measured or name in needs]
