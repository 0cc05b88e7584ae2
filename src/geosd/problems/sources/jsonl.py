"""The user's problems, in JSON-lines files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

from geosd.files import sha256
from geosd.json_lines import numbered_lines
from geosd.problems.dapo.raw_files import RawProblem
from geosd.problems.dapo.splits import draw_splits, split_without_overlaps
from geosd.problems.grading import Grader
from geosd.problems.grading.typed_grader import LONGEST_RESPONSE
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.sources import register
from geosd.problems.sources.dapo_math import DapoMath

IN_DISTRIBUTION = "train"
BENCHMARK_NAME = re.compile(r"(?!id$|select_)[\w.-]+")


class DamagedJsonlError(ValueError):
    """A line of a JSON-lines file that does not hold a problem, or contradicts another line."""


class _Mistake(ValueError):
    """A line's error, and a hint."""


Words = Annotated[str, Field(pattern=r"[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]")]
"""A text in which something can be seen."""
SHOWN = 3
"""Places that a remark names; it counts the others."""
_OF_WORDS = re.compile(r"(?=.*[^\W\d_]{3})[^\W\d_][\w'\u2019 ,.-]*")
"""An answer of words alone, of which one has three letters: no number, name or formula."""
MARK = "####"
"""Mark before the final answer in GSM8K's layout."""
_INVISIBLE_ENDS = re.compile(
    r"^[\s\u00ad\u200b-\u200f\u2060\ufeff]+|[\s\u00ad\u200b-\u200f\u2060\ufeff]+$"
)


@dataclass(frozen=True)
class _OwnProblem:
    """A line of a file, other keys ignored; in GSM8K's layout `answer` has solution and `MARK`."""

    question: Annotated[Words, Field(validation_alias=AliasChoices("question", "problem"))]
    answer: Words | int
    solution: Words | None = None


_VALIDATE = TypeAdapter(_OwnProblem).validate_json


