r"""Whether an answer is a formula over the symbols of its gold answer that says one value.

math-verify reads what it can. It takes the letters of a word for a product, `1 2` for 1 + 2, and
`'` and `\ldots` for nothing. So only a formula goes to it: signs, known commands, single letters,
and of longer runs of letters those that the gold answer's letters can make. It also takes the right
side of any equation for the answer, of `2x=12` too; here the left side must be a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from geosd.problems.grading.answer_tokens import inside_text, is_number, is_word, tokenize
from geosd.problems.grading.exact_numbers import right_side

_SIGNS = set("+-*/^_=<>!|()[]{},.:;& ")
_COMMANDS = {
    "\\" + name
    for name in (
        "frac sqrt pi infty pm mp cdot times div le ge ne in notin cup cap setminus emptyset"
        " varnothing sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp max"
        " min gcd lcm mod bmod binom lfloor rfloor lceil rceil lvert rvert vert mid mathbb overline"
        " bar sum prod int lim to det approx alpha beta gamma delta epsilon varepsilon theta"
        " lambda mu nu omega phi varphi psi rho sigma tau xi zeta eta kappa Delta Gamma Lambda"
        " Omega Phi Pi Psi Sigma Theta { } | \\ langle rangle"
    ).split()
}
_ENVIRONMENTS = {
    rf"\{side}{{{name}}}"
    for side in ("begin", "end")
    for name in "matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix array cases".split()
}
_OPENING, _CLOSING = {"(", "[", "{", r"\{"}, {")", "]", "}", r"\}"}
_FUNCTIONS = set("pi sin cos tan cot sec csc log ln sqrt exp max min gcd lcm mod inf infty".split())


def is_formula(answer: str, gold: str) -> bool:
    r"""Whether every token of a normalized answer is a formula's, or occurs in the gold answer.

    Example:
        >>> is_formula(r"\frac{1}{2}x", r"\frac{x}{2}"), is_formula(r"not\frac{1}{2}", "1/2")
        (True, False)
        >>> is_formula(r"x=2^3", "8"), is_formula("2x=8", "8")
        (True, False)
    """
    known = set(tokenize(gold))
    letters = set("".join(filter(is_word, known)))
    tokens = tokenize(answer)
    for place, token in enumerate(tokens):
        is_column_format = tokens[max(place - 2, 0) : place] == [r"\begin{array}", "{"]
        if is_column_format or token in known or token in _ENVIRONMENTS:
            fits = True
        elif token in _COMMANDS:
            fits = token.lower() not in known  # and Pi for pi
        elif inside_text(token) is not None or token[0] == "\\":
            fits = False
        elif is_word(token):
            # `AB=4`: two capitals name a segment. `1E3`: a capital behind a digit, an exponent.
            is_segment = len(token) == 2 and token.isupper()
            fits = len(token) == 1 or token in _FUNCTIONS or is_segment or letters >= set(token)
            fits = fits and not (token == "E" and place and is_number(tokens[place - 1]))
            fits = fits and token.swapcase() not in known  # math-verify takes X for x
        else:
            fits = is_number(token) or token in _SIGNS
        if not fits:
            return False
    return not _has_numbers_side_by_side(tokens) and ("=" in known or _names_a_value(tokens))


def _has_numbers_side_by_side(tokens: Sequence[str]) -> bool:
    """Whether a blank separates numbers, or an index stands at one: `1 2`, `12_a`."""
    numerals = [is_number(token) or token == "." for token in tokens]
    blanks = any(
        before and token == " " and after
        for before, token, after in zip(numerals, tokens[1:], numerals[2:], strict=False)
    )
    return blanks or any(
        token == "_" and (is_number(before) or before in ("}", ")"))
        for before, token in zip(tokens, tokens[1:], strict=False)
    )


def _names_a_value(tokens: Sequence[str]) -> bool:
    """Whether every equation of an answer says what a name or a calculation is."""
    return all(right_side(sides) is not None for sides in _equations(tokens))


def _equations(tokens: Sequence[str]) -> Iterator[list[str]]:
    """The sides of each element of a list, cut at commas and equal signs outside of brackets."""
    sides, depth = [""], 0
    for place, token in enumerate(tokens):
        depth += (token in _OPENING) - (token in _CLOSING)
        is_relation = place > 0 and tokens[place - 1] in ("<", ">", "!")
        if token == "," and depth <= 0:
            yield sides
            sides = [""]
        elif token == "=" and depth <= 0 and not is_relation:
            sides.append("")
        else:
            sides[-1] += token
    yield sides
