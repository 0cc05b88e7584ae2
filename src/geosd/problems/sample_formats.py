"""Samples in the files of lm-eval 0.4, as rows of a response each.

lm-eval (`--log_samples`) writes `samples_<task>_<date>.jsonl`, a line for each problem and filter,
with the responses in `resps`. Here a row is one response: `benchmark`, `problem_id`, `sample`,
`question`, `gold`, `response` and `verdicts`, what the file says of the problem by each of its
metrics.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.records import Problem
from geosd.problems.sources.jsonl import MARK

Row = dict[str, Any]
_NAME = re.compile(r"samples_(.+)_[^_]+")
_MEANS = re.compile(r"avg@|pass@1\b")
"""Metrics of several responses that are the share of right ones."""


@dataclass(frozen=True)
class _LmEval:
    """Fields read of a line of lm-eval; the lists are over requests, then over repeats."""

    doc_id: int
    target: str
    resps: list[list[str]]
    arguments: dict[str, dict[str, Any]] | list[Any] | None = None
    filter: str = "none"


_line = TypeAdapter(_LmEval)


def sample_format_responses(row: Any, path: Path, problems: Mapping[Any, Problem]) -> list[Row]:
    """The responses of a line of lm-eval or of geosd; a row of another kind is one itself.

    `problems` by benchmark and id are those of samples of geosd, which hold no right answer.
    ValueError if a row is not as its format has it.
    """
    if isinstance(row, dict) and {"benchmark", "problem_id", "text"} <= row.keys():
        problem = problems.get((row["benchmark"], row["problem_id"]))
        if problem is None:
            raise ValueError("samples of geosd hold no right answer: name their --problems")
        known = {"question": problem.question, "gold": problem.answer}
        named = {"text": "response", "finish": "finish_reason"}
        return [{**{named.get(k, k): v for k, v in row.items()}, **known}]
    if not (isinstance(row, dict) and "resps" in row):
        return [row]
    line, name = _line.validate_python(row), _NAME.fullmatch(path.stem)
    arguments = line.arguments if isinstance(line.arguments, dict) else {}
    head = {
        "benchmark": name[1] if name else path.stem,
        "problem_id": str(line.doc_id),
        "question": arguments.get("gen_args_0", {}).get("arg_0"),
        "gold": _gold(line.target),
        "verdicts": {
            f"{metric},{line.filter}": float(value)
            for metric, value in row.items()
            if metric != "doc_id" and isinstance(value, int | float)
        },
    }
    texts = [text for of_request in line.resps for text in of_request]
    return [{**head, "sample": at, "response": text} for at, text in enumerate(texts)]


def _gold(text: str) -> str:
    """The final answer alone: some tasks give a worked solution."""
    _, mark, answer = text.rpartition(MARK)
    boxed = extract_answer(text) if "\\boxed" in text and not mark else None
    return (answer if mark else boxed or text).strip()


def merged_sample_formats(rows: Iterable[Row]) -> list[Row]:
    """Rows with the verdicts of all filters of lm-eval, which writes a line for each of them."""
    found: dict[Any, Row] = {}
    for place, row in enumerate(rows):
        key = _problem(row, place), row.get("sample") if "verdicts" in row else place
        if (first := found.setdefault(key, row)) is not row:
            first["verdicts"] |= row["verdicts"]
    return list(found.values())


def _problem(row: Row, place: int = 0) -> tuple[Any, Any]:
    return row.get("benchmark"), row.get("problem_id", place)


def mark_sample_disagreements(rows: Sequence[Row]) -> tuple[list[str], int]:
    """Where verdicts in a file of samples, as lm-eval's, and ours differ; how many were compared.

    A verdict of lm-eval is about a problem, and is compared with the share of its
    responses that are right: of one response any metric is, of several an average alone. Rows in
    question get `disagrees`, the names of these verdicts.
    """
    words, compared = [], 0
    groups: dict[Any, list[Row]] = {}
    for place, row in enumerate(rows):
        alone = "verdicts" not in row
        groups.setdefault((*_problem(row, place), place if alone else None), []).append(row)
    for (benchmark, problem, _), members in groups.items():
        first, share = members[0], fmean(row["correct"] for row in members)
        verdicts = dict(first.get("verdicts", {}))
        if isinstance(recorded := first.get("recorded_correct"), bool):
            verdicts["correct"] = float(recorded)
        for name, value in verdicts.items():
            if len(members) > 1 and not _MEANS.match(name):
                continue
            compared += 1
            if abs(value - share) > 1e-6:
                answers = ", ".join(f"{row['answer']} ({row['reason']})" for row in members[:4])
                place = " ".join(str(part) for part in (benchmark, problem) if part is not None)
                words.append(
                    f"{place}: {name} {value:g}, here {share:g}: {answers};"
                    f" right is {first['gold']}"
                )
                for row in members:
                    row.setdefault("disagrees", []).append(name)
    return words, compared
