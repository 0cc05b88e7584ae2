"""Whether a base model that reads a verified solution answers better: the premise of distillation.

    python analysis/teacher_accuracy.py --source word-problems --cap 48 \\
        --base results/base/smollm2-135m-* --problems results/data/*/train.jsonl \\
        --pool results/pool/smollm2-135m-*/pool.jsonl

Student and teacher answer the training problems that have a verified solution, at temperature 1 as
in training. pi_0 solves such problems at times, so the student is better on them than
elsewhere. With `--wordings` several wordings of the teacher's turn are tried on pi_0, as here for
docs/problems.md:

    --wordings '{question}
    Reference solution:
    {solution}
    {instruction}' ...
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import tyro

from geosd.models.load_and_save import load_tokenizer
from geosd.models.precision import resolve_precision
from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.encoding import Encoding, encoding_of
from geosd.problems.grading import Grader
from geosd.problems.records import Problem, read_problems
from geosd.problems.sources import get_data_source
from geosd.sampling.engines import build_sampler
from geosd.sampling.sampler import Sampler, SamplingParams
from geosd.sampling.solution_pool import read_pool
from geosd.training.processes import training_process_device


def shares(
    problems: Sequence[Problem],
    prompts: Sequence[Sequence[int]],
    sampler: Sampler,
    encoding: Encoding,
    grade: Grader,
    samples: int,
    sampling: SamplingParams,
) -> tuple[float, float]:
    """Shares of responses that are right, and that end by themselves; a prompt for each problem."""
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    golds = [problem.answer for problem in problems for _ in range(samples)]
    responses = sampler.sample(repeated, sampling, seed=0)
    pairs = zip(responses, golds, strict=True)
    right = sum(grade(encoding.text(one.ids), gold).correct for one, gold in pairs)
    ended = sum(one.finish == "stop" for one in responses)
    return right / len(responses), ended / len(responses)


def main(
    source: str,
    base: Path,
    problems: Path,
    pool: Path,
    cap: int,
    samples: int = 8,
    temperature: float = 1.0,
    thinking: bool = False,
    wordings: tuple[str, ...] = (),
) -> None:
    """Print how often student and teacher are right, and how often they end.

    Args:
        source: The data source, whose prompts and grader are used.
        base: Folder of the base model.
        problems: Training problems.
        pool: Their verified solutions; the teacher reads the first one of a problem.
        cap: Tokens of a response.
        samples: Responses to each problem.
        temperature: Of both.
        thinking: As `data.thinking`.
        wordings: Turns of the teacher of a chat model, with places {question}, {solution} and
            {instruction}; without any, that of the data source.

    Raises:
        ValueError: Wordings are given for a data source that is not for chat models.
    """
    data_source = get_data_source(source)
    tokenizer, generation = load_tokenizer(base)
    recipe = {"source": source, "thinking": thinking}
    encoding = encoding_of(recipe, tokenizer, generation)
    training = read_problems(problems)
    solutions = {row.problem_id: row.solutions for row in read_pool(pool, training)}
    solved = [problem for problem in training if solutions[problem.id]]
    precision = resolve_precision("auto", training_process_device())
    settings = {"engine": "transformers", "sequences": 64, "precision": precision}
    sampler = build_sampler(settings, base, encoding)
    prompts_by_reader = {"student": [encoding.student(problem) for problem in solved]}
    if wordings and not isinstance(encoding.prompts, ChatPrompts):
        raise ValueError(
            f"--wordings are for chat models; the prompts of {source!r} have one wording.\n"
            "Hint: leave --wordings out."
        )
    for wording in wordings or (None,):
        if wording is not None:
            encoding.prompts.privileged = wording
        teacher = [encoding.teacher(each, solutions[each.id][0]) for each in solved]
        prompts_by_reader["teacher" if wording is None else repr(wording)] = teacher
    sampling = SamplingParams(temperature, 1.0, cap)
    with closing(data_source.grader()) as grade:
        for reader, prompts in prompts_by_reader.items():
            right, ended = shares(solved, prompts, sampler, encoding, grade, samples, sampling)
            print(f"{reader}: {100 * right:.1f} % right, {100 * ended:.1f} % end by themselves")
    print(f"{len(solved)} problems, {samples} responses each, at most {cap} tokens")


if __name__ == "__main__":
    tyro.cli(main)
