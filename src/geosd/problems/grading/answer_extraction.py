r"""The final answer that a response states.

Looked for in what follows the end of the thought, and inside the last whole `<answer>...</answer>`
where there is one, in this order:

1. the last `\boxed{...}` (or `\fbox`), braces balanced, with what touches it in its formula; boxes
   that only `and`, `or`, commas, bullets or math delimiters separate are one list;
2. the last line `Answer: ...`, or `A: ...`, or what stands under a heading `Final answer`;
3. the last `answer is ...`, `answer should be ...`, `answer: ...` inside a line; of a sentence
   behind a label, `Answer: The largest n is 7.`, what it ends with;
4. with `guess`, and only then: the last formula between dollar signs, or the last number.

The fourth is off by default: in a response that was cut off it finds a number that the response
never called its answer, and some such numbers are right by luck.

Every step takes time linear in the length of the response. A pattern begins with a literal or at a
line's start, and what repeats in it without a bound is possessive (`++`, `*+`): it gives nothing
back, so that a pattern that fails does not read the same text again. A group is `(?>(?:...)*)`:
Python before 3.11.5 matches `(?:...)*+` wrongly (CPython's gh-106052).
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar

Item = TypeVar("Item")
Formula = tuple[int, int, str]

# A quoted tag is a mention, and opens nothing.
_OPEN_THOUGHT = re.compile(r"<think>(?<![`'\"“]<think>)")  # begins with a literal: faster
_TAG = re.compile(r"<answer>(?<![`'\"“]<answer>)|</answer>", re.IGNORECASE)
_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*+(?=\{)|\\boxed\s++(?=\S)")
_BARE_BOX = re.compile(r"[^\s$,.;]++")
_BETWEEN_BOXES = re.compile(
    r"(?>(?:\s|\\text\s*+\{\s*+(?:and|or)\s*+\}|,|;|\$|\\[()\[\],;!\s\\]|\\q?quad|and\b|or\b|\*"
    r"|(?<=\n)(?:[-•]|\(?[0-9]{1,2}[.)])\s)*)"
)
# So much of a formula around a box is read; a longer one is prose.
_AROUND = 80
_STYLE = re.compile(
    r"\\(?:bf|displaystyle|large|Large|left|right|mathbf|boldsymbol|underline|textbf|q?quad)"
    r"(?![a-zA-Z])|\\(?:text)?color\{[a-zA-Z]{1,20}\}|\\[,;:! ]|[{}\s]"
)
# What follows a number and changes it.
_SCALE = "hundred|thousand|[mb]illion|trillion|dozen|gross|and a half"
_SCALE_AFTER = re.compile(
    rf"(?:\$|\*\*?|\\[)\]])?(?:[ \t~-]|\\[,;: ]){{0,3}}({_SCALE})\b", re.IGNORECASE
)
# What ends a side of a formula: a relation, a separator, words, a mark of the end.
_END_OF_SIDE = re.compile(
    r"[=<>≤≥≈&$]|(?<!\\)[:;,]|\\[()\[\]\\]|(?<![0-9])\.(?![0-9])|\.(?=[\s\\])"
    r"|\\(?:[lg]eq?|approx|equiv|implies|[Rr]ightarrow|to|therefore|in|text|mathrm|blacksquare"
    r"|square|checkmark|hfill|tag|begin|end|p?mod|boxed|fbox)(?![a-zA-Z])"
    rf"(?!\{{\s?(?:{_SCALE}|k\}}))"
)
_TEXT = re.compile(r"\\(?:text|mathrm)\{[^{}]*+\}")
_PROSE_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2}")
_MINUS_BEFORE = re.compile(r"(?:(?<![\w)}])[-−]|=\s{0,3}[-−]\s{0,3})\Z")
_NAME_BEFORE = re.compile(r"(?<![a-zA-Z\\])([a-zA-Z](?:_\{?[a-zA-Z0-9]\}?)?)\s{0,9}&?=\s{0,9}\Z")
_TOUCHES_IN_PROSE = re.compile(
    r"(?:\^|_[{0-9]|/|!\S|\\(?:sqrt|pi|cdot|times|frac|%))[^\s,;$]{0,80}"
)
_DIGIT_BEFORE = re.compile(r"[0-9.](?>(?:\\[,;:! ]|[\s~])*)\Z")
_DIGIT_AFTER = re.compile(r"(?>(?:\\[,;:! ]|[\s~])*)\.?[0-9]")
_ONE_VALUE = re.compile(r"[0-9A-Za-z]*|[0-9]*\.[0-9]*|\\d?frac\{[^{}]*\}\{[^{}]*\}")

_MARKUP = r"[ \t*#>_`$\-]*+(?:\\[\[(]\s*+)?(?:\\[a-zA-Z]++\s*+\{?\s*+)?"
_ANSWER_LINE = re.compile(
    rf"^{_MARKUP}(?:(?:the|my)\s++)?(?:final\s++)?"
    r"(?:(?:answer|A)[\s*_}]*+[:：]|answer[ \t*_}]*+\n"
    r"|answer[*_]{0,3}[ \t]++(?=\$|\\[(\[]|[-−]?[0-9][0-9.,/]*+\s*+$))[\s*_}]*+(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile("answer", re.IGNORECASE)
_ADVERB = r"(?:therefore|thus|then|hence|so|simply|just|of course)\b[\s,:]*+"
_STATEMENT = re.compile(
    r"answer(?:\s{1,9}+(?:to|for|of)\b[^.\n]{0,80}?)?(?:,\s{0,3}(?:therefore|thus),)?\s{0,99}+"
    r"(?:\b(?:is|are|equals)\b\s*+[,:]?+|[:：]"
    r"|\b(?:should|must|would)(?: therefore| thus)? be\b(?=[\s:*_]*+[-−(]?[$\\0-9]))"
    rf"\s*+(?:{_ADVERB})?(?=\S)",
    re.IGNORECASE,
)
_ADVERB_FIRST = re.compile(_ADVERB, re.IGNORECASE)
_VERB = re.compile(rf"\b(?:is|are|equals?|be)\b(?!\s+not\b)[\s:,]*+(?:{_ADVERB})?", re.IGNORECASE)
# A sentence that denies, that has a condition, or that says more than one thing.
_NO_STATEMENT = re.compile(
    r"\b(?:not|never|neither|nor|no|cannot|unless|if|when|whether|than|wrong|incorrect|false)\b"
    r"|n't|[=<>]|\\(?:[lg]eq?|ne)\b",
    re.IGNORECASE,
)
_HOPE = re.compile(r"[\s.*_`]*+(?:I hope\b.*+\s*+)?")
# So much after a label is read.
_STATED_WITHIN = 4000
_FENCE = re.compile(r"```[a-z]{0,9}\n|`")
_DELIMITER = re.compile(
    r"\\(?:begin|end)\{(?:align|equation|gather|multline)|\\[()\[\]]|\$\$?|\\.", re.DOTALL
)
_CLOSING = {r"\begin": r"\end", "$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_NUMBER = re.compile(r"[-−]?(?:\d{1,3}(?>(?:,\d{3})+)|\d++)(?:\.\d++)?(?:/\d++)?")
_PROSE = re.compile(r"\.(?:\s|$)|\sI hope\b|\n")


def extract_answer(response: str, *, guess: bool = False) -> str | None:
    r"""Extract the final answer that a response states, such as the content of its last box.

    Returns None where none is stated; with `guess` the last formula or number counts then.

    Example:
        >>> extract_answer(r"First \boxed{3}. No: \boxed{\frac{1}{2}}.")
        '\\frac{1}{2}'
        >>> extract_answer("... so x = 7.") is None
        True
        >>> extract_answer(r"<think> It is \boxed{3}. Wait") is None
        True
    """
    text = _after_thought(response).rstrip()
    tagged = _last_tagged(text)
    if tagged is not None:
        text = tagged
    if boxed := _last_boxes(text):
        return boxed
    if line := _last(_ANSWER_LINE.finditer(text)):
        stated = text[line.end() : line.end() + _STATED_WITHIN]
        # "Answer: The final answer is 7." states it twice.
        again = _last_statement(stated.partition("\n")[0])
        if again or "answer" not in line[0].lower():
            return _sentence(again or stated)
        # "Answer:" may begin a whole argument.
        is_last = "final" in line[0].lower() or _ends_after_sentence(stated)
        return _end_of_sentence(stated) if is_last else _sentence(stated)
    if stated := _last_statement(text):
        return _sentence(stated)
    if tagged is not None:
        return tagged if "\n" in tagged else _sentence(tagged)
    return _guess(text) if guess else None


def _last_tagged(text: str) -> str | None:
    """The text of the last whole `<answer>...</answer>`; None without one that holds something."""
    start, tagged = None, None
    for tag in _TAG.finditer(text):
        if not tag[0].startswith("</"):
            start = tag.end()
        elif start is not None:
            tagged = text[start : tag.start()].strip() or tagged
            start = None
    return tagged


def _after_thought(response: str) -> str:
    """The text after the first `</think>`, up to a later `<think>` that nothing closes.

    Nothing, where the only thought is never closed, whatever stands before it.
    """
    _, end, answer = response.partition("</think>")
    if not end:
        return "" if _OPEN_THOUGHT.search(response) else response
    again = _OPEN_THOUGHT.search(answer, answer.rfind("</think>") + 1)
    return answer[: again.start()] if again else answer


def _last_boxes(text: str) -> str | None:
    """The last whole box and those that stand directly before it, as one list."""
    found = list(_BOX.finditer(text))
    if not found:
        return None
    closed = _closing_braces(text, found[0].start())
    boxes: list[tuple[int, int, str]] = []
    for match in found:
        if boxes and match.start() < boxes[-1][1]:  # a box inside the box before it
            continue
        if text[match.end()] != "{":
            if bare := _BARE_BOX.match(text, match.end()):
                boxes.append((match.start(), bare.end(), bare[0]))
        elif end := closed.get(match.end()):
            boxes.append((match.start(), end, text[match.end() + 1 : end - 1].strip()))
    together: list[str] = []
    names: list[str] = []
    next_start = None
    for place, (start, end, content) in reversed(list(enumerate(boxes))):
        if not content:
            continue
        if next_start is not None and not _BETWEEN_BOXES.fullmatch(text, end, next_start):
            break
        earliest = max(boxes[place - 1][1] if place else 0, start - _AROUND)
        together.append(_with_its_formula(text, earliest, start, end, content, boxes[-1][0]))
        named = len(boxes) > 1 and _NAME_BEFORE.search(text, max(0, start - 30), start)
        names.append(named[1] if named else "")
        next_start = named.start() if named else start
    if len(set(names)) == len(names) > 1 and all(names):  # `x=`, `y=`: a point, not a list
        together = [f"{name}={value}" for name, value in zip(names, together, strict=True)]
    return ", ".join(dict.fromkeys(reversed(together))) or None


def _with_its_formula(
    text: str, earliest: int, start: int, end: int, content: str, last: int
) -> str:
    r"""The content of a box with what touches it: `5\sqrt{2}` of `$x = \boxed{5}\sqrt{2}$`."""
    if scale := _SCALE_AFTER.match(text, end):
        return f"{content} {scale[1].lower()}"
    is_end = text[end : end + 1] in ("$", "") or re.match(r"\.(?![0-9])", text[end : end + 2])
    if is_end and text[max(start - 2, 0) : start].strip()[-1:] in ("$", "="):
        return content
    formulas = _formulas_near(text, last)
    place = bisect_right(formulas, start, key=lambda formula: formula[0]) - 1
    before, after = "", ""
    if place >= 0 and formulas[place][1] > start:
        before = text[max(formulas[place][0], earliest) : start]
        after = text[end : min(formulas[place][1], end + _AROUND)]
        before = _END_OF_SIDE.split(before)[-1]
        after = _END_OF_SIDE.split(after, maxsplit=1)[0]
    if _PROSE_WORD.search(_TEXT.sub("", before + " " + after)) or not (before or after):
        sign = _MINUS_BEFORE.search(text, max(0, start - 9), start)
        touching = _TOUCHES_IN_PROSE.match(text, end)
        before, after = "-" if sign else "", touching[0].rstrip(".") if touching else ""
    if not _STYLE.sub("", before + after).strip("()[]. "):
        return content
    # Two runs of digits are never joined: `2\boxed{3}` is 6 and not 23.
    apart = _DIGIT_BEFORE.search(before) or _DIGIT_AFTER.match(after)
    inside = content if _ONE_VALUE.fullmatch(content) and not apart else f"({content})"
    return f"{before}{inside}{after}".strip()


def _closing_braces(text: str, start: int) -> dict[int, int]:
    """Where each brace that opens after `start` closes, one past its end; escaped ones do not."""
    closed: dict[int, int] = {}
    opened: list[int] = []
    for brace in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closed[opened.pop()] = brace.end()
    return closed


def _last_statement(text: str) -> str | None:
    """The text after the last `answer is`."""
    places = [match.start() for match in _ANSWER.finditer(text)]
    stated = (_STATEMENT.match(text, place) for place in reversed(places))
    ends = (match.end() for match in stated if match)
    return next((text[end : end + _STATED_WITHIN] for end in ends), None)


def _ends_after_sentence(stated: str) -> bool:
    """Whether nothing but `I hope it is correct` follows the first sentence of a text."""
    first = _PROSE.split(stated, maxsplit=1)[0]
    return bool(_HOPE.fullmatch(stated, len(first)))


def _end_of_sentence(stated: str) -> str:
    """The value that a sentence behind a label ends with, `34` of `The largest $n$ is 34`.

    A sentence that denies something, has a condition or several verbs, or that another one follows
    in its line, comes whole: nothing says which of its values is the answer.
    """
    sentence = _sentence(stated)
    if adverb := _ADVERB_FIRST.match(sentence):
        sentence = sentence[adverb.end() :]
    verbs = list(_VERB.finditer(sentence))
    if len(verbs) != 1 or not _ends_after_sentence(stated.partition("\n")[0]):
        return sentence
    if _NO_STATEMENT.search(sentence, 0, verbs[0].start()):
        return sentence
    return sentence[verbs[0].end() :] or sentence


def _sentence(text: str) -> str:
    """The first formula of a text that starts with one; otherwise the first line's sentence."""
    text = _FENCE.sub("", text).strip().strip("*").strip()
    if not text.startswith(("$$", r"\(", r"\[", r"\begin")):  # a lone dollar is money, on one line
        text = text.partition("\n")[0]
    first = next(_formulas(text), None) if text.startswith(("$", r"\(", r"\[")) else None
    if first and first[0] == 0:
        rest = _PROSE.split(text[first[1] :], maxsplit=1)[0].strip(" .,*")
        # A unit or a second formula after the first belongs to the answer.
        return (first[2] + " " + rest).strip()
    text = _PROSE.split(text, maxsplit=1)[0].strip().rstrip(".").strip("*").strip()
    return text[:-1] if text[-1:] == "}" and text.count("}") > text.count("{") else text


