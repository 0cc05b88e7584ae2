"""Rollouts and frozen models on inference workers, optimisation on training ranks.

A worker has a copy of the student, which is given the trainers' weights before each step, and the
anchor and pi_0. It samples, and scores each response as soon as it is finished, while it samples
the others. Hidden states cross to the trainers, not logits: these keep the frozen models' output
heads alone, so the support stays the exact union, and D numbers a token travel and not V. The same
`Worker` serves a trainer in its own process (`Beside`) or in others (`Across`).

Source: the paper, appendix "Hardware" and "Checkpoint placement".

T = tokens of a response, D = hidden width.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import Tensor, nn

from geosd.models.forward import last_hidden_states
from geosd.rollout.sampler import Completion, Decoding, Sampler
from geosd.rollout.weight_transfer import named_weights
from geosd.training.copies import frozen_copy, overwrite
from geosd.training.packing import pack
from geosd.training.processes import Link, Ranks
from geosd.training.rollouts import Rollouts
from geosd.training.run import Here, Seen

SCORED = ("anchor", "reference")
"""Frozen models that read the student's prompt; the teacher is the student, with its trainers."""


@dataclass
class Times:
    """When things happened on a worker, in seconds of one clock.

    Attributes:
        sampled: Beginning and end of each call of the sampler.
        scored: Beginning and end of the scoring of each response.
    """

    sampled: list[tuple[float, float]] = field(default_factory=list)
    scored: list[tuple[float, float]] = field(default_factory=list)

    def overlap(self) -> float:
        """Seconds of scoring that passed while the sampler was still at work."""
        return sum(
            max(0.0, min(end, stop) - max(begin, start))
            for start, stop in self.sampled
            for begin, end in self.scored
        )


class Worker:
    """Samples responses and scores them while it samples others.

    Args:
        here: Samples from this worker's own copy of the student.
        anchor_every: Steps between refreshes of the anchor.
    """

    def __init__(self, here: Here, anchor_every: int) -> None:
        """Copy pi_0, which the student is now."""
        self.here, self.anchor_every = here, anchor_every
        self.frozen = {name: frozen_copy(here.student) for name in SCORED}
        self.times = Times()

    @torch.no_grad()
    def renew(self, weights: Iterable[Tensor], step: int) -> None:
        """Take the trainers' weights, in the parameters' order; refresh the anchor if it is due."""
        for mine, theirs in zip(self.here.student.parameters(), weights, strict=True):
            mine.copy_(theirs)
        if step % self.anchor_every == 0:
            overwrite(self.frozen["anchor"], self.here.student)

    def step(self, step: int, names: Collection[str]) -> tuple[Rollouts, Seen]:
        """The responses of a step, and what the named frozen models see in them."""
        with ThreadPoolExecutor(1) as pool:
            watched = Watched(self.here.sampler, self, names, pool)
            rollouts, _ = Here(**{**vars(self.here), "sampler": watched}).collect(step, False)
            if not watched.scores:  # nothing was sampled: solutions of the pool
                watched.finished(rollouts.student, enumerate(rollouts.responses))
            scores = [watched.scores[i].result() for i in range(len(rollouts.responses))]
        return rollouts, {name: [score[name] for score in scores] for name in names}

    @torch.no_grad()
    def score(
        self, prompt: list[int], response: list[int], names: Collection[str]
    ) -> dict[str, Tensor]:
        """Hidden states [T, D] of the named models that predict each token of a response."""
        began = time.monotonic()
        device = next(self.here.student.parameters()).device
        packed = pack([prompt], [response], self.here.encoding.pad_id, device)
        found = {}
        for name in names:
            hidden = last_hidden_states(self.frozen[name], packed.ids, packed.mask)
            found[name] = hidden[packed.row, packed.column]
        self.times.scored.append((began, time.monotonic()))
        return found


class Watched:
    """A sampler whose completions go to be scored as they are finished.

    One that tells (`on_finish`) does so while it goes on with the others; of another, all
    completions are scored when it is done.
    """

    def __init__(
        self, sampler: Sampler, worker: Worker, names: Collection[str], pool: ThreadPoolExecutor
    ) -> None:
        """Score nothing yet."""
        self.sampler, self.worker, self.names, self.pool = sampler, worker, names, pool
        self.scores: dict[int, Future] = {}

    def sample(self, prompts: list[list[int]], decoding: Decoding, seed: int) -> list[Completion]:
        """See `Sampler.sample`."""
        began = time.monotonic()
        tells = hasattr(self.sampler, "on_finish")
        if tells:
            self.sampler.on_finish = lambda place, done: self.finished(prompts, [(place, done.ids)])
        try:
            completions = self.sampler.sample(prompts, decoding, seed)
        finally:
            if tells:
                self.sampler.on_finish = None
        self.worker.times.sampled.append((began, time.monotonic()))
        self.finished(prompts, ((i, done.ids) for i, done in enumerate(completions)))
        return completions

    def finished(self, prompts: list[list[int]], done: Iterable[tuple[int, Iterable[int]]]) -> None:
        """Have responses scored that are not yet."""
        for place, ids in done:
            if place not in self.scores:
                self.scores[place] = self.pool.submit(
                    self.worker.score, prompts[place], list(ids), self.names
                )


