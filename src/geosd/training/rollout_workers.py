"""Rollouts and frozen models on an inference worker, optimisation on training ranks.

A worker has a copy of the student, which is given the trainers' weights before each step, and the
anchor and pi_0. It scores each response as soon as it is finished, while it samples the others.
Hidden states cross to the trainers, not logits: the trainers keep the frozen models' output heads,
so the support stays the exact union, and D numbers a token travel and not V.

Several processes of a worker have its three models in shards; the first of them samples. A round
scores a response on each of them: all gather the same block of the same model at the same time, and
each runs its own response through it, by the same operations as on one process.

Source: the paper, appendix "Hardware" and "Checkpoint placement".

T = tokens of a response, D = hidden width.
"""

import queue
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from geosd.models.load_and_save import weights_as_saved
from geosd.optim.dtensors import copy_full_into
from geosd.sampling.sampler import Completion, Sampler, SamplingParams
from geosd.sampling.weight_delivery import Delivered
from geosd.training.packing import pack
from geosd.training.policy import Policy, copy_parameters, frozen_copy, policy_response_logits
from geosd.training.processes import TrainingProcesses, training_process_device
from geosd.training.rollouts import HiddenStates, LocalRollouts, Rollouts

SCORED = ("anchor", "reference")
"""Frozen models that read the student's prompt; the teacher is the student, with its trainers."""


class _FinishedResponse(NamedTuple):
    """A response that is to be scored: its place in the step, and the tokens of both parts."""

    place: int
    prompt: list[int]
    ids: list[int]


class _ResponseScorer:
    """The frozen models of a rollout worker, and the responses of a step that they score.

    `models` are sharded over the worker's processes (`ranks`) or whole on its only one. Of the
    responses that this process has scored, by their places, `scores` has the hidden states [T, D]
    of each model, `times` beginning and end by one clock; `scored_by` has the process that scored
    each.
    """

    def __init__(
        self, models: Mapping[str, nn.Module], pad_id: int, ranks: TrainingProcesses
    ) -> None:
        self.models, self.pad_id, self.ranks = models, pad_id, ranks
        self.device = next(next(iter(models.values())).parameters()).device
        self.times: list[tuple[float, float]] = []
        self.begin_step()

    def begin_step(self) -> None:
        """Forget the scores of the step before."""
        self.scores: dict[int, dict[str, Tensor]] = {}
        self.scored_by: dict[int, int] = {}

    def rounds(
        self, names: Collection[str], waiting: queue.SimpleQueue[_FinishedResponse | None]
    ) -> None:
        """Score responses, on every process, until the first one's queue gives None."""
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

    @contextmanager
    def in_thread(
        self, names: Collection[str]
    ) -> Iterator[queue.SimpleQueue[_FinishedResponse | None]]:
        """A queue of responses that a thread scores; at the end of the context all are scored.

        An error in the context does not wait for the thread, whose rounds the other processes may
        never join: they gather weights for a sampler that has failed.
        """
        waiting: queue.SimpleQueue[_FinishedResponse | None] = queue.SimpleQueue()
        cuda = self.device.type == "cuda"  # a thread begins on the first device
        start = partial(torch.cuda.set_device, self.device) if cuda else None
        pool = ThreadPoolExecutor(1, initializer=start)
        rounds = pool.submit(self.rounds, names, waiting)
        pool.shutdown(wait=False)  # it takes nothing more, and the thread ends with its work
        try:
            yield waiting
        finally:
            waiting.put(None)
        rounds.result()

    def _next(
        self, waiting: queue.SimpleQueue[_FinishedResponse | None]
    ) -> list[_FinishedResponse]:
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
    def _score(self, response: _FinishedResponse, names: Collection[str]) -> dict[str, Tensor]:
        """Hidden states [T, D] of the named models that predict each token of a response."""
        began = time.monotonic()
        packed = pack([response.prompt], [response.ids], self.pad_id, self.device)
        scores = {
            name: policy_response_logits(self.models[name], packed, True).hidden for name in names
        }
        self.times.append((began, time.monotonic()))
        return scores