@register("jsonl")
class JsonLines(DapoMath):
    """Data source of the user's problems, put and graded as the paper's; docs/extending.md.

    `data.raw` is a file, or a folder with `train.jsonl` and a file for each out-of-distribution
    benchmark, named like it. All other splits are drawn from the one file or from `train.jsonl`.
    """

    limits = (
        "Trained on problems that its maker supplied, for research on a training method; judged by"
        " final answers alone. Nothing else about it was measured."
    )

    most_problems = None
    most_per_benchmark = None

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Splits of the files' problems, drawn by a hash of question and seed.

        A question that comes again is dropped; so is one that a benchmark has, word for word or
        nearly so, under `data.overlaps: exclude`. The card counts the former, names the latter, and
        holds the worked solutions. ValueError if too few problems are left.
        """
        files = find_jsonl_files(settings["raw"])
        rows, solutions, repeats = {}, {}, {}
        with closing(self.grader()) as grade:
            for name, path in files.items():
                rows[name], worked, repeats[name] = read_jsonl_problems(path, grade)
                solutions |= worked
        own = rows.pop(IN_DISTRIBUTION)
        exclude = settings["overlaps"] == "exclude"
        eligible, overlaps = split_without_overlaps(own, rows, exclude)
        _check_enough(len(own), len(eligible), settings)
        splits = draw_splits(eligible, rows, settings, skip_near=False)
        drawn = {each.id for each in (*splits.train, *splits.select, *splits.test)}
        card = {
            **splits.card,
            "files": {path.name: sha256(path) for path in files.values()},
            "repeated": repeats,
            "in a benchmark": len(own) - len(eligible),
            **overlaps,
            "worked_solutions": {name: text for name, text in solutions.items() if name in drawn},
        }
        return replace(splits, card=card)

    def benchmark_sizes(self, raw: str | None) -> Mapping[str, int] | None:
        """Lines of each file but the training problems; None where the files are not there."""
        try:
            files = find_jsonl_files(raw)
        except (ValueError, FileNotFoundError):
            return None
        own = {name: path for name, path in files.items() if name != IN_DISTRIBUTION}
        return {name: sum(1 for _ in numbered_lines(path)) for name, path in own.items()}

    def remarks(self, settings: Mapping[str, Any]) -> list[str]:
        """Questions that come again, and answers of words, which are compared as they stand."""
        repeated, worded, number_of_answers = [], [], 0
        for path in find_jsonl_files(settings["raw"]).values():
            first: dict[str, int] = {}
            for number, line in numbered_lines(path):
                problem = _VALIDATE(line, strict=True)
                question = " ".join(problem.question.split())
                if question in first:
                    repeated.append(f"{path}:{number} repeats line {first[question]}")
                first.setdefault(question, number)
                answer = str(problem.answer).rpartition(MARK)[2].strip()
                number_of_answers += 1
                if _OF_WORDS.fullmatch(answer):
                    worded.append(f"{path}:{number} {answer[:40]!r}")
        remarks = []
        if repeated:
            remarks.append(f"a question that comes again counts once: {_some(repeated)}")
        if worded:
            remarks.append(
                f"{len(worded)} of {number_of_answers} answers are words, compared letter by letter"
                f" (97 is not ninety-seven): {_some(worded)}"
            )
        return remarks


def _some(places: list[str]) -> str:
    """The first places, and how many more there are."""
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return ", ".join(places[:SHOWN]) + more


def _check_enough(own: int, eligible: int, settings: Mapping[str, Any]) -> None:
    """ValueError where only the problems in a benchmark make them too few."""
    sizes = ("train", "select_train", "select_validation", "test_id")
    wanted = sum(settings[name] for name in sizes)
    if eligible < wanted <= own:
        raise ValueError(
            f"{own - eligible} of {own} training problems are in a benchmark, word"
            " for word or nearly so (the same words with other numbers are nearly the same);"
            f" {eligible} are left for the {wanted} wanted.\nHint: data.overlaps: keep draws them,"
            " and card.json names them."
        )


def find_jsonl_files(raw: str | None) -> dict[str, Path]:
    """The files of problems by the name of their benchmark; `train` comes first.

    Raises:
        FileNotFoundError: There are none.
        ValueError: A file's name is that of a split.
    """
    path = Path(raw or "")
    if path.is_file():
        return {IN_DISTRIBUTION: path}
    found = {each.stem: each for each in sorted(path.glob("*.jsonl"))} if raw else {}
    if IN_DISTRIBUTION not in found:
        raise FileNotFoundError(
            f"data.raw is {raw}, which is neither a file nor a folder with {IN_DISTRIBUTION}.jsonl."
            "\nHint: every line holds an object with question and answer; docs/extending.md."
        )
    for name in found:
        if not BENCHMARK_NAME.fullmatch(name):
            raise ValueError(
                f"{found[name]}: a benchmark cannot be called {name!r}; allowed are letters,"
                " digits, '.', '_' and '-', but not id and select_*.\nHint: rename the file."
            )
    return {IN_DISTRIBUTION: found.pop(IN_DISTRIBUTION), **found}


def read_jsonl_problems(path: Path, grade: Grader) -> tuple[list[RawProblem], dict[str, str], int]:
    """The problems of a file, their worked solutions by id, and the number of repeated questions.

    Ids are of the file's name and the line's number; empty lines are passed over.
    DamagedJsonlError names a line that is no problem, has an answer that the grader does not find
    right, or repeats a question with another answer.
    """
    rows: dict[str, tuple[int, RawProblem]] = {}
    solutions, repeats = {}, 0
    for number, line in numbered_lines(path):
        try:
            problem = _problem(line, grade)
        except _Mistake as mistake:
            what, hint = mistake.args
            raise DamagedJsonlError(
                f"{path}:{number}: {what}. Expected an object with the texts question and answer,"
                f" and solution if there is one.\nHint: {hint}"
            ) from mistake
        row = RawProblem(f"{path.stem}-{number:05d}", problem.question, str(problem.answer))
        first, same = rows.setdefault(" ".join(row.text.split()), (number, row))
        if same.answer != row.answer:
            raise DamagedJsonlError(
                f"{path}:{number}: the answer is {row.answer!r}, but the same question has"
                f" {same.answer!r} in line {first}.\nHint: remove the wrong line."
            )
        if same is not row:
            repeats += 1
        elif problem.solution is not None:
            solutions[row.id] = problem.solution
    if not rows:
        raise DamagedJsonlError(
            f"{path}: holds no problem.\nHint: every line is an object with question and answer."
        )
    return [row for _, row in rows.values()], solutions, repeats


def _problem(line: bytes, grade: Grader) -> _OwnProblem:
    """The problem of a line, its final answer alone in `answer`."""
    try:
        problem = _VALIDATE(line, strict=True)
    except ValidationError as error:
        raise _Mistake(*_first_mistake(error)) from error
    if twice := _keys_twice(line):
        raise _Mistake(f"{twice} stands twice in the object", "keep one of them.")
    worked, mark, answer = str(problem.answer).rpartition(MARK)
    answer, worked = (_INVISIBLE_ENDS.sub("", text) for text in (answer, worked))
    solution = problem.solution or worked or None
    hint = f"write the final answer alone; in GSM8K's layout it is the one line after {MARK}."
    if mark and (not answer or "\n" in answer):
        raise _Mistake(f"answer has no single line after {MARK}: {answer[:80]!r}", hint)
    verdict = grade(rf"\boxed{{{answer}}}", answer)
    if not verdict.correct:
        what = f"answer is {answer[:80]!r}, which the grader does not find equal to itself"
        raise _Mistake(f"{what} ({verdict.reason}): no response could be right", hint)
    if solution:
        solution = _checked_solution(solution, answer, grade)
    return replace(problem, answer=answer, solution=solution)


def _checked_solution(solution: str, answer: str, grade: Grader) -> str:
    """A solution that ends in its answer; the box is added where it states none."""
    if len(solution) > LONGEST_RESPONSE:
        what = f"solution has {len(solution):,} characters, and {LONGEST_RESPONSE:,} are read"
        raise _Mistake(what, "a solution is a worked answer; shorten it, or leave the key out.")
    verdict = grade(solution, answer)
    if verdict.correct:
        return solution
    hint = "correct one of the two, or leave the solution out."
    if r"\boxed" in solution:
        stated = f"{(verdict.answer or '')[:80]!r} ({verdict.reason})"
        raise _Mistake(f"solution boxes another answer than {answer[:80]!r}: {stated}", hint)
    if verdict.answer is None and MARK in solution:  # GSM8K's layout in a key of its own
        verdict = grade(rf"\boxed{{{solution.rpartition(MARK)[2].strip()}}}", answer)
    if verdict.reason == "wrong answer":
        stated = f"{(verdict.answer or '')[:80]!r}"
        raise _Mistake(f"solution states another answer than {answer[:80]!r}: {stated}", hint)
    return f"{solution.rstrip()}\n\\boxed{{{answer}}}"  # as a response must end


def _keys_twice(line: bytes) -> str:
    """A key that an object, or one inside it, has twice; JSON takes the last one in silence."""
    twice = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        twice.extend(key for key, count in counts.items() if count > 1)
        return dict(pairs)

    json.loads(line, object_pairs_hook=look)
    return twice[0] if twice else ""


def _first_mistake(error: ValidationError) -> tuple[str, str]:
    """A line's error, with its field, and a hint."""
    mistake = error.errors(include_url=False)[0]
    field = str(mistake["loc"][0]) if mistake["loc"] else ""
    match mistake["type"]:
        case "json_invalid":
            what = str(mistake["ctx"]["error"]).replace(" at line 1 column", ", column")
            return f"Invalid JSON: {what}", "one whole object stands in each line, in UTF-8."
        case "missing":
            keys = ascii(", ".join(map(str, mistake["input"])))[1:-1] or "none"
            return f"{field} is missing; keys of the line are {keys}", f"call the key {field}."
        case "string_pattern_mismatch":
            without = "leave the key out" if field == "solution" else "remove the line"
            return f"{field} is blank: {ascii(mistake['input'])}", f"fill it, or {without}."
    typed = "a whole number may stand without quotes; everything else is text."
    return f"{field} is {mistake['input']!r}: {mistake['msg']}" if field else mistake["msg"], typed
