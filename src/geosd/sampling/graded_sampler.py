"""Samples of problems, each graded when it ends: what a pool and an evaluation are made from.

What a kill leaves of them lies in a scratch folder that no workflow knows, as the states of a
training do (`geosd.training.resume_state`), in a file for each chunk that the sampler finished.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from geosd.models.load_and_save import load_tokenizer
from geosd.preemption import catch_sigterm
from geosd.problems.encoding import Encoding, encoding_of
from geosd.problems.grading import Grader, judge_response
from geosd.problems.records import Problem, SampleRecord
from geosd.problems.sources import DataSource, get_data_source
from geosd.sampling.broken_logits import name_broken_logits
from geosd.sampling.engines import build_sampler, resolve_engine
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.resumable import sample_resumably
from geosd.sampling.sampler import Completion, Sampler, SamplerPrompts, SamplingParams

logger = logging.getLogger(__name__)


class GradedDraw(NamedTuple):
    """Samples of problems that share a seed, whatever else is drawn.

    `numbers` are those of each problem's samples.
    """

    problems: Sequence[Problem]
    numbers: range
    seed: int


@dataclass(frozen=True)
class GradedSampler:
    """Draws samples of problems and grades them; the student's prompt shows no solution.

    Attributes:
        kept: Where samples are kept that have ended.
        stop_requested: Called after each chunk and, by a sampler that can leave one in the middle,
            before each token; true ends the job there.
    """

    sampler: Sampler
    encoding: Encoding
    grade: Grader
    kept: KeptSamples[SampleRecord]
    stop_requested: Callable[[], bool] = lambda: False

    def draw(self, draws: Sequence[GradedDraw], sampling: SamplingParams) -> list[SampleRecord]:
        """The samples, draw by draw, those of a problem together.

        With the same arguments a job that was killed, and goes on from what was kept, gives the
        samples of one that was not.

        Raises:
            PreemptionError: The scheduler sent SIGTERM; what has ended is kept.
        """
        places = [(one, number) for d in draws for one in d.problems for number in d.numbers]
        problems = list(dict.fromkeys(problem for problem, _ in places))
        prompts = {problem: self.encoding.student(problem) for problem in problems}
        batches = [
            SamplerPrompts([prompts[one] for one in d.problems for _ in d.numbers], d.seed)
            for d in draws
        ]
        with name_broken_logits([problem for problem, _ in places]):
            return sample_resumably(
                self.sampler,
                self.kept,
                batches,
                sampling,
                lambda place, completion: self._judged(*places[place], completion),
                self.stop_requested,
            )

    def _judged(self, problem: Problem, number: int, completion: Completion) -> SampleRecord:
        text = self.encoding.text(completion.ids)
        verdict = judge_response(
            text,
            problem.answer,
            self.grade,
            truncated=completion.finish == "length",
            opened_thought=self.encoding.opens_thought,
        )
        return SampleRecord(
            benchmark=problem.benchmark,
            problem_id=problem.id,
            sample=number,
            text=text,
            tokens=len(completion.ids),
            answer=verdict.answer,
            correct=verdict.correct,
            finish=completion.finish,
            reason=verdict.reason,
        )


class _OpenedCheckpoint(NamedTuple):
    """A checkpoint opened for graded samples; `precision` is that of the engine on this machine."""

    source: DataSource
    encoding: Encoding
    sampler: Sampler
    precision: str

    @contextmanager
    def graded(self, kept: KeptSamples[SampleRecord]) -> Iterator[GradedSampler]:
        """Context of its samples, graded and kept as they end; SIGTERM ends a draw in between."""
        with closing(self.source.grader()) as grade, catch_sigterm() as stop_requested:
            yield GradedSampler(self.sampler, self.encoding, grade, kept, stop_requested)


def open_graded_sampler(
    folder: Path, settings: Mapping[str, Any], progress: str, model: nn.Module | None = None
) -> _OpenedCheckpoint:
    """Open a checkpoint to draw graded samples of it.

    `settings` are a job's: `source`, `thinking` and `wording` of the section data, and `rollout`;
    `progress` and `model` as `build_sampler` takes them.
    """
    tokenizer, generation = load_tokenizer(folder)
    source = get_data_source(settings["source"])
    encoding = encoding_of(settings, tokenizer, generation)
    engine = resolve_engine(settings["rollout"])
    sampler = build_sampler(engine, folder, encoding, model, progress=progress)
    return _OpenedCheckpoint(source, encoding, sampler, engine["precision"])