class _StreamingSampler:
    """A worker's sampler, whose completions are scored as they finish; `times` are of its calls."""

    def __init__(
        self, sampler: Sampler, waiting: queue.SimpleQueue[_FinishedResponse | None]
    ) -> None:
        self.sampler, self.waiting = sampler, waiting
        self.times: list[tuple[float, float]] = []
        self._submitted: set[int] = set()

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

    def sync_values(self) -> dict[str, float]:
        """See `Sampler.sync_values`."""
        return self.sampler.sync_values()

    def submit(
        self, prompts: list[list[int]], finished: Iterable[tuple[int, Iterable[int]]]
    ) -> None:
        """Have those responses scored that are not yet."""
        for place, ids in finished:
            if place not in self._submitted:
                self._submitted.add(place)
                self.waiting.put(_FinishedResponse(place, prompts[place], list(ids)))


class RolloutWorker:
    """Inference worker: samples responses, and scores them with the frozen models at the same time.

    `local` samples from this worker's own copy of the student; its ranks are the worker's
    processes. `times` are of the sampler ("sampled") and of the scorer ("scored") of this process.
    """

    def __init__(self, local: LocalRollouts, anchor_every: int) -> None:
        self.local, self.anchor_every = local, anchor_every
        dtype = next(local.student.parameters()).dtype
        self.frozen = {name: frozen_copy(local.student, dtype, dtype) for name in SCORED}
        self.scorer = _ResponseScorer(self.frozen, local.encoding.pad_id, local.ranks)
        self.times: dict[str, list[tuple[float, float]]] = {
            "sampled": [],
            "scored": self.scorer.times,
        }

    def sample_and_score(
        self, step: int, names: Collection[str], count: int | None = None
    ) -> Rollouts | None:
        """The responses of a step, scored by the named frozen models; `scorer` has the scores.

        Every process of the worker calls this; the first one gets the responses. Before a step the
        anchor is refreshed if it is due; `count` is `LocalRollouts.collect`'s.
        """
        if count is None and step % self.anchor_every == 0:
            copy_parameters(self.frozen["anchor"], self.local.student)
        scorer, rollouts = self.scorer, None
        scorer.begin_step()
        with self.local.gathered(count):
            if not self.local.ranks.is_main:
                scorer.rounds(names, queue.SimpleQueue())
            else:
                with scorer.in_thread(names) as waiting:
                    streaming = _StreamingSampler(self.local.sampler, waiting)
                    rollouts = replace(self.local, sampler=streaming).draw(step, count)
                    # Of solutions of the pool nothing was sampled, and all are scored here.
                    streaming.submit(rollouts.student_prompts, enumerate(rollouts.responses))
                self.times["sampled"] += streaming.times
        return rollouts


@dataclass(frozen=True)
class WorkerLink:
    """Links the processes that train to those that sample, the last ones, by process groups.

    Weights travel in `transfer`, the first training rank and the worker's. `trainers` processes
    train; `worker` are the worker's, as one of them sees them, None in a training rank.
    """

    everyone: dist.ProcessGroup
    transfer: dist.ProcessGroup
    trainers: int
    worker: TrainingProcesses | None

    def share_command(self, command: tuple[Any, ...] | None = None) -> Any:
        """The first training rank's command; every process calls this, the worker without one."""
        return self._broadcast(command, 0)

    def share_rollouts(self, rollouts: Any = None) -> Any:
        """The rollouts of the worker's first process; all others call this without any."""
        return self._broadcast(rollouts, self.trainers)

    def copy_to_worker(self, tensor: Tensor, source: int = 0) -> Tensor:
        """Overwrite the worker's tensors by the first training rank's; every process calls this."""
        if self.everyone.rank() == 0 or self.worker is not None:
            dist.broadcast(tensor, src=source, group=self.transfer)
        return tensor

    def copy_from_worker(self, tensor: Tensor) -> Tensor:
        """Overwrite the first training rank's tensor by the worker's; every process calls this."""
        return self.copy_to_worker(tensor, source=self.trainers)

    def _broadcast(self, value: Any, source: int) -> Any:
        box = [value]
        dist.broadcast_object_list(
            box, src=source, group=self.everyone, device=training_process_device()
        )
        return box[0]


