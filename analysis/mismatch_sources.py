"""What makes mismatch at pi_0's states: the source of the solutions, or the words around them.

    python analysis/mismatch_sources.py --base FOLDER --problems train.jsonl --out FILE.csv

Problems are in GSM8K's layout, with a human solution each. pi_0 answers them once with the plain
instruction and once after three answered examples, at temperature 1. At each state of each
response, student and teacher are compared as the rule `states` compares them, for every source of
solutions and every wording of the teacher's turn; docs/qwen05.md says what is expected.

`human` are the data set's solutions, `own` a verified rollout of pi_0's, with the same prompt, and
`answer` the final answer alone. A problem without a verified rollout has no row of `own`. The
examples are the three problems after the first `number`, which pi_0 answers.

GSM8K's solutions have a calculator's annotations, as in `48/2 = <<48/2=24>>24 clips`; with
`--without-annotations` they are taken out of solutions and examples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import tyro

from geosd.evaluation.states import survey_states
from geosd.files import write_text
from geosd.mismatch_region import in_mismatch_region
from geosd.models.load_and_save import load_model, load_tokenizer
from geosd.models.precision import resolve_precision
from geosd.problems.chat_prompts import PRIVILEGED
from geosd.problems.encoding import Encoding, encoding_of
from geosd.problems.grading import Grader
from geosd.problems.records import Problem
from geosd.problems.sources import get_data_source
from geosd.problems.sources.jsonl import read_jsonl_problems
from geosd.reporting.tables import markdown_table
from geosd.sampling.engines import build_sampler
from geosd.sampling.sampler import Sampler, SamplingParams
from geosd.scores.state_table import most_uncertain_states, state_mismatch_share
from geosd.training.processes import training_process_device

WORDINGS = {
    "the project's": PRIVILEGED,
    "question, instruction, solution": "{question}\n{instruction}\nReference solution:\n{solution}",
    "to be repeated": (
        "{question}\n{instruction}\nThis is the solution; repeat it word for word:\n{solution}"
    ),
}
"""Wordings of the teacher's turn."""
SOURCES = ("human", "own", "answer")
ANNOTATION = re.compile(r"<<[^<>]*>>")
EXAMPLES = {"plain instruction": 0, "three examples": 3}
MEANS = ("q_star", "p_star", "overlap", "entropy")
HEADS = [
    "prompt",
    "solutions",
    "teacher's turn",
    "problems",
    "states",
    "mismatch",
    "of the most uncertain tenth",
    "q★",
    "p★",
    "overlap",
    "entropy, nats",
]


@dataclass(frozen=True)
class Asked:
    """Problems with one wording of the student's prompt, and pi_0's response to each.

    Attributes:
        own: A verified rollout for each problem, None where there is none.
    """

    encoding: Encoding
    problems: Sequence[Problem]
    responses: Sequence[tuple[int, ...]]
    own: Sequence[str | None]


def ask(
    problems: Sequence[Problem],
    encoding: Encoding,
    sampler: Sampler,
    grade: Grader,
    cap: int,
    tries: int,
) -> Asked:
    """Sample a response to each problem, and look for a verified one among `tries` more."""
    sampling = SamplingParams(1.0, 1.0, cap)
    prompts = [encoding.student(problem) for problem in problems]
    responses = [tuple(one.ids) for one in sampler.sample(prompts, sampling, seed=0)]
    repeated = [prompt for prompt in prompts for _ in range(tries)]
    texts = [encoding.text(one.ids) for one in sampler.sample(repeated, sampling, seed=1)]
    own: list[str | None] = []
    for number, problem in enumerate(problems):
        mine = texts[number * tries : (number + 1) * tries]
        right = [text for text in mine if grade(text, problem.answer).correct]
        own.append(right[0] if right else None)
    return Asked(encoding, problems, responses, own)


def solutions_of(asked: Asked, source: str, human: Sequence[str]) -> list[str | None]:
    """The solution of each problem that the teacher reads; None where there is none."""
    if source == "human":
        return list(human)
    if source == "own":
        return list(asked.own)
    return [rf"\boxed{{{problem.answer}}}" for problem in asked.problems]


def states(
    model: torch.nn.Module,
    asked: Asked,
    solutions: Sequence[str | None],
    wording: str,
    top_k: int,
) -> pd.DataFrame:
    """The states of the problems that have a solution, a row each."""
    encoding = asked.encoding
    encoding.teacher_prompts.privileged = wording
    shown = [number for number, solution in enumerate(solutions) if solution is not None]
    students = [encoding.student(asked.problems[number]) for number in shown]
    teachers = [
        encoding.teacher(asked.problems[number], str(solutions[number])) for number in shown
    ]
    responses = [asked.responses[number] for number in shown]
    found = survey_states(
        model, students, teachers, responses, encoding.pad_id, top_k, batch_size=2, chunk=128
    )
    found.pop("ranked")
    table = pd.DataFrame({name: value.numpy() for name, value in found.items()})
    table["problem"] = [asked.problems[shown[row]].id for row in table["rollout"]]
    table["selected"] = most_uncertain_states(table["entropy"], table["rollout"])
    return table


