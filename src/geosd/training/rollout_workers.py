"""Rollouts and frozen models on an inference worker, optimisation on training ranks.

A worker has a copy of the student, which is given the trainers' weights before each step, and the
anchor and pi_0. It samples, and scores each response as soon as it is finished, while it samples
the others. Hidden states cross to the trainers, not logits: the trainers keep the frozen models'
output heads, so the support stays the exact union, and D numbers a token travel and not V. Several
processes of a worker have its three models in shards; the first of them samples.

Source: the paper, appendix "Hardware" and "Checkpoint placement".

T = tokens of a response, D = hidden width.
"""

from __future__ import annotations

import queue
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from geosd.optim.distributed import copy_full_into
from geosd.sampling.weight_transfer import named_weights
from geosd.training.policy import Policy, copy_parameters, frozen_copy
from geosd.training.processes import Ranks, WorkerLink
from geosd.training.response_scoring import ResponseScorer, StreamingSampler
from geosd.training.rollouts import HiddenStates, LocalRollouts, Rollouts

SCORED = ("anchor", "reference")
"""Frozen models that read the student's prompt; the teacher is the student, with its trainers."""


class RolloutWorker:
    """Inference worker: samples responses, and scores them with the frozen models at the same time.

    Args:
        local: Samples from this worker's own copy of the student; its ranks are the worker's
            processes.
        anchor_every: Steps between refreshes of the anchor.

    Attributes:
        times: Beginning and end, in seconds of one clock, of each call of the sampler ("sampled")
            and of the scoring of each response ("scored"), of this process.
    """

    def __init__(self, local: LocalRollouts, anchor_every: int) -> None:
        """Copy pi_0, which the student is now."""
        self.local, self.anchor_every = local, anchor_every
        dtype = next(local.student.parameters()).dtype
        self.frozen = {name: frozen_copy(local.student, dtype, dtype) for name in SCORED}
        self.scorer = ResponseScorer(self.frozen, local.encoding.pad_id, local.ranks)
        self.times: dict[str, list[tuple[float, float]]] = {
            "sampled": [],
            "scored": self.scorer.times,
        }

    def sample_and_score(
        self, step: int, names: Collection[str], count: int | None = None
    ) -> Rollouts | None:
        """The responses of a step, scored by the named frozen models; `scorer` has the scores.

        Every process of the worker calls this; the first one gets the responses. Before a step the
        anchor is refreshed if it is due; `count` is `RolloutSource.collect`'s.
        """
        if count is None and step % self.anchor_every == 0:
            copy_parameters(self.frozen["anchor"], self.local.student)
        scorer, rollouts = self.scorer, None
        scorer.begin_step()
        with self.local.gathered(count):
            if not self.local.ranks.is_main:
                scorer.rounds(names, queue.SimpleQueue())
            else:
                with StreamingSampler(self.local.sampler, scorer, names) as streaming:
                    rollouts = replace(self.local, sampler=streaming).draw(step, count)
                    # Of solutions of the pool nothing was sampled, and all are scored here.
                    streaming.submit(rollouts.student_prompts, enumerate(rollouts.responses))
                self.times["sampled"] += streaming.times
        return rollouts


@dataclass(frozen=True)
class RemoteRollouts:
    """Rollouts of a worker in another process; see `rollouts.RolloutSource`."""

    policy: Policy
    link: WorkerLink
    needs: frozenset[str]
    ranks: Ranks

    def record(self) -> dict[str, Any]:
        """For the manifest; the sampler is not in this process."""
        return {"engine": "of the worker"}

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """See `RolloutSource.collect`."""
        # The objective's, or all of them.
        names = [name for name in SCORED if measured or name in self.needs]
        self.link.share_command(("rollouts", step, names, count))
        for _, value in named_weights(self.policy.model):  # all ranks gather, the first one sends
            self.link.copy_to_worker(value.to(self.policy.compute))
        rollouts, scored_by = self.link.share_rollouts()
        per_rank = len(rollouts.responses) // self.ranks.size
        first = self.ranks.rank * per_rank
        device = self.policy.device
        width = self.policy.model.config.hidden_size
        states: HiddenStates = {name: [None] * len(rollouts.responses) for name in names}
        for i in range(first, first + per_rank):
            for name in names:
                shape = (len(rollouts.responses[i]), width)
                hidden = torch.empty(shape, dtype=self.policy.compute, device=device)
                states[name][i] = self.link.recv_hidden(hidden, scored_by[i])
        return rollouts, states

    def anchor_state_dict(self) -> dict[str, Tensor]:
        """The anchor's weights as a model's `state_dict` has them, on the first rank's CPU."""
        self.link.share_command(("anchor",))
        weights = {}
        for name, parameter in self.policy.model.named_parameters():
            value = torch.empty(parameter.shape, dtype=self.policy.compute, device=parameter.device)
            value = self.link.copy_from_worker(value)
            weights[name] = value.cpu() if self.ranks.is_main else torch.empty(0)
        if self.policy.model.config.tie_word_embeddings:
            weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        return weights

    def load_anchor_state_dict(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor_state_dict` gave."""
        self.link.share_command(("load anchor",))
        for name, parameter in self.policy.model.named_parameters():
            self.link.copy_to_worker(weights[name].to(parameter.device, self.policy.compute))

    def end(self) -> None:
        """End the worker's process."""
        self.link.share_command(("end",))


def serve_trainers(worker: RolloutWorker, link: WorkerLink) -> None:
    """Main loop of a worker's process: serves the trainers until `RemoteRollouts.end`."""
    anchor = worker.frozen["anchor"]
    while True:
        command, *values = link.share_command()
        if command == "end":
            return
        if command == "anchor":
            for _, value in named_weights(anchor):
                link.copy_from_worker(value)
        elif command == "load anchor":
            _receive_weights(anchor, link)
        else:
            _receive_weights(worker.local.student, link)
            _serve_rollouts(worker, link, *values)


@torch.no_grad()
def _receive_weights(model: nn.Module, link: WorkerLink) -> None:
    """Overwrite a model, sharded or not, by the full weights that the trainers send."""
    for into in model.parameters():
        full = torch.empty(into.shape, dtype=into.dtype, device=into.device)
        copy_full_into(link.copy_to_worker(full), into)


def _serve_rollouts(
    worker: RolloutWorker, link: WorkerLink, step: int, names: list[str], count: int | None
) -> None:
    """Make the responses of a step, and send each trainer the hidden states at its own."""
    rollouts, scorer = worker.sample_and_score(step, names, count), worker.scorer
    dtype = next(worker.local.student.parameters()).dtype
    link.share_rollouts((rollouts, scorer.scored_by))
    per_rank = len(scorer.scored_by) // link.trainers
    for i in range(per_rank * link.trainers):
        if scorer.scored_by[i] == link.worker.rank:
            for name in names:
                hidden = scorer.scores[i][name].to(dtype).contiguous()
                link.send_hidden(hidden, rank=i // per_rank)