@dataclass(frozen=True)
class Beside:
    """Experience of a worker in the trainer's own process; see `geosd.training.run.Experience`."""

    student: nn.Module
    worker: Worker
    needs: frozenset[str]

    @property
    def sampler(self) -> Sampler:
        """What samples."""
        return self.worker.here.sampler

    def collect(self, step: int, measured: bool) -> tuple[Rollouts, Seen]:
        """See `Experience.collect`."""
        self.worker.renew((value for _, value in named_weights(self.student)), step)
        return self.worker.step(step, asked(self.needs, measured))

    def anchor(self) -> dict[str, Tensor]:
        """The anchor's weights."""
        return self.worker.frozen["anchor"].state_dict()

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor` gave."""
        self.worker.frozen["anchor"].load_state_dict(weights)


@dataclass(frozen=True)
class Across:
    """Experience of workers in other processes; see `geosd.training.run.Experience`."""

    student: nn.Module
    link: Link
    needs: frozenset[str]
    ranks: Ranks
    compute: torch.dtype

    @property
    def sampler(self) -> Across:
        """Says of itself what a sampler says: the engine is the worker's."""
        return self

    def record(self) -> dict[str, str]:
        """For the manifest."""
        return {"engine": "of the worker"}

    def collect(self, step: int, measured: bool) -> tuple[Rollouts, Seen]:
        """See `Experience.collect`."""
        names = asked(self.needs, measured)
        self.link.tell(("step", step, names))
        for _, value in named_weights(self.student):  # every trainer gathers, the first one sends
            self.link.weights(value.to(self.compute))
        rollouts = self.link.hear()
        share = len(rollouts.responses) // self.ranks.size
        mine = range(self.ranks.rank * share, (self.ranks.rank + 1) * share)
        some, width = next(self.student.parameters()), self.student.config.hidden_size
        seen: Seen = {name: [None] * len(rollouts.responses) for name in names}
        for i in mine:
            for name in names:
                shape = (len(rollouts.responses[i]), width)
                hidden = torch.empty(shape, dtype=self.compute, device=some.device)
                dist.recv(hidden, src=self.link.worker)
                seen[name][i] = hidden
        return rollouts, seen

    def anchor(self) -> dict[str, Tensor]:
        """The anchor's weights as a model's `state_dict` has them, on the first rank's CPU."""
        self.link.tell(("anchor",))
        found = {}
        for name, mine in self.student.named_parameters():
            value = torch.empty(mine.shape, dtype=self.compute, device=mine.device)
            value = self.link.weights(value, self.link.worker)
            found[name] = value.cpu() if self.ranks.first else torch.empty(0)
        if self.student.config.tie_word_embeddings:
            found["lm_head.weight"] = found["model.embed_tokens.weight"]
        return found

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor` gave."""
        self.link.tell(("restore",))
        for name, mine in self.student.named_parameters():
            self.link.weights(weights[name].to(mine.device, self.compute))

    def end(self) -> None:
        """Let the workers go home."""
        self.link.tell(("end",))


def serve(worker: Worker, link: Link, trainers: int) -> None:
    """Be the worker of `trainers` training ranks in other processes until they are done."""
    dtype = next(worker.here.student.parameters()).dtype
    while True:
        command, *values = link.told()
        if command == "end":
            return
        anchor = worker.frozen["anchor"]
        if command == "anchor":
            for parameter in anchor.parameters():
                link.weights(parameter.data, link.worker)
        elif command == "restore":
            for parameter in anchor.parameters():
                link.weights(parameter.data)
        else:
            step, names = values
            worker.renew(_arriving(worker.here.student, link), step)
            rollouts, seen = worker.step(step, names)
            link.say(rollouts)
            share = len(rollouts.responses) // trainers
            for i in range(share * trainers):
                for name in names:
                    dist.send(seen[name][i].to(dtype).contiguous(), dst=i // share)


def _arriving(student: nn.Module, link: Link) -> Iterator[Tensor]:
    for parameter in student.parameters():
        yield link.weights(torch.empty_like(parameter))


def asked(needs: frozenset[str], measured: bool) -> list[str]:
    """Which frozen models are to score: those that the objective reads, or all for the log."""
    return [name for name in SCORED if measured or name in needs]
