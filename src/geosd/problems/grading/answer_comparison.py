r"""Compare an answer with the gold answer: numbers and words here, formulas by math-verify.

An answer of several values is compared element by element (`answer_lists`).

math-verify reads LaTeX with a grammar (antlr) and compares with sympy. It reads what it can: it
takes the letters of a word for a product, `1 2` for 1 + 2, and `'` and `\ldots` for nothing. So
only a formula over the gold answer's symbols goes to it, ten levels deep at most, and what it gets
wrong is written in another way before. sympy's `parse_expr`, which is Python's `eval`, is replaced.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

from geosd.problems.grading.answer_lists import (
    CLOSING,
    OPENING,
    OR,
    compare_answer_lists,
    inside_answer_list,
    read_answer_list,
    split_elements,
)
from geosd.problems.grading.answer_normalization import (
    MULTIPLY,
    NormalizedAnswer,
    answer_as_words,
    normalize_answer,
    tokenize_answer,
)
from geosd.problems.grading.exact_numbers import (
    INTEGER,
    SCIENTIFIC,
    exact_number_exponents,
    is_integer,
    read_number,
)
from geosd.problems.records import Reason

GraderMode = Literal["auto", "symbolic"]
MOST_NESTED, MOST_POWERS = 10, 3

_GREEK = (
    "alpha beta gamma delta epsilon varepsilon theta lambda mu nu omega phi varphi psi rho sigma"
    " tau xi zeta eta kappa Delta Gamma Lambda Omega Phi Pi Psi Sigma Theta"
)
_FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp max min gcd lcm det"
    " mod bmod binom"
)
_OTHERS = (
    "frac sqrt pi infty pm mp cdot times div le ge ne in notin cup cap setminus emptyset varnothing"
    " lfloor rfloor lceil rceil lvert rvert vert mid mathbb overline bar sum prod int lim to approx"
    r" { } | \ langle rangle"
)
_FUNCTION_COMMANDS = {"\\" + name for name in _FUNCTIONS.split()}
_COMMANDS = {"\\" + name for name in f"{_GREEK} {_FUNCTIONS} {_OTHERS}".split()}
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{(?:[pbBvV]?matrix|array|cases)\}")
_SIGNS = set("+-*/^_=<>!|()[]{},.:;& ")
_NAMES = {*_FUNCTIONS.split(), "pi", "sqrt", "inf", "infty"}

# What names the asked quantity: a word, `x`, `a_{10}`, `f(3)`, `[ABC]`, `|AB|`, `\angle ABC`.
_NAME = re.compile(
    rf"(?:m?\\(?:angle|triangle|overline|widehat|#|{'|'.join(_FUNCTIONS.split())})"
    r"(?:\^[0-9])?[ {]*)?"
    r"(?:\\text\{[^{}]*+\}[A-Za-z]*+|[A-Za-z]++|\\[a-zA-Z]++|\[[A-Z]++\]|\|[A-Za-z]++\|)"
    r"(?:_[A-Za-z0-9]++|_\{[^{}]*+\})?\}?'*+(?:\^\{-1\})?(?:[(\[][A-Za-z0-9, ^+\-*/=<>|\\]*+[)\]])?"
)
_SET = re.compile(r"[<>\[\]]|\\(?:[lg]e|infty|cup)\b")
_SIDE = r"(<|>|\\[lg]e(?![a-z])) ?"
_BETWEEN = re.compile(rf"(?:([^<>=,]+?){_SIDE})?[a-zA-Z] ?(?:{_SIDE}([^<>=,]+))?")

# Golds repeat for every sample of a problem, and answers do.
_normalize = lru_cache(maxsize=4096)(normalize_answer)


def compare_exactly(gold: str, answer: str) -> Reason | None:
    """Compare an answer with the gold answer by no library; None where only formulas decide."""
    integer = is_integer(gold)
    if integer and is_integer(answer):
        return "correct" if int(gold) == int(answer) else "wrong answer"
    right, read = _normalize(gold), _normalize(answer)
    word = None if integer else answer_as_words(right.body)
    if word and len(word) == 1 and read.option:
        return "correct" if word == read.option else "wrong answer"
    if right.option and right.option == answer_as_words(read.body):
        return "correct"
    agree = units_agree(right, read)
    if agree is None:
        return "unreadable"
    # One half is not 0.5 percent.
    is_fraction = r"\frac" in right.body or "/" in right.body
    if not agree or (read.unit == "percent" and not right.unit and is_fraction):
        return "wrong answer"
    if not integer and _without_blanks(right.body) == _without_blanks(read.body):
        return "correct"
    if not integer:
        several = _compare_elements(right.body, read.body, compare_exactly)
        if several is not None:
            return several
    try:
        number = read_number(right.body)
        body = read.body if "=" in right.body else _stated_value(read.body)
        stated = None if body is None else read_number(body)
    except OverflowError:
        return "unreadable"
    if number is not None and body is None:
        return "unreadable"
    if number is not None and stated is not None:
        written = right.body + str(body)
        is_rounded = "." in written and not SCIENTIFIC.search(written)
        if not integer and is_rounded:
            number, stated = round(number, 6) or number, round(stated, 6) or stated
        return "correct" if number == stated else "wrong answer"
    if word is not None and not _is_product(word, gold):
        other = answer_as_words(read.body) or ""
        # Single letters, which may be variables, compare with case.
        same = word == other or (len(word) > 1 < len(other) and word.lower() == other.lower())
        return "correct" if same else "wrong answer"
    return None


def compare_answers(gold: str, answer: str) -> Reason:
    """Compare an answer with the gold answer, formulas too; ImportError without math-verify."""
    reason = compare_exactly(gold, answer)
    if reason is not None:
        return reason
    right, read = _normalize(gold).body, _normalize(answer).body
    several = _compare_elements(right, read, compare_answers)
    if several is not None:
        return several
    if _SET.search(right):
        right, read = _as_union(right), _as_union(read)
    if "=" not in right:
        read = _stated_value(read) or "="
    right, read = (OR.sub(", ", side) for side in (right, read))
    right, read = exact_number_exponents(right), exact_number_exponents(read)
    return _compare_formulas(right, read) if _is_readable(read, right) else "unreadable"


def _compare_elements(
    gold: str, answer: str, compare_each: Callable[[str, str], Reason | None]
) -> Reason | None:
    """Compare two normalized answers of several values; None where one of them is not."""
    if _SET.search(gold) or _SET.search(answer):
        return None
    if not all(0 <= _levels(body)[0] <= MOST_NESTED for body in (gold, answer)):
        return None
    right, read = read_answer_list(gold), read_answer_list(answer)
    if right is None or read is None:
        return None
    return compare_answer_lists(right, read, compare_each)


def _stated_value(body: str) -> str | None:
    """The value that equations give a name or a calculation: 4 of the normalized `x=3+1=4`.

    Element by element of a list. None where a side before the last is neither the name of a
    quantity nor a calculation, as in `2x=12`, or where two sides are different numbers, `5+8=12`.
    The sum `m+n` has two unknowns: a problem asks for such a sum, so it names a quantity.
    """
    if "=" not in body:
        return body
    values = [_last_side(element.split("\0")) for element in split_elements(body)]
    return None if None in values else ", ".join(map(str, values))


def _last_side(sides: Sequence[str]) -> str | None:
    *names, text = (side.strip() for side in sides)
    value = read_number(text)
    for name in names:
        number = read_number(name)
        if number is not None:
            tolerance = abs(number) / 500 if "." in name + text else 0
            if value is None or abs(number - value) > tolerance:
                return None
        elif "not" in name or not (_NAME.fullmatch(name) or _is_asked(name, text)):
            return None
    return text


def _is_asked(side: str, value: str) -> bool:
    """Whether a side is a formula of no unknown, or of several."""
    if not side or not _is_formula(side, side) or re.search(r"[<>]|\\(?:[lg]e|ne|in|text)\b", side):
        return False
    tokens = [token for token in tokenize_answer(side) if token not in _NAMES]
    unknown = {letter for token in tokens if token.isalpha() for letter in token}
    unknown |= {token for token in tokens if token[1:] in _GREEK.split()}
    # Not of an angle, nor of the value.
    if _FUNCTION_COMMANDS.isdisjoint(tokens) and (unknown or r"\pi" not in value):
        unknown |= {r"\pi"}.intersection(tokens)
    return len(unknown) != 1


def _is_product(word: str, gold: str) -> bool:
    """Whether the letters of a gold answer are variables, `p - q`, `ab`, `xyz`, and no word."""
    runs = re.findall("[A-Za-z]+", word)
    few = all(
        len(run) < 3 or sorted(run) == list(run) or not set(run) & set("aeiou") for run in runs
    )
    return few and len(word) > 1 and word not in ("no", "or", "so") and r"\text" not in gold


def _without_blanks(body: str) -> str:
    return re.sub(r"(?<![0-9.]) | (?![0-9.])", "", body)


def _levels(body: str) -> tuple[int, int]:
    """How deep brackets nest (a power or a function's counts twice), and powers; -1: no partner."""
    tokens = [*tokenize_answer(body), ""]
    heights, weights, powers = [0], [0], 0
    for before, token, after in zip(["", *tokens], tokens, tokens[1:], strict=False):
        if token in OPENING:
            heights.append(0)
            weights.append(1 + (before == "^" or before in _FUNCTION_COMMANDS))
            powers = max(powers, weights.count(2))
        elif token in CLOSING:
            if len(heights) == 1:
                return -1, powers
            height = heights.pop() + weights.pop() + (after == "^")
            heights[-1] = max(heights[-1], height)
    return (heights[0] if len(heights) == 1 else -1), powers


def _is_readable(answer: str, gold: str) -> bool:
    """Whether math-verify may read an answer and its gold answer: formulas, and not too deep."""
    for depth, powers in map(_levels, (gold, answer)):
        if not 0 <= depth <= MOST_NESTED or powers > MOST_POWERS:
            return False
    # `1 2` and `12_a` are no numbers.
    return _is_formula(answer, gold) and not re.search(r"[0-9.] [0-9.]|[0-9})]_", answer)


def _is_formula(answer: str, gold: str) -> bool:
    """Whether every token of a normalized answer is a formula's, or occurs in the gold answer."""
    known = set(tokenize_answer(gold))
    letters = {letter for token in known if token.isalpha() for letter in token}
    tokens = tokenize_answer(answer)
    for place, token in enumerate(tokens):
        is_column_format = tokens[max(place - 2, 0) : place] == [r"\begin{array}", "{"]
        if is_column_format or token in known or _ENVIRONMENT.fullmatch(token):
            fits = True
        elif token[0] == "\\":
            fits = token in _COMMANDS and token.lower() not in known  # and Pi for pi
        elif token.isalpha() and token.isascii():
            # `AB=4`: two capitals name a segment. `1E3`: a capital after a digit, an exponent.
            is_segment = len(token) == 2 and token.isupper()
            fits = len(token) == 1 or token in _NAMES or is_segment or letters >= set(token)
            fits = fits and not (token == "E" and place and tokens[place - 1].isdigit())
            fits = fits and token.swapcase() not in known  # math-verify takes X for x
        else:
            fits = (token.isdigit() and token.isascii()) or token in _SIGNS
        if not fits:
            return False
    return True


def _as_union(body: str) -> str:
    r"""`x<2 or x>3` as a union of intervals; anything else as it is."""
    if built := re.fullmatch(r"\\\{[a-zA-Z](?::|\||\\mid ?)(.*)\\\}", body):
        body = built[1] if OR.search(body) else body
    parts = [part.strip(" ,") for part in OR.split(body)]
    intervals = [
        _interval(side.replace("\0", "=").strip())
        for part in parts
        for side in split_elements(part)
    ]
    return body if len(parts) == 1 or None in intervals else r"\cup".join(map(str, intervals))


def _interval(part: str) -> str | None:
    part = re.sub(r"^[a-zA-Z]\\in\b ?", "", part)
    if re.fullmatch(r"[(\[].*[)\]]|\\\{.*\\\}", part):
        return part
    if point := re.fullmatch("[a-zA-Z]=([^<>=,]+)", part):
        return rf"\{{{point[1]}\}}"
    found = _BETWEEN.fullmatch(part)
    if not found or found[1] is found[4] is None:
        return None
    low, left, right, high = found.groups()
    turned = (left or right) in (">", r"\ge")
    if left and right and (right in (">", r"\ge")) != turned:
        return None
    if turned:  # `x>3` is `3<x`, and `4>x>3` is `3<x<4`
        flip = {None: None, ">": "<", r"\ge": r"\le"}
        low, left, right, high = high, flip[right], flip[left], low
    opening = "[" if left == r"\le" else "("
    closing = "]" if right == r"\le" else ")"
    low, high = low or r"-\infty", high or r"\infty"
    return f"{opening}{low}, {high}{closing}"


def forbid_eval() -> None:
    """Replace sympy's `eval`-based parser in this process: it reads number literals alone.

    sympy turns a string into a number by `parse_expr`, which is `eval`; latex2sympy hands it the
    digits that its grammar read. Digits need no `eval`.
    """
    import sympy.physics.units  # noqa: F401  (it names its units through `sympify` when imported)
    from sympy import Float, Integer
    from sympy.parsing import sympy_parser

    def read_literal(text: str, *_: Any, **__: Any) -> Any:
        text = text.strip()
        if INTEGER.fullmatch(text):
            return Integer(int(text))
        if re.fullmatch(r"[+-]?(?:[0-9]++\.[0-9]*+|\.[0-9]++)", text):
            return Float(text)
        raise ValueError(f"{text[:80]!r} is no number, and text is never evaluated as Python here")

    sympy_parser.parse_expr = read_literal


def _compare_formulas(gold: str, answer: str) -> Reason:
    r"""Compare two normalized answers by math-verify, in this process.

    `unreadable` where math-verify cannot read or compare one of them. A tuple or interval never
    equals a set in braces; an interval equals its inequality. Of math-verify's readers only the one
    of LaTeX is used, without its removal of units, which takes the last letter of `2t` for one.
    Its timeouts are signals and answer False in silence: they are off, the parent ends this
    process.
    """
    forbid_eval()
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    from latex2sympy2_extended import NormalizationConfig
    from math_verify import LatexExtractionConfig, parse, verify
    from sympy import Float

    for one, other in ((gold, answer), (answer, gold)):
        is_tuple = re.fullmatch(r"[(\[].*[)\]]", one, re.DOTALL)
        if is_tuple and inside_answer_list(other, r"\{", r"\}") is not None:
            return "wrong answer"
    reader = LatexExtractionConfig(
        normalization_config=NormalizationConfig(
            basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none"
        )
    )
    options = {"fallback_mode": "no_fallback", "parsing_timeout": None, "raise_on_error": True}
    try:
        right, read = (
            [
                value
                for value in parse(f"${body}$", [reader], **options)
                if not isinstance(value, str)
            ]
            for body in (gold, answer)
        )
        if not right or not read:
            return "unreadable"
        # math-verify takes less than 1e-15 for nothing. Where no decimal is rounded, 1e-100 is not.
        rounded = any(value.has(Float) for value in (*right, *read))
        options = {"timeout_seconds": None, "allow_set_relation_comp": True, "raise_on_error": True}
        equal = verify(right, read, numeric_precision=15 if rounded else 100, **options)
        equal = equal and (rounded or _have_ratio_one(right[0], read[0]))
    except MemoryError:
        raise
    except Exception:  # a sum of anything that antlr, latex2sympy and sympy can raise
        return "unreadable"
    return "correct" if equal else "wrong answer"


def _have_ratio_one(one: Any, other: Any) -> bool:
    """Whether two numbers that differ by next to nothing are near for their size, too."""
    if not (getattr(one, "is_number", False) and getattr(other, "is_number", False)):
        return True
    if one == other or other == 0:
        return True
    return bool(abs((one / other).evalf(30) - 1) < 1e-20)


def units_agree(gold: NormalizedAnswer, answer: NormalizedAnswer) -> bool | None:
    """Whether an answer's unit agrees with the gold answer's; None where the words are unknown.

    A unit may be left out, and not be replaced. Only the gold answer may have unknown words. A base
    may be left out, and not be added: `12_{13}` is 15.
    """
    if gold.unit == answer.unit:
        return True
    if not answer.unit:
        return MULTIPLY.isdisjoint(gold.unit.split())
    if not answer.units_known:
        return None
    return not gold.unit and (not answer.unit.startswith("base ") or answer.unit == "base 10")
