"""Measure a base model of the miniature against the band that docs/chains.md fixes.

    python examples/miniature_band.py --data results/data/chains-<digest> \\
        --base results/base/chains-qwen3-<digest>

Prints two Markdown tables. It looks at pi_0 alone: no method is trained.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import tyro

from geosd.files import read_jsonl
from geosd.models.checkpoints import load_model
from geosd.problems.encoding import Encoding
from geosd.problems.grading.miniature_grader import MiniatureGrader
from geosd.problems.miniature.prompts import MiniaturePrompts
from geosd.problems.records import Problem
from geosd.rollout.sampler import Completion, SamplingParams
from geosd.rollout.transformers_sampler import TransformersSampler
from geosd.seeds import seed_of

Asked = list[tuple[Problem, list[int]]]


def main(
    data: Path,
    base: Path,
    samples: int = 16,
    training_cap: int = 36,
    evaluation_cap: int = 56,
    seed: int = 0,
) -> None:
    """Print pi_0's accuracy by benchmark, and what its pool and its teacher are like.

    Args:
        data: Folder of a study's problems.
        base: Folder of its base model.
        samples: Of each test problem, and rollouts of each training problem.
        training_cap: Tokens of a rollout at temperature 1.
        evaluation_cap: Tokens of a test sample, at temperature 0.6 and top-p 0.95.
        seed: Of all draws.
    """
    model, tokenizer = load_model(base)
    encoding = Encoding(tokenizer, MiniaturePrompts())
    grade = MiniatureGrader()
    sampler = TransformersSampler(model, encoding.end_ids, encoding.pad_id)

    def sampled(
        asked: Asked, decoding: SamplingParams, purpose: str
    ) -> list[tuple[Completion, bool]]:
        """Completions and whether each one ended with the right answer."""
        completions = sampler.sample([ids for _, ids in asked], decoding, seed_of(seed, purpose))
        return [
            (c, c.finish == "stop" and grade(encoding.text(c.ids), p.answer).correct)
            for c, (p, _) in zip(completions, asked, strict=True)
        ]

    print(f"| benchmark | avg@{samples} | pass@{samples} | truncated | tokens |")
    print("|---|---|---|---|---|")
    benchmarks = defaultdict(list)
    for problem in read_jsonl(data / "test.jsonl", Problem):
        benchmarks[problem.benchmark].append(problem)
    outside = []
    for name, problems in benchmarks.items():
        asked = [(p, encoding.student(p)) for p in problems for _ in range(samples)]
        drawn = sampled(asked, SamplingParams(0.6, 0.95, evaluation_cap), name)
        right = [correct for _, correct in drawn]
        solved = [any(right[at : at + samples]) for at in range(0, len(right), samples)]
        cut = [completion.finish == "length" for completion, _ in drawn]
        tokens = sum(len(completion.ids) for completion, _ in drawn) / len(drawn)
        print(f"| {name} | {mean(right)} | {mean(solved)} | {mean(cut)} | {tokens:.1f} |")
        if name != "id":
            outside.append(sum(right) / len(right))
    print(f"| OOD average | {100 * sum(outside) / len(outside):.1f} | | | |\n")

    at_one = SamplingParams(1.0, 1.0, training_cap)
    train = read_jsonl(data / "train.jsonl", Problem)
    asked = [(p, encoding.student(p)) for p in train for _ in range(samples)]
    student = sampled(asked, at_one, "pool")
    pool = defaultdict(set)
    for (problem, _), (completion, correct) in zip(asked, student, strict=True):
        if correct:
            pool[problem].add(encoding.text(completion.ids))
    draw = random.Random(seed_of(seed, "solutions"))
    shown = [(p, draw.choice(sorted(pool[p]))) for p in pool for _ in range(8)]
    teacher = sampled([(p, encoding.teacher(p, s)) for p, s in shown], at_one, "teacher")
    repeated = [encoding.text(c.ids) == s for (c, _), (_, s) in zip(teacher, shown, strict=True)]
    easier = [correct for (p, _), (_, correct) in zip(asked, student, strict=True) if p in pool]
    print("| on the training problems, temperature 1 | |\n|---|---|")
    print(f"| student | {mean([correct for _, correct in student])} |")
    print(f"| student, on problems with a verified solution | {mean(easier)} |")
    print(f"| teacher, shown a verified solution | {mean([correct for _, correct in teacher])} |")
    print(f"| teacher that repeats the solution | {mean(repeated)} |")
    print(f"| student truncated | {mean([c.finish == 'length' for c, _ in student])} |")
    print(f"| problems with a verified solution | {len(pool)} of {len(train)} |")
    print(f"| distinct verified solutions | {sum(map(len, pool.values()))} |")


def mean(values: list[bool]) -> str:
    """A share in per cent."""
    return f"{100 * sum(values) / len(values):.1f}"


if __name__ == "__main__":
    tyro.cli(main)
