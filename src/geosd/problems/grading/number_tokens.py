r"""Numbers and fractions among the tokens of an answer: each in one spelling."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.problems.grading.answer_tokens import THIN, is_number, is_space, is_word

_OPENING, _CLOSING = {"(", "[", r"\{"}, {")", "]", r"\}"}
_THOUSANDS_SEPARATORS = {",", THIN}


def spell_fractions(tokens: Sequence[str]) -> list[str]:
    r"""Give every argument of `\frac` and `\sqrt` its braces.

    As in LaTeX an argument without braces is one character or one command: `\frac12` is one half,
    `\sqrt12` is twice the root of 1, `\frac\pi2` is half of pi.
    """
    spelled: list[str] = []
    missing = 0  # arguments of the command before that are still to come
    outside: list[int] = []  # the same, of the command around each open brace
    for token in tokens:
        if missing and is_space(token):
            continue
        if token == "{":
            outside.append(max(missing - 1, 0))
            missing = 0
        elif token == "}":
            missing = outside.pop() if outside else 0
        elif token in (r"\frac", r"\sqrt"):
            missing = 2 if token == r"\frac" else 1
        elif missing and (is_number(token) or is_word(token)):
            arguments, rest = token[:missing], token[missing:]
            spelled += [brace for character in arguments for brace in ("{", character, "}")]
            missing -= len(arguments)
            if not rest:
                continue
            token = rest
        elif missing and token[0] == "\\" and token[1:].isalpha():
            spelled += ["{", token, "}"]
            missing -= 1
            continue
        else:
            missing = 0
        spelled.append(token)
    return spelled


def join_thousands(tokens: Sequence[str]) -> list[str]:
    r"""Join groups of three digits: `1,000` and `1\,000` are 1000.

    Not in brackets, where `(1,000)` is a pair; and not where a group lacks a digit or the first one
    begins with 0, for `1,2,345` and `0,500` are lists or decimals.
    """
    joined: list[str] = []
    brackets = 0
    set_braces: list[bool] = []  # of each open brace: whether it stands where a set would
    place = 0
    while place < len(tokens):
        token = tokens[place]
        before = joined[-1] if joined else ""
        if token == "{":
            set_braces.append(not before or before.isspace() or before in "=(,|")
        is_set = token == "}" and set_braces and set_braces.pop()
        brackets += token in _OPENING or (token == "{" and set_braces[-1])
        brackets -= bool(brackets and (token in _CLOSING or is_set))
        end = place + 1
        if not brackets and _may_begin(token, before):
            end = _end_of_groups(tokens, place)
        joined.append("".join(tokens[place:end:2]))
        place = end
    return joined


def join_blank_groups(tokens: Sequence[str]) -> list[str]:
    """Join digit groups that blanks separate, `118 000`, where they are all that there is."""
    sign = [token for token in tokens[:1] if token in ("+", "-")]
    groups, blanks = tokens[len(sign) :: 2], tokens[len(sign) + 1 :: 2]
    is_one_number = (
        len(groups) == len(blanks) + 1 > 1
        and set(blanks) == {" "}
        and _may_begin(groups[0], "")
        and all(is_number(group) and len(group) == 3 for group in groups[1:])
    )
    return [*sign, "".join(groups)] if is_one_number else list(tokens)


def _may_begin(token: str, before: str) -> bool:
    """Whether a token may be the first digit group of a number."""
    fits = is_number(token) and len(token) <= 3 and token[0] != "0"
    return fits and before != "." and before not in _THOUSANDS_SEPARATORS


def _end_of_groups(tokens: Sequence[str], place: int) -> int:
    """Past the last of the groups that continue a number, or past the first if none does."""
    end = place + 1
    separator = tokens[end] if end < len(tokens) else ""
    if separator not in _THOUSANDS_SEPARATORS:
        return end
    while end + 1 < len(tokens) and tokens[end] in _THOUSANDS_SEPARATORS:
        group = tokens[end + 1]
        if not is_number(group):
            break
        if len(group) != 3 or tokens[end] != separator:
            return place + 1
        end += 2
    return end
