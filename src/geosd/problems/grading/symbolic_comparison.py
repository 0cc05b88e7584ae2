r"""Whether two LaTeX answers are the same mathematics, by math-verify. Runs in a worker process.

math-verify reads LaTeX with a grammar (antlr) and compares with sympy. Of its ways to read text
only this one is used, and sympy's `parse_expr`, which is Python's `eval`, is replaced. Its own
timeouts are signals and answer False in silence; they are off, and the parent ends the process.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Literal

_TUPLE_OR_INTERVAL = re.compile(r"^[(\[].*[)\]]$", re.DOTALL)
_SET = re.compile(r"^\\\{.*\\\}$", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)")
_MEMBER = re.compile(r"^[a-zA-Z]\\in\b ?")


def forbid_eval() -> None:
    """Replace sympy's `eval`-based parser in this process: it reads number literals alone.

    sympy turns a string into a number by `parse_expr`, which is `eval`; latex2sympy hands it the
    digits that its grammar read. Digits need no `eval`.
    """
    import sympy.physics.units  # noqa: F401  (it names its units through `sympify` when imported)
    from sympy import Float, Integer
    from sympy.parsing import sympy_parser

    def read_number(text: str, *_: Any, **__: Any) -> Any:
        text = text.strip()
        if _INTEGER.fullmatch(text):
            return Integer(int(text))
        if _DECIMAL.fullmatch(text):
            return Float(text)
        raise ValueError(f"{text[:80]!r} is no number, and text is never evaluated as Python here")

    sympy_parser.parse_expr = read_number


def compare(gold: str, answer: str) -> Literal["equal", "different", "unreadable"]:
    r"""Compare two normalized answers symbolically, by math-verify, in this process.

    Returns:
        `equal` or `different`; `unreadable` where math-verify cannot read or compare one of them.
        A tuple or interval never equals a set in braces; an interval equals its inequality.
    """
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    from math_verify import verify

    gold, answer = _MEMBER.sub("", gold), _MEMBER.sub("", answer)
    for one, other in ((gold, answer), (answer, gold)):
        if _TUPLE_OR_INTERVAL.match(one) and _SET.match(other):
            return "different"
    try:
        right, read = _parse(gold), _parse(answer)
        if not right or not read:
            return "unreadable"
        options = {"timeout_seconds": None, "allow_set_relation_comp": True}
        equal = verify(right, read, raise_on_error=True, **options)
    except MemoryError:
        raise
    except Exception:  # a sum of anything that antlr, latex2sympy and sympy can raise
        return "unreadable"
    return "equal" if equal else "different"


def _parse(body: str) -> list[Any]:
    r"""What math-verify reads in a formula; its string fallback is left out.

    So is its removal of units, which takes the last letter of `2t` or `\frac{h}{3}h` for one.
    """
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse

    normalization = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none"
    )
    parsed = parse(
        f"${body}$",
        [LatexExtractionConfig(normalization_config=normalization)],
        fallback_mode="no_fallback",
        parsing_timeout=None,
        raise_on_error=True,
    )
    return [value for value in parsed if not isinstance(value, str)]
