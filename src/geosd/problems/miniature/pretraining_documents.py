"""The documents that a base model of the miniature is trained on."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

from geosd.problems.miniature.chains import BENCHMARKS, Benchmark, draw_question, solve
from geosd.problems.miniature.prompts import MiniaturePrompts


@dataclass(frozen=True)
class PretrainingCorpus:
    """The distribution of the documents that a base model of the miniature is pretrained on.

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

    mixture: tuple[float, ...] = (0.35, 0.20, 0.15, 0.15, 0.15)
    jumps: tuple[float, ...] = (0.57, 0.32, 0.11)
    with_reference: float = 0.6
    reference_repeated: float = 0.75
    reference_truncated: float = 0.25


@dataclass(frozen=True)
class Document:
    """A pretraining document: a prompt and the solution that answers it."""

    prompt: str
    response: str


def draw_document(
    corpus: PretrainingCorpus, held_out: Collection[str], rng: random.Random
) -> Document:
    """Draw one pretraining document whose question is not held out.

    Held out are the questions of every train, select and test problem.
    """
    benchmark = rng.choices(BENCHMARKS, corpus.mixture)[0]
    question = _fresh_question(benchmark, held_out, rng)
    response = solve(question, rng, corpus.jumps)
    prompts = MiniaturePrompts()
    if rng.random() >= corpus.with_reference:
        return Document(prompts.student(question), response)
    reference = response
    if rng.random() >= corpus.reference_repeated:
        reference = solve(question, rng, corpus.jumps)
    if rng.random() < corpus.reference_truncated:
        reference = prompts.truncate_solution(reference, rng.random())
    return Document(prompts.teacher(question, reference), response)


def _fresh_question(benchmark: Benchmark, held_out: Collection[str], rng: random.Random) -> str:
    # Held-out questions are a vanishing share of the possible ones, so this ends at once.
    while (question := draw_question(benchmark, rng)) in held_out:
        pass
    return question
