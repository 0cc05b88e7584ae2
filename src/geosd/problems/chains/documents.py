"""The documents that a base model of the chains world is pretrained on."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from geosd.problems.chains.questions import BENCHMARKS, draw_question, solve
from geosd.problems.held_out import is_held_out
from geosd.problems.miniature.prompts import MiniaturePrompts
from geosd.problems.miniature.tokenizer import SPECIAL
from geosd.problems.pretraining_corpus import Document

MARKERS = ("Q:", "R:", "S:", "A:", "=", ";")
OPERATORS = ("+", "-", "*")
VOCABULARY = (*SPECIAL, *MARKERS, *OPERATORS, *"0123456789")
"""The chains world's: markers, operators, and one token for each digit."""


@dataclass(frozen=True)
class ChainCorpus:
    """The distribution of the documents that a base model of the chains world is pretrained on.

    Attributes:
        mixture: Share of each benchmark's kind of question, in the order of `BENCHMARKS`.
        jumps: Probabilities of steps that take 1, 2, 3 operations.
        with_reference: Probability that a document shows a reference solution before its own.
        reference_repeated: Probability that a document with a reference repeats it; otherwise the
            document solves anew. So the teacher learns to use a reference, and how far to
            trust it.
        reference_truncated: Probability that a reference ends at a random step: the base model
            has seen partial privilege before any teacher is given it.
    """

    vocabulary: ClassVar[tuple[str, ...]] = VOCABULARY

    mixture: tuple[float, ...] = (0.35, 0.20, 0.15, 0.15, 0.15)
    jumps: tuple[float, ...] = (0.57, 0.32, 0.11)
    with_reference: float = 0.6
    reference_repeated: float = 0.75
    reference_truncated: float = 0.25

    def draw_document(self, rng: random.Random) -> Document:
        """Draw one pretraining document of the chains world; see `Corpus.draw_document`."""
        benchmark = rng.choices(BENCHMARKS, self.mixture)[0]
        while is_held_out(question := draw_question(benchmark, rng)):
            pass
        response = solve(question, rng, self.jumps)
        prompts = MiniaturePrompts()
        if rng.random() >= self.with_reference:
            return Document(prompts.student(question), response)
        reference = response
        if rng.random() >= self.reference_repeated:
            reference = solve(question, rng, self.jumps)
        if rng.random() < self.reference_truncated:
            reference = prompts.truncate_solution(reference, rng.random())
        return Document(prompts.teacher(question, reference), response)
