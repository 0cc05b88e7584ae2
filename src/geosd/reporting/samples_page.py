"""A page of responses: two methods side by side, each token coloured by its probability.

The page is one file without network: its style and its program lie in `samples_page.jinja`, and
the responses in a block of JSON. Whatever a model wrote is text of that block, and the program
writes it as text: nothing of it becomes a tag.
"""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from geosd.reporting.method_style import method_style
from geosd.scores.scored_responses import ScoredResponse

TEMPLATE = Path(__file__).with_name("samples_page.jinja")
TOKENS = 16_000
"""Tokens of all responses on a page, at most some 27 bytes each: it stays below 500 kB."""
CHARACTERS = 1500
"""Characters of a question or a solution that a page shows."""


def samples_html(study: str, rows: Sequence[ScoredResponse]) -> str:
    """The page of a study's scored responses.

    A response is cut where all of them would be more than `TOKENS`; the page says so.

    Raises:
        ValueError: There is no response.
    """
    if not rows:
        raise ValueError(
            f"study {study} has no scored response.\n"
            f"Hint: `make samples STUDY={study}` scores some."
        )
    longest = max(1, TOKENS // len(rows))
    problems: dict[tuple[str, str], dict] = {}
    for row in rows:
        problem = problems.setdefault(
            (row.model, row.problem_id),
            {
                "model": row.model,
                "id": row.problem_id,
                "question": _cut(row.question),
                "answer": _cut(row.answer),
                "solution": _cut(row.solution),
                "responses": {},
            },
        )
        problem["responses"][row.variant] = _response(row, longest)
    variants = dict.fromkeys(row.variant for row in rows)
    data = {
        "methods": {name: method_style(name).label for name in variants},
        "problems": list(problems.values()),
        "seed": rows[0].seed,
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    page = page.replace("{{ title }}", f"Responses of study {escape(study)}")
    return page.replace("{{ data }}", script_json(data))


def script_json(value: object) -> str:
    r"""A value as JSON that may stand inside an element `script`.

    HTML ends that element at `</script`, and comments begin with `<!--`; so no `<` is written.

    Example:
        >>> script_json("</script>")
        '"\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _response(row: ScoredResponse, longest: int) -> dict:
    """A response as the page reads it; probabilities have three significant digits."""
    return {
        "correct": row.correct,
        "cut": row.finish == "length",
        "length": row.length,
        "tokens": row.tokens[:longest],
        "student": [_rounded(value) for value in row.student[:longest]],
        "teacher": [_rounded(value) for value in row.teacher[:longest]],
    }


def _rounded(probability: float) -> float:
    return float(f"{probability:.3g}")


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]} \N{HORIZONTAL ELLIPSIS}"
