r"""One spelling for what LaTeX lets one write in several ways, and no frame around it."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.problems.grading.answer_tokens import (
    BLANK,
    CURRENCY,
    DEGREE,
    LIST,
    PERCENT,
    THIN,
    WIDE,
    closing_braces,
    inside_text,
    is_number,
    is_space,
    last_before,
    tokenize,
)

_FRAMES = (("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))
_BOXES = (r"\boxed", r"\fbox")
_AFTER_THE_END = {",", ";", "\\", r"\,", r"\;", r"\ ", r"\!", "**", "~"}
_SPELLINGS = {
    **dict.fromkeys((r"\,", r"\;", r"\:", r"\ ", r"\!"), THIN),
    **dict.fromkeys(("$", r"\(", r"\)", r"\[", r"\]", r"\quad", r"\qquad"), WIDE),
    **dict.fromkeys((r"\left", r"\right", r"\displaystyle", r"\textstyle", r"\limits"), WIDE),
    **dict.fromkeys((r"\big", r"\Big", r"\bigl", r"\bigr", r"\Bigl", r"\Bigr"), WIDE),
    **dict.fromkeys((r"\biggl", r"\biggr"), WIDE),
    **dict.fromkeys((r"\dfrac", r"\tfrac", r"\cfrac"), r"\frac"),
    **dict.fromkeys((r"\$", r"\pounds", r"\euro", "€", "£", "¥", "₹"), CURRENCY),
    r"\leq": r"\le", r"\geq": r"\ge", r"\neq": r"\ne", r"\lt": "<", r"\gt": ">",
    r"\%": PERCENT, r"\degree": DEGREE, "pi": r"\pi", "infinity": r"\infty",
}  # fmt: skip
_WORDS = {"and": LIST, "or": LIST, "percent": PERCENT, "percentage": PERCENT, "pct": PERCENT}


def without_frames(tokens: Sequence[str]) -> Sequence[str]:
    r"""The tokens without delimiters, boxes, bold and punctuation around all of them.

    A text that holds all of a number, `\textbf{12}`, is a frame too.
    """
    closing = closing_braces(tokens)
    start, end = 0, len(tokens)
    before = None
    while (start, end) != before:
        before = start, end
        while start < end and (tokens[start].isspace() or tokens[start] == "**"):
            start += 1
        while start < end and _says_nothing_at_the_end(tokens, end - 1):
            end -= 1
        if end - start > 2 and (tokens[start], tokens[end - 1]) in _FRAMES:
            start, end = start + 1, end - 1
        elif end - start > 2 and tokens[start] in _BOXES:
            brace = start + 1 + tokens[start + 1].isspace()
            if closing.get(brace) == end - 1:
                start, end = brace + 1, end - 1
    text = inside_text(tokens[start]) if end - start == 1 else None
    if text and any(map(str.isdigit, text)):
        return without_frames(tokenize(text))
    return tokens[start:end]


def spell(tokens: Sequence[str]) -> list[str]:
    r"""Spell spaces, commands, separators of lists and marks of numbers in one way each.

    `and` and `or` separate a list where there are digits. An upright letter behind something else
    is that letter, as in `2^{\mathrm{x}}`; alone it may be a choice, behind a number a unit.
    """
    has_digits = any(map(is_number, tokens))
    closing = closing_braces(tokens) if r"\phantom" in tokens else {}
    spelled: list[str] = []
    begun = False  # whether anything but space stands before
    place = 0
    while place < len(tokens):
        token, text = tokens[place], inside_text(tokens[place])
        place += 1
        begun = begun or bool(spelled and not is_space(spelled[-1]))
        if has_digits and (word := (text or token).strip(" ,").lower()) in _WORDS:
            while (
                _WORDS[word] == LIST and spelled and (is_space(spelled[-1]) or spelled[-1] == ",")
            ):
                spelled.pop()  # `1, and 2` has one separator
            spelled.append(_WORDS[word])
        elif text is not None:
            is_letter = begun and _is_upright_letter(token, text)
            is_unit = is_letter and is_number(spelled[-1]) and text not in "ei"
            spelled.append(text if is_letter and not is_unit else rf"\text{{{text}}}")
        elif token.isspace():
            spelled.append(BLANK if token == " " else WIDE)
        elif token == r"\circ":
            place += _spell_degree(spelled, tokens, place)
        elif token == "{" and tokens[place : place + 2] == [",", "}"]:
            spelled.append(",")
            place += 2
        elif token == "~":  # in front, a sign of rounding
            spelled.append(THIN if spelled else token)
        elif token == "**":
            is_power = spelled and not is_space(spelled[-1]) and _begins_operand(tokens, place)
            spelled.append(token if is_power else WIDE)
        elif token == r"\phantom":
            place = closing.get(place, place - 1) + 1
            spelled.append(WIDE)
        elif token == r"\!" and spelled and spelled[-1] == ",":  # `1,\! 000`
            place += place < len(tokens) and tokens[place].isspace()
        else:
            spelled.append(_SPELLINGS.get(token, token))
            if token in (r"\left", r"\right") and tokens[place : place + 1] == ["."]:
                place += 1
    return spelled


def _says_nothing_at_the_end(tokens: Sequence[str], place: int) -> bool:
    token = tokens[place]
    if token == ".":  # dots say that more digits follow
        return place == 0 or tokens[place - 1] != "."
    return token.isspace() or token in _AFTER_THE_END


def _is_upright_letter(token: str, text: str) -> bool:
    return len(text) == 1 and (text in "ei" or not token.startswith((r"\text{", r"\mbox")))


def _spell_degree(spelled: list[str], tokens: Sequence[str], place: int) -> int:
    r"""Turn the `^\circ` or `^{\circ}` that ends here into a degree; how many tokens that takes."""
    braces = spelled[-1:] == ["{"] and tokens[place : place + 1] == ["}"]
    last = last_before(spelled, len(spelled) - braces)
    if last < 0 or spelled[last] != "^":
        spelled.append(r"\circ")
        return 0
    spelled[last:] = [DEGREE]
    return int(braces)


def _begins_operand(tokens: Sequence[str], place: int) -> bool:
    return place < len(tokens) and (tokens[place].isalnum() or tokens[place][0] in "({\\-")
