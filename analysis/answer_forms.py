r"""How often do models write an answer in a form of its own, and how often does the form decide?

A rule of the grader that decides nothing in real responses is not worth its lines.

    python analysis/answer_forms.py RESPONSES.jsonl [GOLDS.jsonl ...]

prints the table of docs/problems.md, "Forms of answers". A row of RESPONSES has `gold`, `response`
and, where they are known, `pred`, the answer that the source took, and `correct`, its verdict; a
row of GOLDS has `answer`. An answer is what the response states, or `pred` where it states none.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.answer_lists import read_answer_list
from geosd.problems.grading.answer_normalization import normalize_answer
from geosd.problems.grading.exact_numbers import SCIENTIFIC, is_integer
from geosd.problems.grading.typed_grader import TypedGrader, grade_typed_answer

SCALE = "hundred|thousand|million|billion|trillion|dozen"


@dataclass(frozen=True)
class Graded:
    """A response with its answer and two verdicts; the source's is None where it gave none."""

    gold: str
    response: str
    answer: str
    correct: bool
    recorded: bool | None


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.search(pattern, text) is not None


def is_several(kind: str) -> Callable[[str], bool]:
    def has_kind(text: str) -> bool:
        several = read_answer_list(normalize_answer(text).body)
        return several is not None and several.kind == kind

    return has_kind


def is_options(text: str) -> bool:
    several = read_answer_list(normalize_answer(text).body)
    return several is not None and all(re.fullmatch(r"\(?[A-J]\)?", e) for e in several.elements)


def is_empty_set(text: str) -> bool:
    return normalize_answer(text).body == r"\emptyset"


def has_exponent(text: str) -> bool:
    return SCIENTIFIC.search(normalize_answer(text).body) is not None


IN_ANSWERS: dict[str, Callable[[str], bool]] = {
    "list or set": is_several("list"),
    "tuple": is_several("tuple"),
    "named coordinates": is_several("point"),
    "pairs in braces": matches(r"\\\{\s*(?:\\left)?\s*\("),
    "list of pairs": matches(r"\)\s*(?:,|and|\\text\{\s*and\s*\})\s*(?:\\left)?\s*\("),
    "numbered roots": is_several("roots"),
    "equations in rows": matches(r"\\begin\{(?:cases|aligned|align|gather|split)"),
    "letters of options": is_options,
    "power of ten with e": has_exponent,
    "empty set, in signs or words": is_empty_set,
    "congruence": matches(r"\\equiv|≡"),
    "condition of a parameter": matches(r"\\in\s*\\math|\(?[a-z]\s*∈"),
    "factorial": matches(r"[0-9]!"),
    "floor or ceiling": matches(r"\\[lr](?:floor|ceil)"),
    "value on the left of =": matches(r"^\s*\$?-?[0-9.]+\s*=\s*[A-Za-z]"),
    "inequalities with commas": matches(r"[<>].*,.*[<>]|\\[lg]eq?.*,.*\\[lg]eq?"),
    "value left out by ≠": matches(r"\\neq?(?![a-z])|≠"),
    "coefficient 1": matches(r"(?<![0-9.])1[a-zA-Z]"),
    "digit A to F in a base": matches(r"[0-9A-F]*[A-F][0-9A-F]*\}?_"),
    "frame with a colour": matches(r"\\fcolorbox"),
    "function with its argument": matches(r"^\s*\$?[a-zA-Z]\([a-z]\)\s*="),
    "sign in a tuple": matches(r"^[^\\]*\(\s*\\pm[^()]*,|\(.*,.*\\pm[^()]*\)"),
    "parameter's condition in words or a set": matches(r"\\mid.*\\in|is an? .*integer"),
    "any constant": matches(r"(?i)for (?:any|all|every|some) "),
}
IN_RESPONSES: dict[str, Callable[[str], bool]] = {
    "answer between tags": matches(r"</answer>"),
    "sentence behind `Answer:`": matches(
        r"(?im)^[ *#]*(?:final )?answer\s*:[ *]*(?!the (?:final )?answer)[a-z]+ .*\b(?:is|are)\b"
    ),
    "`answer` without a verb or colon": matches(r"(?im)^[ *#]*answer +(?:\$|\\[(\[]|[0-9.]+$)"),
    "answer should, must or would be": matches(r"(?i)answer (?:should|must|would) be"),
    "answer is therefore": matches(r"(?i)answer is (?:therefore|thus|then|hence|so)\b"),
    "multiplying word behind a box": matches(rf"boxed\{{[^{{}}]*\}}[$*)\\\] ]{{0,4}}(?:{SCALE})"),
    "label in HTML": matches(r"(?i)<(?:b|strong)>(?:final )?answer"),
    "boxes with `as well as` between": matches(r"boxed\{[^{}]*\}[^{}]{0,9}as well as"),
}
IN_BOTH: dict[str, Callable[[str, str], bool]] = {
    "tuple for a list": lambda gold, answer: (
        is_several("list")(gold) and is_several("tuple")(answer)
    ),
    "list for a tuple": lambda gold, answer: (
        is_several("tuple")(gold) and is_several("list")(answer)
    ),
    "formula for an integer": lambda gold, answer: (
        is_integer(gold) and re.search(r"\\sqrt|\\pi|\\(?:sin|cos|tan|log)", answer) is not None
    ),
}


def read(path: str) -> list[dict[str, object]]:
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def grade(path: str) -> list[Graded]:
    graded = []
    with TypedGrader() as typed:
        for row in read(path):
            gold, response = str(row["gold"]), str(row.get("response") or "")
            answer = extract_answer(response) or str(row.get("pred") or "")
            correct = grade_typed_answer(answer, gold, typed).correct
            recorded = row.get("correct")
            known = recorded if isinstance(recorded, bool) else None
            graded.append(Graded(gold, response, answer, correct, known))
    return graded


def line(name: str, golds: int | str, found: list[Graded]) -> str:
    accepted = sum(row.correct for row in found)
    refused = sum(not row.correct and row.recorded is True for row in found)
    return f"| {name} | {golds} | {len(found)} | {accepted} | {refused} |"


def main(responses: str, *golds_of: str) -> str:
    """The table, in Markdown."""
    rows = grade(responses)
    golds = [
        str(row["answer"]).rpartition("####")[2].strip() for file in golds_of for row in read(file)
    ]
    lines = [
        f"{len(rows)} responses, {sum(bool(row.answer) for row in rows)} with an answer;"
        f" {len(golds)} right answers of problems.",
        "",
        "| form | right answers | responses | accepted | refused, though the source accepts |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, has_form in IN_ANSWERS.items():
        found = [row for row in rows if has_form(row.answer)]
        lines.append(line(name, sum(map(has_form, golds)), found))
    for name, has_form in IN_RESPONSES.items():
        lines.append(line(name, "–", [row for row in rows if has_form(row.response)]))
    for name, have_form in IN_BOTH.items():
        lines.append(line(name, "–", [row for row in rows if have_form(row.gold, row.answer)]))
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
