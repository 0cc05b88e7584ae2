r"""The tokens of an answer: numbers, words, commands, texts and signs, cut in one pass.

An answer is cut into tokens once, and every rule of normalization reads tokens. Each alternative of
the pattern is one run of characters that never gives a character back (`++`), so cutting takes time
linear in the answer's length, whatever the answer is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_TEXT_COMMANDS = r"text|mbox|mathrm|textbf|textrm|textit|rm|mathbf|mathit|operatorname"
_TOKEN = re.compile(
    r"\\(?:begin|end)\{[A-Za-z]++\*?\}"
    r"|\\(?:" + _TEXT_COMMANDS + r")\*?\s*+\{[^{}]*+\}"
    r"|\\[A-Za-z]++|\\.|[0-9]++|[A-Za-z]++|\s++|\*\*|.",
    re.DOTALL,
)

# Tokens that normalization writes and no answer has. THIN can separate digit groups.
THIN, BLANK, WIDE = "\\,", " ", "  "
LIST, DEGREE, PERCENT, CURRENCY = ", ", "°", "%", "$"


def is_space(token: str) -> bool:
    r"""Whether a token is white space or spacing such as `\,`."""
    return token == THIN or token.isspace()


def last_before(tokens: Sequence[str], end: int) -> int:
    """The place of the last token before `end` that is no white space; -1 where there is none."""
    return next((place for place in range(end - 1, -1, -1) if not is_space(tokens[place])), -1)


def tokenize(text: str) -> list[str]:
    r"""Cut a text into tokens; joined again they are the text.

    A token is one of: ASCII digits; ASCII letters; white space; a command, `\pi` or `\,`; a text
    with its braces, `\text{ cm}`; a begin or end of an environment; `**`; any other character.

    Example:
        >>> tokenize(r"-12\text{ cm}^2")
        ['-', '12', '\\text{ cm}', '^', '2']
    """
    return _TOKEN.findall(text)


def inside_text(token: str) -> str | None:
    r"""What stands in a token such as `\text{ cm}`, its spacing kept; None for other tokens."""
    if len(token) < 4 or token[0] != "\\" or token[-1] != "}":
        return None
    if token.startswith((r"\begin{", r"\end{")):
        return None
    return token[token.index("{") + 1 : -1]


def without_command(token: str) -> str:
    r"""A text's inside, and any other token itself."""
    return token if (text := inside_text(token)) is None else text


def is_number(token: str) -> bool:
    """Whether a token is a run of ASCII digits."""
    return token.isdigit() and token.isascii()


def is_word(token: str) -> bool:
    """Whether a token is a run of ASCII letters."""
    return token.isalpha() and token.isascii()


def closing_braces(tokens: list[str]) -> dict[int, int]:
    """Where each brace that opens at a token closes; braces without a partner are left out."""
    closed: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token == "{":
            opened.append(place)
        elif token == "}" and opened:
            closed[opened.pop()] = place
    return closed
