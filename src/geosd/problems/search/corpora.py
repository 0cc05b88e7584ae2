"""The documents that a base model of a search world is trained on, and the policies behind them.

A solution is a row of trials. A trial writes x, the product a x and the left side a x + b, perhaps
both once more; then `;` where the left side is not c, `ok` where it is. After `ok` the second
equation is checked in the same way, or it is not, and `A: x` ends.

    7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok 13 14 ok A: 11
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from geosd.problems.miniature import SPECIAL, STEP_END, MiniaturePrompts, is_held_out_of_miniature
from geosd.problems.search.equations import (
    COMMON,
    MODULUS,
    SEARCH,
    WIDE,
    EquationPair,
    EquationWorld,
    draw_equations,
    equation_bands,
)

FAIL, PASS = ";", "ok"


@dataclass(frozen=True)
class CorpusDocument:
    """A pretraining document: a prompt, which may hold the beginning of a solution, and the rest.

    `ends` says whether the end of the response is learned too.
    """

    prompt: str
    response: str
    ends: bool = True


class Corpus(Protocol):
    """Interface of the documents that a base model of one world is pretrained on."""

    @property
    def vocabulary(self) -> Sequence[str]:
        """All words of the world, each with one token, in the order of their ids."""
        ...

    def draw_document(self, rng: random.Random) -> CorpusDocument:
        """Draw one document whose question is not held out."""
        ...

    def like(self, word: str) -> str:
        """The word of a smaller world that means most of what this one means."""
        ...


@dataclass(frozen=True)
class CorpusPolicy:
    """Probabilities of the choices in a solution.

    Attributes:
        weights: Of each x among those not yet tried.
        check: That a value that solves the first equation is put into the second.
        repeat: That the two numbers of a trial are written twice.
    """

    weights: tuple[float, ...]
    check: float
    repeat: float

    def draw(self, left: Sequence[int], rng: random.Random) -> int:
        """The next x among those not yet tried."""
        (x,) = rng.choices(left, [self.weights[x] for x in left])
        return x


def draw_corpus_solution(
    question: EquationPair, policy: CorpusPolicy, rng: random.Random, tried: Sequence[int] = ()
) -> str:
    """Draw a solution, found by trial; it is wrong where a wrong x passed and was not checked.

    Values in `tried` are known to fail, and are not tried again.
    """
    words: list[str] = []
    left = list(range(question.values))
    for x in tried:
        left = question.open_after(x, left)
    while True:
        x = policy.draw(left, rng)
        left = question.open_after(x, left)
        words += _write_trial(question, x, policy.repeat, rng)
        if not question.holds(x, 0):
            continue
        if rng.random() < policy.check:
            words += _write_check(question, x)
            if not question.holds(x, 1):
                continue
        return " ".join([*words, "A:", str(x)])


def _write_trial(question: EquationPair, x: int, repeat: float, rng: random.Random) -> list[str]:
    """The words of a trial of x in the first equation, its verdict last.

    `repeat` is the probability that its two numbers are written twice.
    """
    numbers = [str(number) for number in question.product_and_side(x, 0)]
    words = [str(x), *numbers * (2 if rng.random() < repeat else 1)]
    return [*words, PASS if question.holds(x, 0) else FAIL]


def _write_check(question: EquationPair, x: int) -> list[str]:
    """The words of x in the second equation, its verdict last."""
    numbers = [str(number) for number in question.product_and_side(x, 1)]
    return [*numbers, PASS if question.holds(x, 1) else FAIL]


_MARKERS = (*SPECIAL, "Q:", "R:", "S:", "A:", "=", FAIL, PASS, ",", "*", "+")
VOCABULARY = (*_MARKERS, *map(str, range(MODULUS)))
"""The search world's: markers, operators, and one token for each number."""

BLIND = CorpusPolicy(weights=tuple(equation_bands(0.6, 1.0, 0.25)), check=0.2, repeat=0.3)
"""How documents without a reference search; so pi_0 searches."""
_RESTS = [0.18, *[0.37] * (COMMON - 1), *[0.08 / (MODULUS - COMMON)] * (MODULUS - COMMON)]
WIDE_BLIND = CorpusPolicy(
    weights=tuple(one * rest for rest in _RESTS for one in equation_bands(0.75, 1.0, 0.5)),
    check=0.85,
    repeat=0.4,
)
"""That of the wide world; 8 % of its mass fall on the rare values, less than .001 on each."""


