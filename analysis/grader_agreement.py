r"""How often the grader agrees with published verdicts, and what each disagreement is.

    python analysis/grader_agreement.py ../shared/data/grading

prints the tables of docs/problems.md from `graded_responses.jsonl` and `equivalence_pairs.jsonl`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from geosd.problems.grading import GradingVerdict
from geosd.problems.grading.answer_comparison import GraderMode
from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.answer_normalization import normalize_answer
from geosd.problems.grading.exact_numbers import is_integer
from geosd.problems.grading.typed_grader import TypedGrader, grade_typed_answer

Row = dict[str, Any]


def main(folder: Path) -> str:
    """The tables, in Markdown."""
    with TypedGrader() as pool:
        graded = grade_rows(read(folder / "graded_responses.jsonl"), pool)
        symbolic = grade_rows(read(folder / "graded_responses.jsonl"), pool, "symbolic")
        pairs = grade_pairs(read(folder / "equivalence_pairs.jsonl"), pool)
    return "\n\n".join(
        [by_source(graded, symbolic), disagreements(graded), by_family(pairs), failures(pairs)]
    )


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def grade_rows(
    rows: list[Row], pool: TypedGrader, grader: GraderMode = "auto"
) -> list[tuple[Row, str, GradingVerdict]]:
    """Each row, what was judged (the response's own answer, or the source's), and the verdict."""

    def judge(row: Row) -> tuple[Row, str, GradingVerdict]:
        stated = extract_answer(row["response"]) if row["response"] is not None else None
        if stated is not None:
            return row, "response", grade_typed_answer(stated, row["gold"], pool, grader=grader)
        if row["pred"] is not None:
            return row, "pred", grade_typed_answer(row["pred"], row["gold"], pool, grader=grader)
        return row, "response", GradingVerdict(None, False, "no answer")

    return list(map(judge, rows))


def grade_pairs(rows: list[Row], pool: TypedGrader) -> list[tuple[Row, GradingVerdict]]:
    def answer(row: Row, field: str) -> str:
        text = row[field]
        if row["kind"] == "bare":
            return text
        # These tables hold whole sentences on both sides, most of which state no answer.
        whole = text.strip().startswith(("$", "\\")) and text.strip().endswith(("$", "\\)", "}"))
        guess = len(text) > 20 or "$" in text or "\\[" in text
        return extract_answer(text, guess=guess and not whole) or text

    return [
        (row, grade_typed_answer(answer(row, "pred"), answer(row, "gold"), pool, grader="symbolic"))
        for row in rows
    ]


def why(row: Row, verdict: GradingVerdict) -> str:
    """The category of a disagreement."""
    answer = verdict.answer or ""
    if row["pred"] is None or _same(answer, row["pred"]) is False:
        return "the source extracted something else"
    if verdict.correct and normalize_answer(row["gold"]).unit:
        return "a unit in the gold"
    if (
        verdict.correct
        and is_integer(normalize_answer(row["gold"]).body)
        and not is_integer(row["gold"])
    ):
        return "a thousands separator in the gold"
    if verdict.correct and "=" in answer and "=" not in row["gold"]:
        return "an equation written out, its right side is the gold"
    if verdict.correct and row["mathverify"]:
        return "equal as mathematics, missed by the source"
    if verdict.reason == "unreadable" and is_integer(row["gold"]):
        return "an integer gold, the answer an unfinished formula"
    if not verdict.correct and row["mathverify"] is False:
        return "a tolerance of the source (hundredfold, 1 %, open or closed, part of a list)"
    return "unexplained"


def _same(one: str, other: str) -> bool:
    return normalize_answer(one).body.replace(" ", "") == normalize_answer(other).body.replace(
        " ", ""
    )


def by_source(
    graded: list[tuple[Row, str, GradingVerdict]], symbolic: list[tuple[Row, str, GradingVerdict]]
) -> str:
    lines = [
        "| source | rows | judged by the source's `pred` | agree | auto | symbolic |",
        "|---|---|---|---|---|---|",
    ]
    sources = [*dict.fromkeys(row["source"] for row, _, _ in graded), "all"]
    for source in sources:
        own = [r for r in graded if source in (r[0]["source"], "all")]
        also = [r for r in symbolic if source in (r[0]["source"], "all")]
        agree, agree_symbolic = (
            sum(verdict.correct == row["correct"] for row, _, verdict in rows)
            for rows in (own, also)
        )
        preds = sum(what == "pred" for _, what, _ in own)
        lines.append(
            f"| {source} | {len(own)} | {preds} | {agree} | {agree / len(own):.2%} |"
            f" {agree_symbolic / len(also):.2%} |"
        )
    own = [(row, verdict) for row, what, verdict in graded if what == "response"]
    agree = sum(verdict.correct == row["correct"] for row, verdict in own)
    lines.append(
        f"| all, the response alone | {len(own)} | 0 | {agree} | {agree / len(own):.2%} | |"
    )
    return "\n".join(lines)


def disagreements(graded: list[tuple[Row, str, GradingVerdict]]) -> str:
    counts = Counter(
        (why(row, verdict), "right" if verdict.correct else "wrong")
        for row, _, verdict in graded
        if verdict.correct != row["correct"]
    )
    lines = ["| disagreement | here | rows |", "|---|---|---|"]
    lines += [f"| {kind} | {here} | {count} |" for (kind, here), count in sorted(counts.items())]
    return "\n".join(lines)


def by_family(pairs: list[tuple[Row, GradingVerdict]]) -> str:
    lines = ["| pairs from | agree | of |", "|---|---|---|"]
    family = [row["source"].split(" ")[0] for row, _ in pairs]
    family = ["adjudicated disagreements" if name == "real" else name for name in family]
    for name in dict.fromkeys(family):
        own = [pair for pair, owner in zip(pairs, family, strict=True) if owner == name]
        agree = sum(verdict.correct == row["equivalent"] for row, verdict in own)
        lines.append(f"| {name} | {agree} | {len(own)} |")
    agree = sum(verdict.correct == row["equivalent"] for row, verdict in pairs)
    return "\n".join([*lines, f"| all | {agree} | {len(pairs)} |"])


def failures(pairs: list[tuple[Row, GradingVerdict]]) -> str:
    counts = Counter(
        (row["case"].split("[")[0], "equal" if row["equivalent"] else "different", verdict.reason)
        for row, verdict in pairs
        if verdict.correct != row["equivalent"]
    )
    lines = ["| pair test | says | here | rows |", "|---|---|---|---|"]
    lines += [
        f"| `{case}` | {says} | {here} | {count} |"
        for (case, says, here), count in sorted(counts.items())
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/grading")))
