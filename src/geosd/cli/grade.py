"""Judge the responses of a file, whatever made them.

Files of lm-eval and geosd are read as they are (`geosd.problems.sample_formats`). Every other row
needs `gold` and `response`; all its other fields are kept. Added are `answer`, `correct`
and `reason`; where the row already had such a key, the old value is kept as `recorded_...`. A row
whose `finish_reason` is "length" is truncated, as in the pipeline: it has no answer.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from tqdm import tqdm

from geosd.files import DamagedFileError, atomic_write
from geosd.json_lines import DamagedLineError, numbered_lines
from geosd.problems import sample_formats
from geosd.problems.grading import GradingVerdict, grading_reason_counts, judge_response
from geosd.problems.grading.answer_comparison import GraderMode
from geosd.problems.grading.typed_grader import LIMIT_SECONDS, TypedGrader, grade_typed_response
from geosd.problems.records import Problem, read_problems

MOST_SHOWN = 20
"""Disagreements that the terminal lists; the rows have all."""
_ADDED = ("answer", "correct", "reason")
FINISH = "finish_reason"
"""Field of a row that says why its response ended, as servers of models give it."""


def main(
    source: Annotated[Path, tyro.conf.arg(name="in")],
    out: Path,
    grader: GraderMode = "auto",
    guess: bool = False,
    seconds: float = LIMIT_SECONDS,
    problems: Path | None = None,
) -> None:
    """Grade the responses of a file (JSON lines, lm-eval), row by row.

    Args:
        source: One file; verdicts that it has are compared with ours.
        out: The rows with their verdicts, written whole or not at all.
        grader: `auto` lets each gold's type choose; `symbolic` also compares answers to integer
            golds as formulas.
        guess: Whether the last formula or number counts where no answer is stated.
        seconds: Limit on comparing one answer as a formula, in seconds of processor time.
        problems: The problems of `samples.jsonl` of geosd, which holds no right answers.
    """
    known = {(p.benchmark, p.id): p for p in (read_problems(problems) if problems else ())}
    rows = sample_formats.merged_sample_formats(_rows(source, known))
    if not rows:
        raise DamagedFileError(
            f"{source}: no row; expected one JSON object a line.\nHint: run again what writes the"
            " responses; nothing was written."
        )

    with TypedGrader(seconds) as typed:
        grade = partial(grade_typed_response, typed=typed, grader=grader, guess=guess)
        verdicts = [
            judge_response(
                row["response"] or "", row["gold"], grade, truncated=row.get(FINISH) == "length"
            )
            for row in tqdm(rows, desc="grade", unit="row")
        ]
    graded = [_with_verdict(row, verdict) for row, verdict in zip(rows, verdicts, strict=True)]
    disagreements, compared = sample_formats.mark_sample_disagreements(graded)
    # A lone surrogate is no UTF-8. With backslashes it is the escape that JSON has for it.
    with (
        atomic_write(out) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as lines,
    ):
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in graded)
    print(grading_reason_counts((verdict.reason for verdict in verdicts), "rows"))
    print(f'A row whose {FINISH} is "length" is truncated: it has no answer.')
    if unknown := sum(row.get(FINISH) is None for row in rows):
        print(f"{unknown} of {len(rows)} rows have no {FINISH} and were graded as whole responses.")
    if compared:
        print(f"{len(disagreements)} of {compared} verdicts of the file disagree with geosd's.")
        print(*map(_printable, disagreements[:MOST_SHOWN]), sep="\n")
    if len(disagreements) > MOST_SHOWN:
        print(f"and {len(disagreements) - MOST_SHOWN} more: rows with `disagrees`")


def _rows(path: Path, problems: Mapping[Any, Problem]) -> Iterator[dict[str, Any]]:
    for number, line in numbered_lines(path):
        try:
            found = sample_formats.sample_format_responses(json.loads(line), path, problems)
            for row in found:
                _check(row)
                json.dumps(row)  # of too many levels nothing can be written
        except (ValueError, RecursionError) as error:
            raise DamagedLineError(
                f"{path}:{number}: {_printable(str(error))}. Expected one JSON object with the"
                " fields gold (text) and response (text or null).\nHint: remove or repair the line;"
                " nothing was written."
            ) from error
        yield from found


def _printable(text: str) -> str:
    """A text of a file as one line that commands no terminal: control signs as their escapes."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def _check(row: Any) -> None:
    if not isinstance(row, dict):
        raise ValueError(f"a JSON {type(row).__name__} instead of an object")
    for field in ("gold", "response"):
        if field not in row:
            raise ValueError(f"missing {field}")
        if not isinstance(row[field], str) and (field == "gold" or row[field] is not None):
            raise ValueError(f"{field} is a JSON {type(row[field]).__name__}, not text")
    if not isinstance(row.get(FINISH), str | None):
        raise ValueError(f"{FINISH} is a JSON {type(row[FINISH]).__name__}, not text or null")


def _with_verdict(row: dict[str, Any], verdict: GradingVerdict) -> dict[str, Any]:
    fields = {f"recorded_{name}" if name in _ADDED else name: value for name, value in row.items()}
    # A file graded twice keeps what was recorded first.
    fields |= {name: value for name, value in row.items() if name not in _ADDED}
    return fields | {name: getattr(verdict, name) for name in _ADDED}