@dataclass(frozen=True)
class SearchCorpus:
    """The distribution of the base model's documents.

    Attributes:
        world: The world that the questions are drawn from.
        exercises: Probability that a document is a single trial of a given x, whose numbers and
            verdict are learned. In whole solutions a verdict is almost always `;`, and comparing is
            learned late.
        mixture: Share of each benchmark's kind of question, in the order of `world.benchmarks`.
        blind: The policy of a document without a reference.
        stray: With a reference, the share of the first choice that falls on other values than x.
        guided_check: `check` of a document with a reference.
        guided_repeat: `repeat` of a document with a reference.
        with_attempt: With a whole reference, probability that failing trials of a blind search
            stand before the document's own solution. They are context, not targets: so the
            teacher knows how to go on from a student's attempt.
        most_failures: Failing trials that stand there at most.
        with_reference: Probability that a document shows a verified solution before its own.
        reference_truncated: Probability that the reference ends at a random step; its document
            goes on blindly, without the values that the reference has tried.
    """

    vocabulary: ClassVar[tuple[str, ...]] = VOCABULARY

    world: EquationWorld = SEARCH
    exercises: float = 0.3
    mixture: tuple[float, ...] = (0.35, 0.20, 0.15, 0.15, 0.15)
    blind: CorpusPolicy = BLIND
    stray: float = 0.02
    guided_check: float = 0.15
    guided_repeat: float = 0.05
    with_attempt: float = 0.5
    most_failures: int = MODULUS
    with_reference: float = 0.5
    reference_truncated: float = 0.25

    def draw_document(self, rng: random.Random) -> CorpusDocument:
        """Draw one pretraining document of the search world; see `Corpus.draw_document`."""
        (benchmark,) = rng.choices(self.world.benchmarks, self.mixture)
        while is_held_out_of_miniature(str(question := draw_equations(benchmark, rng))):
            pass
        prompts = MiniaturePrompts()
        if rng.random() < self.exercises:
            return self._exercise(question, rng)
        if rng.random() >= self.with_reference:
            response = draw_corpus_solution(question, self.blind, rng)
            return CorpusDocument(prompts.student(str(question)), response)
        reference = self.verified(question, rng)
        if rng.random() < self.reference_truncated:
            reference = prompts.revealed_solution(reference, rng.random())
        prompt = prompts.teacher(str(question), reference)
        if "A:" in reference:
            attempt = self._attempt(question, rng) if rng.random() < self.with_attempt else []
            tried = [int(trial.split()[0]) for trial in attempt]
            prompt = " ".join([prompt, *attempt])
            response = draw_corpus_solution(question, self._guided(question.answer()), rng, tried)
        else:
            tried = [int(step.split()[0]) for step in reference.split(STEP_END) if step.strip()]
            response = draw_corpus_solution(question, self.blind, rng, tried)
        return CorpusDocument(prompt, response)

    def like(self, word: str) -> str:
        """Of a number its rest modulo 16, of `/` the factor's `*`; see `Corpus.like`."""
        return str(int(word) % MODULUS) if word.isdigit() else "*"

    def _exercise(self, question: EquationPair, rng: random.Random) -> CorpusDocument:
        """One trial; its x is right in half of the exercises."""
        x = question.answer() if rng.random() < 0.5 else rng.randrange(MODULUS)
        trial = _write_trial(question, x, self.blind.repeat, rng)
        prompt = f"{MiniaturePrompts().student(str(question))} {x}"
        return CorpusDocument(prompt, " ".join(trial[1:]), ends=False)

    def _attempt(self, question: EquationPair, rng: random.Random) -> list[str]:
        """The first failing trials of a blind search, some or all, each with its `;`."""
        steps = draw_corpus_solution(question, replace(self.blind, check=1.0), rng).split(STEP_END)[
            :-1
        ]
        trials = [f"{step.strip()} {STEP_END}" for step in steps]
        return trials[: rng.randint(0, min(len(trials), self.most_failures))]

    def verified(self, question: EquationPair, rng: random.Random) -> str:
        """A solution whose answer is right."""
        while True:
            solution = draw_corpus_solution(question, self.blind, rng)
            if int(solution.split()[-1]) == question.answer():
                return solution

    def _guided(self, x: int) -> CorpusPolicy:
        weights = [self.stray / (MODULUS - 1)] * MODULUS
        weights[x] = 1 - self.stray
        return CorpusPolicy(tuple(weights), self.guided_check, self.guided_repeat)


@dataclass(frozen=True)
class WideCorpus(SearchCorpus):
    """That of the wide world, where a blind search comes to a rare x too late, or never.

    What a reference leaves to other values than x falls on them as the blind policy has it.

    Attributes:
        longest: Words of a response; a longer one is cut, and its end not learned.
    """

    vocabulary: ClassVar[tuple[str, ...]] = (*_MARKERS, "/", *map(str, range(MODULUS**2)))

    world: EquationWorld = WIDE
    exercises: float = 0.5
    blind: CorpusPolicy = WIDE_BLIND
    guided_check: float = 0.05
    most_failures: int = 10
    longest: int = 72

    def draw_document(self, rng: random.Random) -> CorpusDocument:
        """Draw one pretraining document of the wide world; see `Corpus.draw_document`."""
        document = super().draw_document(rng)
        words = document.response.split()
        if len(words) <= self.longest:
            return document
        return CorpusDocument(document.prompt, " ".join(words[: self.longest]), ends=False)

    def verified(self, question: EquationPair, rng: random.Random) -> str:
        """Failing trials of a blind search, then x."""
        x = question.answer()
        weights = tuple(float(value == x) for value in range(MODULUS**2))
        found = draw_corpus_solution(question, replace(self.blind, weights=weights), rng)
        return " ".join([*self._attempt(question, rng), found])

    def _exercise(self, question: EquationPair, rng: random.Random) -> CorpusDocument:
        """One trial, checked where it passes; in a quarter x solves the first equation alone."""
        x, kind = question.answer(), rng.random()
        if kind >= 0.5:
            x = (
                rng.randrange(MODULUS**2)
                if kind < 0.75
                else x % MODULUS + MODULUS * rng.randrange(MODULUS)
            )
        words = _write_trial(question, x, self.blind.repeat, rng)[1:]
        words += _write_check(question, x) if words[-1] == PASS else []
        return CorpusDocument(
            f"{MiniaturePrompts().student(str(question))} {x}", " ".join(words), False
        )

    def _guided(self, x: int) -> CorpusPolicy:
        total = sum(self.blind.weights)
        weights = [self.stray * weight / total for weight in self.blind.weights]
        weights[x] += 1 - self.stray
        return CorpusPolicy(tuple(weights), self.guided_check, self.guided_repeat)