@lru_cache(maxsize=1)
def _formulas_near(text: str, place: int) -> list[Formula]:
    """The formulas of the paragraph that holds a place, and of all after it, by their starts."""
    return sorted(_formulas(text, max(text.rfind("\n\n", 0, place), 0)))


def _formulas(text: str, start: int = 0) -> Iterator[Formula]:
    r"""The start, end and inside of each formula between `$`, `$$`, `\(` or `\[`, by their ends."""
    opened: dict[str, re.Match[str]] = {}
    for delimiter in _DELIMITER.finditer(text, start):
        sign = delimiter[0].partition("{")[0]
        for opening, closing in _CLOSING.items():
            if sign == closing and opening in opened:
                begin = opened.pop(opening)
                inside = text[begin.end() : delimiter.start()].strip()
                yield begin.start(), delimiter.end(), inside
                break
        else:
            if sign in _CLOSING:
                opened[sign] = delimiter


def _last(items: Iterator[Item]) -> Item | None:
    """The last item, without a list of all: a long response has many."""
    last = deque(items, maxlen=1)
    return last[0] if last else None


def _guess(text: str) -> str | None:
    formula, number = _last(_formulas(text)), _last(_NUMBER.finditer(text))
    if formula and (number is None or number.end() <= formula[1]):
        return formula[2]
    return number[0] if number else None