def summary(table: pd.DataFrame) -> list[str]:
    """Numbers of one row of the table."""
    uncertain = table[table["selected"]]
    means = [f"{table[name].mean():.3f}" for name in MEANS]
    return [
        str(table["problem"].nunique()),
        f"{len(table):,}",
        f"{100 * state_mismatch_share(table):.2f} %",
        f"{100 * state_mismatch_share(uncertain):.1f} %",
        *means,
    ]


def by_problem(states: pd.DataFrame) -> pd.DataFrame:
    """A row for each problem of each row of the table: its states, and how many are mismatches.

    `uncertain` are states of the most uncertain tenth, `first_mismatch` is 1 where the response's
    first state is a mismatch, and q_star to entropy are sums over all states.
    """
    mismatch = in_mismatch_region(states["q_star"], states["p_star"])
    counted = states.assign(
        states=1,
        mismatch=mismatch.astype(int),
        uncertain=states["selected"].astype(int),
        uncertain_mismatch=(mismatch & states["selected"]).astype(int),
        first_mismatch=(mismatch & (states["position"] == 0)).astype(int),
    )
    summed = ["states", "mismatch", "uncertain", "uncertain_mismatch", "first_mismatch", *MEANS]
    return counted.groupby(["prompt", "solutions", "wording", "problem"], sort=False)[summed].sum()


def main(
    base: Path,
    problems: Path,
    out: Path,
    number: int = 16,
    cap: int = 192,
    tries: int = 4,
    top_k: int = 1024,
    sequences: int = 16,
    sources: tuple[str, ...] = SOURCES,
    without_annotations: bool = False,
) -> None:
    """Print a row for each prompt, source of solutions and wording, and write every state.

    Sums by problem, `NAME_by_problem.csv`, lie beside the file of the states.

    Args:
        base: Folder of pi_0.
        problems: JSON lines of problems with worked solutions; pi_0 answers the first ones.
        out: CSV file of the states.
        number: Number of problems that pi_0 answers.
        cap: Tokens of a response.
        tries: Rollouts of each problem among which its own solution is looked for.
        top_k: Tokens of student and teacher on whose union they are compared.
        sequences: Responses sampled at once.
        sources: Sources of solutions that get rows, of `human`, `own` and `answer`.
        without_annotations: Whether a calculator's annotations are taken out.
    """
    precision = resolve_precision("auto", training_process_device())
    model, _ = load_model(base, getattr(torch, precision))
    tokenizer, generation = load_tokenizer(base)
    source = get_data_source("jsonl")
    with closing(source.grader()) as grade:
        rows, worked, _ = read_jsonl_problems(problems, grade)
        if without_annotations:
            worked = {name: ANNOTATION.sub("", text) for name, text in worked.items()}
        human = [worked[row.id] for row in rows]
        chosen = [Problem(row.id, "train", row.text, row.answer) for row in rows[:number]]
        shots = [(row.text, worked[row.id]) for row in rows[number : number + 3]]
        settings: dict[str, Any] = {"source": "jsonl", "thinking": False}
        lines, tables = [], []
        for prompt, count in EXAMPLES.items():
            words = {"instruction": None, "examples": shots[:count], "privileged": None}
            encoding = encoding_of({**settings, "wording": words}, tokenizer, generation)
            engine = {"engine": "transformers", "sequences": sequences, "precision": precision}
            sampler = build_sampler({**engine, "packed": True}, base, encoding, model)
            asked = ask(chosen, encoding, sampler, grade, cap, tries)
            for kind in sources:
                for name, wording in WORDINGS.items():
                    solutions = solutions_of(asked, kind, human[:number])
                    if not any(solutions):
                        lines.append([prompt, kind, name, "0", *["–"] * (len(HEADS) - 4)])
                        continue
                    table = states(model, asked, solutions, wording, top_k)
                    lines.append([prompt, kind, name, *summary(table)])
                    tables.append(table.assign(prompt=prompt, solutions=kind, wording=name))
                    print(" | ".join(lines[-1]), flush=True)
    print(markdown_table([HEADS, *lines]))
    found = pd.concat(tables)
    write_text(out, found.to_csv(index=False, float_format="%.6g"))
    sums = by_problem(found).to_csv(float_format="%.6g")
    write_text(out.with_name(f"{out.stem}_by_problem.csv"), sums)


if __name__ == "__main__":
    tyro.cli(main)
