r"""Exact values of answers that are arithmetic, such as `2^{10}`; nothing is run as code."""

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction

# Longer literals are no answers; reading them takes quadratic time.
LONGEST_NUMBER = 1000
MOST_BITS = 20_000
LARGEST_FACTORIAL = 2080  # its factorial has 19,933 bits

INTEGER = re.compile(r"[+-]?[0-9]++")
_MIXED = re.compile(r"([+-]?)([0-9]++)(?:\\frac\{([0-9]++)\}\{([0-9]++)\}| ([0-9]++)/([0-9]++))")
# `1.32e-3` as programs write it. Euler's number is a factor: `2e`, `2e^3`.
SCIENTIFIC = re.compile(
    r"(?<![0-9A-Za-z.])((?>[0-9]++(?:\.[0-9]++)?|\.[0-9]++))[eE]([+-]?[0-9]{1,5})(?![0-9.])"
)
_ARITHMETIC = re.compile(
    r"(?>(?:[0-9 .+\-*/^()!{}]|\\(?:frac|sqrt|binom|times|cdot|div)(?![a-z]))+)"
)
_AS_PYTHON = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\(?:times|cdot)", "*"), (r"\\div", "/"), (r"\\", ""), (r"\^", "**"), (r"\{", "("),
        (r"\}", ")"), (r"([0-9]++|\([^()]*+\))!", r"fact(\1)"),
        (r"(?<=[0-9)]) ?(?=sqrt|binom|fact)", "*"),
    )
]  # fmt: skip
_OPERATORS: dict[type[ast.AST], Callable[..., Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg, ast.UAdd: operator.pos,
}  # fmt: skip


def read_number(body: str) -> Fraction | None:
    r"""The exact value of a normalized answer that is arithmetic: `24/2`, `2^{10}`, `\sqrt{49}`.

    A mixed number is a sum, and `1.32e-3` is 1.32 times ten to the power of -3. Everything else
    gives None, and so do an irrational root and a text above `LONGEST_NUMBER` characters.

    Raises:
        OverflowError: The value has more than `MOST_BITS`.

    Example:
        >>> [read_number(text) for text in ("007", "2.50", r"\frac{6}{3}", r"1\frac{1}{2}", "x")]
        [Fraction(7, 1), Fraction(5, 2), Fraction(2, 1), Fraction(3, 2), None]
    """
    if len(body) > LONGEST_NUMBER:
        return None
    if INTEGER.fullmatch(body):
        return Fraction(int(body))
    body = SCIENTIFIC.sub(r"(\1*10^{\2})", body)
    if not _ARITHMETIC.fullmatch(body):
        return None
    if mixed := _MIXED.fullmatch(body):
        sign, whole, *parts = mixed.groups()
        top, bottom = (int(part) for part in parts if part)
        value = int(whole) + Fraction(top, bottom) if top < bottom else None
        return -value if value is not None and sign == "-" else value
    text = body
    try:
        for pattern, replacement in (*_AS_PYTHON, (re.compile("[0-9.]++"), _literal)):
            text = pattern.sub(replacement, text)
        # The tree is read here, number by number; nothing of it is run.
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (ZeroDivisionError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _literal(match: re.Match[str]) -> str:
    whole, dot, decimals = match[0].partition(".")
    if bool(dot) != bool(decimals):
        raise ValueError("a full stop")
    number = int(whole + decimals)
    return f"({number}/{10 ** len(decimals)})" if dot else str(number)


def _value(node: ast.AST) -> Fraction:
    match node:
        case ast.Constant(value=int(number)):
            value = Fraction(number)
        case ast.UnaryOp(op=sign, operand=operand):
            value = _OPERATORS[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _value(left), _value(right)
            if power.denominator != 1:
                raise ValueError("a root")
            if (
                abs(power) * (base.numerator.bit_length() + base.denominator.bit_length())
                > MOST_BITS
            ):
                raise OverflowError("too large for an answer")
            value = base ** int(power)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            value = _OPERATORS[type(sign)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id="sqrt"), args=[inside]):
            under = _value(inside)
            value = Fraction(math.isqrt(under.numerator), math.isqrt(under.denominator))
            if value * value != under:
                raise ValueError("irrational")
        case ast.Call(func=ast.Name(id="fact"), args=[inside]):
            value = Fraction(_factorial(_natural(inside)))
        case ast.Call(func=ast.Call(func=ast.Name(id="frac"), args=[top]), args=[bottom]):
            value = _value(top) / _value(bottom)
        case ast.Call(func=ast.Call(func=ast.Name(id="binom"), args=[top]), args=[bottom]):
            value = Fraction(_binomial(_natural(top), _natural(bottom)))
        case ast.Call(func=factor, args=[inside]):  # a number in front of a bracket
            value = _value(factor) * _value(inside)
        case _:
            raise ValueError("no arithmetic")
    if value.numerator.bit_length() + value.denominator.bit_length() > MOST_BITS:
        raise OverflowError("too large for an answer")
    return value


def _natural(node: ast.AST) -> int:
    value = _value(node)
    if value.denominator != 1 or value < 0:
        raise ValueError("not a natural number")
    return int(value)


def _factorial(number: int) -> int:
    # OverflowError and not ValueError: math-verify would take 1/3000! and 1/3001! for 0.
    if number > LARGEST_FACTORIAL:
        raise OverflowError("too large for an answer")
    return math.factorial(number)


def _binomial(top: int, bottom: int) -> int:
    if min(bottom, max(top - bottom, 0)) * top.bit_length() > MOST_BITS:
        raise OverflowError("too large for an answer")
    return math.comb(top, bottom)


def exact_number_exponents(body: str) -> str:
    r"""A formula with `1.5e3` as a product, for readers that take the e for Euler's number.

    `2e-3` stays: in a formula it can be 2e minus 3.

    Example:
        >>> exact_number_exponents(r"1.5e3\pi+2e-3")
        '(1.5\\cdot 10^{3})\\pi+2e-3'
    """

    def product(found: re.Match[str]) -> str:
        if "." not in found[1] and found[2][0] in "+-":
            return found[0]
        return rf"({found[1]}\cdot 10^{{{found[2]}}})"

    return SCIENTIFIC.sub(product, body)


def is_integer(gold: str) -> bool:
    """Whether a gold answer reads exactly as an integer, so that its problem is an integer problem.

    Example:
        >>> is_integer("-12"), is_integer("2.0"), is_integer("1/2")
        (True, False, False)
    """
    return len(gold) <= LONGEST_NUMBER and bool(INTEGER.fullmatch(gold.strip()))
