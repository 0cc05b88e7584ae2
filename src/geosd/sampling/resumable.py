"""Sampling that a kill does not undo: what has ended is kept, and a job goes on from there."""

from collections.abc import Callable, Sequence, Sized
from itertools import chain
from typing import Any, Literal

from geosd.preemption import PreemptionError
from geosd.sampling.kept_samples import Kept, KeptSamples
from geosd.sampling.paused_part import PartLeftError
from geosd.sampling.sampler import Completion, Sampler, SamplerPrompts, SamplingParams


def sample_resumably(
    sampler: Sampler,
    kept: KeptSamples[Kept],
    batches: Sequence[SamplerPrompts],
    sampling: SamplingParams,
    record_of: Callable[[int, Completion], Kept],
    stop_requested: Callable[[], bool],
) -> list[Kept]:
    """What is kept of each completion, by the prompt's place among all batches.

    With the same arguments a job that was killed, and goes on from what was kept, gives the
    completions of one that was not.

    Args:
        record_of: (place, completion) -> what is kept of it.
        stop_requested: Called after each chunk and, by a sampler that can leave one in the middle,
            before each token; true ends the job there.

    Raises:
        PreemptionError: `stop_requested`; what has ended is kept.
    """
    count = sum(len(batch.prompts) for batch in batches)
    rows = kept.load()
    new: dict[int, Kept] = {}
    paused = kept.paused_part()
    sampler.paused = paused
    sampler.stop_requested = stop_requested
    chunks = sampler.sample_chunks(batches, sampling, frozenset(rows))
    try:
        for chunk in chain([{}], chunks):  # first a chance to stop before all sampling
            for place in chunk.keys() - rows.keys():
                new[place] = record_of(place, chunk[place])
            stopping = stop_requested()
            last = len(rows) + len(new) == count
            if new and (last or stopping or len(new) >= sampler.chunk):
                kept.keep(new, sampler.record())
                paused.clear()
                rows, new = rows | new, {}
            if stopping and not last:
                raise PreemptionError(_asked_to_stop(rows, count))
    except PartLeftError:
        raise PreemptionError(_asked_to_stop(rows, count)) from None
    return [rows[place] for place in range(count)]


class ResumableSampler:
    """A sampler, for one call of `sample`, whose finished completions are kept.

    The rule `states` hands it to a training's `LocalRollouts`, which asks a sampler for a step's
    completions and knows of no kept ones. Attributes are those of `Sampler`.
    """

    def __init__(
        self,
        sampler: Sampler,
        kept: KeptSamples[Completion],
        stop_requested: Callable[[], bool],
    ) -> None:
        self._sampler, self._kept, self._stop_requested = sampler, kept, stop_requested
        self.copies_weights = sampler.copies_weights
        self.stop_requested = stop_requested

    def sample(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seed: int
    ) -> list[Completion]:
        """See `Sampler.sample`; PreemptionError where the job was asked to stop."""
        return sample_resumably(
            self._sampler,
            self._kept,
            [SamplerPrompts(prompts, seed)],
            sampling,
            lambda place, completion: completion,
            self._stop_requested,
        )

    def sync_values(self) -> dict[str, float]:
        """See `Sampler.sync_values`."""
        return self._sampler.sync_values()

    def record(self) -> dict[str, Any]:
        """See `Sampler.record`."""
        return self._kept.record()


def resumed_completion(ids: list[int], finish: Literal["stop", "length"]) -> Completion:
    """A completion from what is kept of it."""
    return Completion(tuple(ids), finish)


def _asked_to_stop(rows: Sized, count: int) -> str:
    return f"asked to stop after {len(rows)} of {count} samples; start again to go on from there"
