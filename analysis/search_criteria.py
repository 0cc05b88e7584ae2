"""Measure base models of the search worlds against their criteria: search_criteria.md.

    python analysis/search_criteria.py --bases base_models/mini-*/[012]
    python analysis/search_criteria.py --bases BASE --twice BASE_OF_TWICE_THE_STEPS
    python analysis/search_criteria.py --world wide --bases BASE

No method is trained. Questions are drawn anew among those that no document asks, the same ones for
every base model.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles, stdev
from typing import Literal

import torch
import tyro

from geosd.models.forward import last_hidden_states
from geosd.models.load_and_save import load_model
from geosd.models.output_head import head_logits
from geosd.problems.encoding import Encoding
from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts, is_held_out_of_miniature
from geosd.problems.search.corpora import FAIL, PASS, SearchCorpus, WideCorpus
from geosd.problems.search.equations import SEARCH, EquationBenchmark, EquationPair, draw_equations
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.seeds import seed_of

WORLDS = {"search": (SearchCorpus(), (42, 52)), "wide": (WideCorpus(), (56, 66))}
"""Documents, and the caps of the studies."""
MISMATCH_STATES = 150  # problems with one rollout each whose states are compared


@dataclass(frozen=True)
class Sample:
    """A sampled response: its answer where it ended by itself, its tokens and words."""

    answer: str | None
    right: bool
    ended: bool
    ids: tuple[int, ...]
    text: str


@dataclass
class Measured:
    """Measurements of one base model of the search world.

    Attributes:
        accuracy: Benchmark -> avg@k of each problem.
        shares: Benchmark -> pass@k, false consensus, truncated, each in [0, 1].
        values: Numbers that the responses compute: right, all.
        verdicts: Comparisons of a computed number with the equation: right, all.
        student, teacher: Shares right at temperature 1 on problems with a verified solution.
        mismatch: Share of visited states with q* >= .8 and p* <= .1.
        p_stars: p* of these states.
    """

    accuracy: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    values: tuple[int, int] = (0, 0)
    verdicts: tuple[int, int] = (0, 0)
    student: float = 0.0
    teacher: float = 0.0
    mismatch: float = 0.0
    p_stars: list[float] = field(default_factory=list)

    def outside(self, which: int) -> float:
        """Mean of one of `shares` over the OOD benchmarks."""
        return fmean(self.shares[benchmark.name][which] for benchmark in SEARCH.benchmarks[1:])


def main(
    bases: list[Path],
    twice: Path | None = None,
    problems: int = 600,
    samples: int = 16,
    training_cap: int | None = None,
    evaluation_cap: int | None = None,
    seed: int = 0,
    world: Literal["search", "wide"] = "search",
) -> None:
    """Print each base model's accuracy by benchmark, then each criterion with its bounds.

    Args:
        bases: Folders of base models.
        twice: Folder of the first one's model after twice the steps; None leaves convergence out.
        problems: Of benchmark `id`; the others have half as many, the training problems a quarter.
        samples: Of each problem.
        training_cap: Tokens of a rollout at temperature 1; None is the studies' of that world.
        evaluation_cap: Tokens of a test sample, at temperature 0.6 and top-p 0.95; likewise.
        seed: Of all draws.
        world: The world of the problems. Problems of the wide world have worked solutions.
    """
    folders = [*bases, *([twice] if twice else [])]
    corpus, (training, evaluation) = WORLDS[world]
    caps = training_cap or training, evaluation_cap or evaluation
    measured = []
    names = [benchmark.name for benchmark in SEARCH.benchmarks]
    print(f"| base | {' | '.join(names)} | OOD |\n{'|---' * (len(names) + 2)}|")
    for folder in folders:
        numbers = measure(folder, problems, samples, *caps, seed, corpus)
        measured.append(numbers)
        means = [fmean(numbers.accuracy[name]) for name in names]
        cells = [f"{100 * mean:.1f}" for mean in (*means, fmean(means[1:]))]
        print(f"| {folder} | {' | '.join(cells)} |", flush=True)
    columns = [criteria(numbers, world == "wide") for numbers in measured]
    print("\n| criterion | bounds | " + " | ".join(map(str, folders)) + " |")
    print("|---" * (len(folders) + 2) + "|")
    for rows in zip(*columns, strict=True):
        name, _, low, high = rows[0]
        marked = [f"{v:.2f}" if low <= v <= high else f"**{v:.2f}**" for _, v, _, _ in rows]
        print(f"| {name} | {low:g} to {high:g} | {' | '.join(marked)} |")
    for folder, numbers in zip(folders, measured, strict=True):
        cuts = quantiles(numbers.p_stars, n=20)
        print(f"\n{folder}: p* at mismatch, 5th, 25th, 50th, 75th and 95th percentile:")
        print(", ".join(f"{cuts[at]:.5f}" for at in (0, 4, 9, 14, 18)))
    if twice:
        print("\n| twice the steps | change | s.e. | bounds |\n|---|---|---|---|")
        for name, chosen in (("ID", SEARCH.benchmarks[:1]), ("OOD", SEARCH.benchmarks[1:])):
            change, error = difference(measured[0], measured[-1], [b.name for b in chosen])
            print(f"| {name} | {change:+.2f} | {error:.2f} | -2 to 2 |")


def criteria(numbers: Measured, wide: bool = False) -> list[tuple[str, float, float, float]]:
    """Each criterion with its value and bounds, in per cent or points.

    In the wide world, where mismatch is no criterion, pi_0 checks, and rare values are not found.
    """
    cut, agree, mismatch = (60.0, 0.0, 0.0) if wide else (35.0, 2.0, 10.0)
    inside, *outside = map(fmean, numbers.accuracy.values())
    accuracies = [("ID", 100 * inside, 35.0, 65.0), ("OOD", 100 * fmean(outside), 35.0, 65.0)]
    return [
        ("numbers computed right", percent(*numbers.values), 99.5, 100.0),
        ("comparisons right", percent(*numbers.verdicts), 99.5, 100.0),
        ("mismatch of visited states", 100 * numbers.mismatch, mismatch, 100.0),
        ("teacher above student", 100 * (numbers.teacher - numbers.student), 25.0, 100.0),
        ("OOD pass@k", 100 * numbers.outside(0), 60.0, 95.0),
        ("OOD false consensus", 100 * numbers.outside(1), agree, 100.0),
        ("ID truncated", 100 * numbers.shares["id"][2], 5.0, cut),
        ("OOD truncated", 100 * numbers.outside(2), 5.0, cut),
        *(accuracies if wide else []),
    ]


def difference(one: Measured, other: Measured, names: Sequence[str]) -> tuple[float, float]:
    """Change of the mean accuracy over benchmarks, and its standard error, problems paired."""
    changes = [
        [100 * (b - a) for a, b in zip(one.accuracy[n], other.accuracy[n], strict=True)]
        for n in names
    ]
    variance = sum(stdev(change) ** 2 / len(change) for change in changes)
    return fmean(map(fmean, changes)), variance**0.5 / len(names)


def percent(right: int, total: int) -> float:
    """A share in per cent."""
    return 100 * right / total


def measure(
    folder: Path,
    problems: int,
    samples: int,
    training_cap: int,
    evaluation_cap: int,
    seed: int,
    corpus: SearchCorpus,
) -> Measured:
    """Sample one base model on all benchmarks and on training problems."""
    model, tokenizer = load_model(folder)
    encoding = Encoding(tokenizer, MiniaturePrompts())
    grade = MiniatureGrader()
    sampler = TransformersSampler(model, encoding.end_ids, encoding.pad_id)

    def sampled(
        prompts: Sequence[str],
        questions: Sequence[EquationPair],
        decoding: SamplingParams,
        purpose: str,
    ) -> list[Sample]:
        asked = [tokenizer(text, add_special_tokens=False).input_ids for text in prompts]
        drawn = []
        completions = sampler.sample(asked, decoding, seed_of(seed, purpose))
        for completion, question in zip(completions, questions, strict=True):
            text, ended = encoding.text(completion.ids), completion.finish == "stop"
            verdict = grade(text, str(question.answer()))
            answer = verdict.answer if ended else None
            drawn.append(Sample(answer, ended and verdict.correct, ended, completion.ids, text))
        return drawn

    numbers = Measured()
    prompts = MiniaturePrompts()
    values, verdicts = Counter(), Counter()
    for benchmark in corpus.world.benchmarks:
        rng = random.Random(seed_of(seed, "questions", benchmark.name))
        number = problems if benchmark.name == "id" else problems // 2
        questions = [draw_held_out(benchmark, rng) for _ in range(number)]
        asked = [question for question in questions for _ in range(samples)]
        decoding = SamplingParams(0.6, 0.95, evaluation_cap)
        drawn = sampled([prompts.student(str(q)) for q in asked], asked, decoding, benchmark.name)
        for question, sample in zip(asked, drawn, strict=True):
            count_operations(question, sample.text.split(), values, verdicts)
        groups = [drawn[at : at + samples] for at in range(0, len(drawn), samples)]
        numbers.accuracy[benchmark.name] = [fmean(s.right for s in group) for group in groups]
        numbers.shares[benchmark.name] = (
            fmean(any(s.right for s in group) for group in groups),
            fmean(falsely_agreed(group) for group in groups),
            fmean(not s.ended for s in drawn),
        )
    numbers.values = values[True], values.total()
    numbers.verdicts = verdicts[True], verdicts.total()

    rng = random.Random(seed_of(seed, "training questions"))
    questions = [draw_held_out(corpus.world.opposed, rng) for _ in range(problems // 4)]
    asked = [question for question in questions for _ in range(samples)]
    at_one = SamplingParams(1.0, 1.0, training_cap)
    pool = sampled([prompts.student(str(q)) for q in asked], asked, at_one, "pool")
    shown, first = [], []
    for at, question in enumerate(questions):
        group = pool[at * samples : (at + 1) * samples]
        worked = [corpus.verified(question, rng)] if isinstance(corpus, WideCorpus) else []
        if verified := [*worked, *(sample.text for sample in group if sample.right)]:
            shown.append((question, rng.choice(verified), fmean(s.right for s in group)))
            first.append(group[0].ids)
    teachers = [prompts.teacher(str(question), solution) for question, solution, _ in shown]
    repeated = [(t, q) for t, (q, _, _) in zip(teachers, shown, strict=True) for _ in range(8)]
    taught = sampled([t for t, _ in repeated], [q for _, q in repeated], at_one, "teacher")
    numbers.student = fmean(right for _, _, right in shown)
    numbers.teacher = fmean(sample.right for sample in taught)

    states = 0
    for teacher, (question, _, _), response in list(zip(teachers, shown, first, strict=True))[
        :MISMATCH_STATES
    ]:
        q_TV, p_TV = (
            probabilities(model, tokenizer(text, add_special_tokens=False).input_ids, response)
            for text in (teacher, prompts.student(str(question)))
        )
        q_T, best_T = q_TV.max(-1)
        p_T = p_TV.gather(1, best_T[:, None])[:, 0]
        states += len(p_T)
        numbers.p_stars += p_T[(q_T >= 0.8) & (p_T <= 0.1)].tolist()
    numbers.mismatch = len(numbers.p_stars) / states
    return numbers


def draw_held_out(benchmark: EquationBenchmark, rng: random.Random) -> EquationPair:
    """A question that no pretraining document asks."""
    while True:
        question = draw_equations(benchmark, rng)
        if is_held_out_of_miniature(str(question)):
            return question


def falsely_agreed(group: Sequence[Sample]) -> bool:
    """Whether three quarters of the samples agree on a wrong answer."""
    votes = Counter(s.answer for s in group if s.answer is not None and not s.right)
    return bool(votes) and max(votes.values()) >= 0.75 * len(group)


def count_operations(
    question: EquationPair, words: Sequence[str], values: Counter, verdicts: Counter
) -> None:
    """Count the numbers and the comparisons of a response: right (True) and wrong (False)."""
    x, second, segment = "", False, list[str]()
    for word in words:
        if word == "A:":
            return
        if word not in (FAIL, PASS):
            segment.append(word)
            continue
        if second:
            written = segment
        else:
            x = segment[0] if segment else ""
            written = segment[1:]
        if not x.isdigit() or len(written) not in (2, 4):
            values[False] += 1
            return
        expected = [str(value) for value in question.product_and_side(int(x), int(second))]
        for at, value in enumerate(written):
            values[value == expected[at % 2]] += 1
        target = (question.first, question.second)[second][2]
        verdicts[(word == PASS) == (written[-1] == str(target))] += 1
        second, segment = word == PASS, []


@torch.inference_mode()
def probabilities(
    model: torch.nn.Module, prompt: Sequence[int], response: Sequence[int]
) -> torch.Tensor:
    """The next token's distribution at each position of a response, T x V."""
    ids_BT = torch.tensor([[*prompt, *response]])
    hidden_BTH = last_hidden_states(model, ids_BT, torch.ones_like(ids_BT))
    return head_logits(model, hidden_BTH[0, len(prompt) - 1 : -1]).softmax(-1)


if __name__ == "__main__":
    tyro.cli(main)