@dataclass(frozen=True)
class RemoteRollouts:
    """Rollouts of a worker in another process.

    `to_worker` counts the weights that the first training rank has sent to it, `to_engine` those
    that the worker has sent on to its sampler.
    """

    policy: Policy
    link: WorkerLink
    needs: frozenset[str]
    ranks: TrainingProcesses
    to_worker: Delivered = field(default_factory=Delivered)
    to_engine: Delivered = field(default_factory=Delivered)

    def record(self) -> dict[str, Any]:
        """For the manifest; the sampler is not in this process."""
        sent = {"to_worker": self.to_worker.record(), "to_engine": self.to_engine.record()}
        return {"engine": "of the worker", **{name: each for name, each in sent.items() if each}}

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """See `LocalRollouts.collect`."""
        # The objective's, or all of them.
        names = [name for name in SCORED if measured or name in self.needs]
        self.link.share_command(("rollouts", step, names, count))
        self._send_weights()
        rollouts, scored_by = self.link.share_rollouts()
        rollouts = self._with_syncs(rollouts)
        per_rank = len(rollouts.responses) // self.ranks.size
        first = self.ranks.rank * per_rank
        device = self.policy.device
        width = self.policy.model.config.hidden_size
        states: HiddenStates = {name: [None] * len(rollouts.responses) for name in names}
        for i in range(first, first + per_rank):
            for name in names:
                shape = (len(rollouts.responses[i]), width)
                states[name][i] = torch.empty(shape, dtype=self.policy.compute, device=device)
                dist.recv(states[name][i], src=self.link.trainers + scored_by[i])
        return rollouts, states

    def _send_weights(self) -> None:
        """Give the worker the student's weights: all ranks gather them, the first one sends."""
        began, sent = time.monotonic(), 0
        for _, value in weights_as_saved(self.policy.model, self.policy.compute):
            self.link.copy_to_worker(value)
            sent += value.nbytes
        if self.policy.device.type == "cuda":
            torch.cuda.synchronize(self.policy.device)
        self.to_worker.add(sent, time.monotonic() - began)

    def _with_syncs(self, rollouts: Rollouts) -> Rollouts:
        """Rollouts of the worker whose log values tell of both ways, where an engine has a copy."""
        values = rollouts.sync
        if not values:
            return rollouts
        self.to_engine.add(round(values["sync/gb"] * 1e9), values["sync/seconds"])
        return replace(rollouts, sync={**values, **self.to_worker.log_values("sync/worker")})

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


class WorkerReferenceHeads:
    """Heads of anchor and pi_0, whose rest `owner` has, with `policy.ReferenceModels`' methods."""

    average = None  # the teacher is no average
    purified = False  # but the live student

    def __init__(self, policy: Policy, owner: RemoteRollouts, anchor_every: int) -> None:
        self.policy, self.owner, self.anchor_every = policy, owner, anchor_every
        self.teacher = policy.model
        self.anchor, self.reference = policy.frozen_head(), policy.frozen_head()

    def refresh(self, step: int) -> None:
        """Refresh the anchor's head at the steps at which the worker refreshes the rest."""
        if step % self.anchor_every == 0:
            self.anchor = self.policy.frozen_head()

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that follow neither from the student nor from pi_0."""
        return {"anchor": self.owner.anchor_state_dict()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave, of this class or of `policy.ReferenceModels`."""
        self.owner.load_anchor_state_dict(state["anchor"])
        self.anchor.lm_head.weight.copy_(state["anchor"]["lm_head.weight"])


def serve_trainers(worker: RolloutWorker, link: WorkerLink) -> None:
    """Main loop of a worker's process: serves the trainers until `RemoteRollouts.end`."""
    anchor = worker.frozen["anchor"]
    while True:
        command, *values = link.share_command()
        if command == "end":
            return
        if command == "anchor":
            for _, value in weights_as_saved(anchor):
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
                dist.send(hidden, dst=i // per_rank)
