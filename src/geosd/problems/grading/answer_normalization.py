r"""The normal form of an answer: one text for every way to write the same answer.

Two answers that differ in presentation alone are the same answer; docs/problems.md lists what is
presentation. What cannot be removed without changing a value stays, and then no reader takes the
answer for a number. Nothing that is removed joins two runs of digits: `12€13` is not 1213.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import yaml

# Words after a number change it more often than not: `12 million`, `12 below zero`. Only those of
# units.yaml do not. Names of up to three letters count in this case alone, for `12 M` are millions.
_IGNORED_WORDS = set("total altogether exactly only such different distinct possible".split())
_MODIFIERS = {"square", "cubic", "per"}
# Of a gold answer alone: `12 million` is not 12, whatever words a gold answer may have.
MULTIPLY = set("dozen gross hundred thousand million billion trillion half third pair".split())

# A sign is replaced only where it can mean one thing: `½` is a fraction and not `1/2`, which would
# make 11/2 of `1½`.
_SIGNS = str.maketrans({
    **dict.fromkeys("−‐‑–—", "-"), **dict.fromkeys("÷⁄∕", "/"), **dict.fromkeys("·⋅", r"\cdot "),
    "×": r"\times ", "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
    "±": r"\pm ", "≡": r"\equiv ", "°": r"^\circ ", "√": r"\sqrt ", "’": "'", "…": r"\ldots ",
    "\u200b": " ", "\ufeff": " ",
})  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_RANGE = re.compile(r"(?<=[\d$])[–—](?=[\d$])")

_MATH_FONTS = (
    "mathbf mathrm mathit mathsf mathtt mathnormal boldsymbol pmb bm underline uline emph boxed"
    " fbox bold ensuremath"
)
_TEXT_FONTS = "(?:text(?:bf|rm|it|sf|tt|sc|sl|normal)?|mbox|hbox|operatorname|rm)"
_FONT = re.compile(
    rf"\\(?:({_MATH_FONTS.replace(' ', '|')})|{_TEXT_FONTS})\*?\s*+\{{([^{{}}]*+)\}}"
)
_SPACE, _THIN_SPACE, _ROW = "  ", "\x1f", "\x1e"  # a space that can separate digit groups is thin
_IGNORED_COMMANDS = (
    "left right big bigl bigr Big Bigl Bigr bigg biggl biggr Bigg Biggl Biggr limits displaystyle"
    " textstyle bf rm it tiny small normalsize large Large LARGE huge Huge bfseries itshape quad"
    " qquad scriptstyle textbf textit textrm textsf texttt"
)
_SPELLINGS = {
    **dict.fromkeys(f"{_IGNORED_COMMANDS} {_MATH_FONTS}".split(), _SPACE),
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac",
    "leq": r"\le", "leqslant": r"\le", "geqslant": r"\ge", "geq": r"\ge", "neq": r"\ne",
    "lt": "<", "gt": ">", "degree": "°", "varnothing": r"\emptyset", "lbrace": r"\{",
    "rbrace": r"\}",
}  # fmt: skip
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve".split(), 2
    )
} | {"sixteen": "16"}


def _in_font(match: re.Match[str]) -> str:
    """Words in a font stay words; numbers and letters of formulas lose the font."""
    is_math, text = match[1], match[2]
    if is_math and not re.fullmatch(r"\s*+[A-Za-z]{2}[A-Za-z\s]*+", text):
        return text if len(text) == 1 and not text.isdigit() else "{" + text + "}"
    if re.search(r"[0-9]", text) or not re.search(r"[^\W\d_]", text) or text.strip()[0] == "(":
        return _SPACE + text + _SPACE
    return r"\text{" + text + "}"


def _recurring(match: re.Match[str]) -> str:
    whole, fixed, repeated = match[1], match[2], match[3] or match[4]
    if len(whole) + len(fixed) + len(repeated) > 60:
        return match[0]
    value = Fraction(int(repeated), 10 ** len(repeated) - 1) + int(whole + fixed or "0")
    value /= 10 ** len(fixed)
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


_ONE = r"\s*+([0-9A-Za-z]|\\[a-zA-Z]++)"
_NESTED = {
    ends: rf"(?>(?:[^{ends}]|\{ends[0]}(?>(?:[^{ends}]|\{ends[0]}[^{ends}]*+\{ends[1]})*)"
    rf"\{ends[1]})*)"
    for ends in ("()", "{}")
}
# What a text must hold for a rule, which costs less to look for than the rule's pattern.
_RULES: list[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (needed, re.compile(pattern, re.DOTALL), replacement)
    for needed, pattern, replacement in (
        ("\\", _FONT.pattern, _in_font),
        ("color", r"\\(?:text)?color(?:box)?\s*+(?:\[[A-Za-z]*+\])?\{[^{}]*+\}", _SPACE),
        ("\\", r"\\([a-zA-Z]++)", lambda command: _SPELLINGS.get(command[1], command[0])),
        ("", r"(?<!\\)\$|\\[()\[\]]|\n|\t|`", _SPACE),
        (",", r"\{,\}|,\\!\s*+", ","), ("\\", r"\\[,;:! ]", _THIN_SPACE),
        ("~", "(?<=.)~", _THIN_SPACE), (";", ";", ","),
        ("circ", r"\^\s*+(?:\\circ(?![a-z])|\{\s*+\\circ\s*+\})", "°"),
        ("%", r"\\%", "%"), ("$", r"\\\$", "$"),
        ("pi", r"(?<![A-Za-z\\])pi(?![A-Za-z])", r"\\pi"),
        ("\\bar", r"([0-9]*+)\.([0-9]*+)\\bar\s*+(?:\{\s*+([0-9]++)\s*+\}|([0-9]))", _recurring),
        ("\\dot", r"([0-9]*+)\.([0-9]*+)\\dot\s*+(?:\{\s*+([0-9])\s*+\}|([0-9]))", _recurring),
        ("overl", r"([0-9]*+)\.([0-9]*+)\\overline\s*+(?:\{\s*+([0-9]++)\s*+\}|([0-9]))",
         _recurring),
        ("", r"(?<=[0-9])\s?\^?\{?\s?(?:\\text\{)?\s?(?:st|nd|rd|th)\s?\}{0,2}(?![A-Za-z0-9])", ""),
        ("$", r"(?<![0-9)}\]])(?<![0-9)}\]] )\$ ?(?=[.0-9])|(?<=[0-9])\$(?=\s*+$)", " "),
        ("", r"[%°](?=\s*+,|\s*+\\text\{\s?(?:and|or))", ""),
        ("equiv", r"\(?\s*+(?:\\[pb]?mod|\\text\{\s?mod\s?\}|(?<![A-Za-z\\])mod(?![a-z]))[\s{]*+"
         r"([0-9]++|[a-zA-Z])\s*+\}?\s*+\)?", r"\\pmod{\1}"),
        ("\\in", r"\\in\s*+(?:\\mathbb\s*+\{?\s*+|\\)?([NZQRC])(?![A-Za-z])\}?",
         r"\\in\\mathbb{\1}"),
        ("\\", r"\\(sqrt|frac)" + _ONE, r"\\\1{\2}"),
        ("\\f", r"(\\frac\s*+\{[^{}]*+\})" + _ONE, r"\1{\2}"),
    )
]  # fmt: skip
# Rows of equations in one environment. An array without equations is a matrix.
_SYSTEM = re.compile(
    r"(?:\\left\s*+)?(?:\\\{)?\s*+\\begin\{(?P<name>cases|array|matrix|aligned|alignedat|gathered|split"
    r"|(?:align|alignat|gather|eqnarray)\*?)\}"
    r"(?:\{[lcr|\s0-9]*+\})?(?P<rows>.*?)\\end\{(?P=name)\}(?:\s*+\\right\s*+(?:\.|\\\}))?",
    re.DOTALL,
)
# What says that nothing fulfils a condition.
_EMPTY = re.compile(
    r"(?:[a-zA-Z]\s?(?:=|\\in)\s?)?(?:\\emptyset|\\\{\s*+\\\})"
    r"|(?:there (?:is|are) |(?:(?:it|the (?:equation|system)) )?has )?no"
    r"(?: (?:real|integer|integral|rational|positive))* (?:solutions?|roots?)(?: exists?)?"
    r"(?: (?:in|over|among) (?:the )?(?:reals|(?:real|rational) numbers|(?:positive )?integers))?"
    r"|(?:the )?empty set|none",
    re.IGNORECASE,
)
_LIST_WORD = re.compile(
    r"[\s,]*+(?:\\text\{\s*+(?:and|or)\s*+,?\s*+\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*+"
)
_OPTION = re.compile(
    r"[\s{]*+(?:\\text\{)?\s?(?:\(\s?([A-J])\s?\)|([A-J])\s?\}?\s?[):.])[\s}:.]*+"
    r"(?!,|&|and\b|or\b|\\text\{\s?(?:and|or)\b)(\S.*)",  # `(A), (C)` is a list of options
    re.DOTALL,
)
_BASE = re.compile(
    r"(?:[A-Za-z]\s?=\s?)?[({]?\s*+(-?[0-9A-F]++)\s*+[)}]?\s*+"
    r"(?:_\s?|(?=[\s({]*+(?:\\text\{)?[\s(]*+(?:in )?base))[{(\s]*+(?:\\text\{)?[\s(]*+"
    rf"(?:in )?(?:base)?[\s}}\-]*+(?:\\text\{{\s?)?([0-9]++|{'|'.join(_NUMBER_WORDS)})[\s)}}]*+"
)
_THOUSANDS = [
    re.compile(rf"(?<![0-9.,\x1f])([1-9][0-9]{{0,2}})((?>(?:{s}[0-9]{{3}})+))(?![0-9]|{s}[0-9])")
    for s in (",", _THIN_SPACE)
]
_BLANK_GROUPS = re.compile(r"\s*+([+-]?[1-9][0-9]{0,2}(?>(?: [0-9]{3})+))\s*+")
_TOKEN = re.compile(
    r"\\(?:begin|end)\{[A-Za-z]++\*?\}|\\text\{[^{}]*+\}|\\[A-Za-z]++|\\.|[0-9]++|[A-Za-z]++|\s++"
    "|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class NormalizedAnswer:
    """The normal form of an answer: the answer without its presentation.

    The `body` is LaTeX, with blanks only where two tokens would become one; the `unit` after it is
    in one spelling, `square cm` for `cm^2`; `units_known` says that no word of it changes the
    number; `option` is the letter of the option in front.
    """

    body: str
    unit: str = ""
    units_known: bool = True
    option: str = ""


def normalize_answer(answer: str) -> NormalizedAnswer:
    r"""The normal form of an answer: its presentation is removed.

    Example:
        >>> normalize_answer(r"$\dfrac{1}{2}\text{ cm}$.")
        NormalizedAnswer(body='\\frac{1}{2}', unit='cm', units_known=True, option='')
        >>> normalize_answer("−1,000").body
        '-1000'
    """
    text = _in_latex(answer).strip(" \n\t*~")
    if r"\begin" in text:  # there, a double backslash starts a row
        text = _SYSTEM.sub(_as_list, text.replace(r"\\", _ROW))
    else:
        text = re.sub(r"\\\\(?=[a-zA-Z{}%$!,()\[\]])", r"\\", text)
    for needed, pattern, replacement in _RULES:
        if needed in text:
            text = pattern.sub(replacement, text)
    text = re.sub(r"(?<!\.)\.$", "", text.strip().rstrip(" ,;*\\\x1f")).strip()
    option = ""
    if found := _OPTION.fullmatch(text):
        option, text = found[1] or found[2], found[3]
    if _EMPTY.fullmatch(" ".join(_without_texts(text).strip(" .").split())):
        return NormalizedAnswer(r"\emptyset", option=option)
    if base := _BASE.fullmatch(text):
        return NormalizedAnswer(
            base[1], f"base {_NUMBER_WORDS.get(base[2], base[2])}", option=option
        )
    # `or` of intervals and inequalities is a union, and read where the gold answer is known.
    if any(map(str.isdigit, text)) and not re.search(r"[<>]|\\[lg]e(?![a-z])|[(\[].*or", text):
        text = _LIST_WORD.sub(", ", text)
    if "°" in text and re.search(r"(?:sin|cos|tan|cot|sec|csc)(?![a-z])", text):
        text = re.sub(r"([0-9]++(?:\.[0-9]++)?)\s*+°", r"\\frac{\1\\pi}{180}", text)
    body, unit, units_known = _split_unit(tokenize_answer(_join_thousands(text)))
    if groups := _BLANK_GROUPS.fullmatch(body):
        body = groups[1].replace(" ", "")
    return NormalizedAnswer(_written(body), unit, units_known, option)


def _as_list(system: re.Match[str]) -> str:
    """The equations of a system with commas between them; a matrix as it is."""
    rows = [row.strip() for row in re.split(rf"{_ROW}(?:\[[0-9.]++[a-z]{{2}}\])?", system["rows"])]
    rows = [re.sub(r"\s*+&?\s*+=\s*+&?\s*+", "=", row.rstrip(" ,;")) for row in rows if row]
    rows = [re.sub(r"(?:^|(?<=,))\s*+&", "", row) for row in rows]
    if system["name"] in ("array", "matrix") and not all("=" in row for row in rows):
        return system[0]
    # A row that begins with `=` goes on with the equation before.
    return ", ".join(rows).replace(", =", "=")


def tokenize_answer(text: str) -> list[str]:
    r"""Cut the text of an answer into tokens of LaTeX; joined again they are the text.

    A token is one of: ASCII digits; ASCII letters; white space; a command, `\pi` or `\,`; a text
    with its braces, `\text{ cm}`; a begin or end of an environment; any other character.

    Example:
        >>> tokenize_answer(r"-12\text{ cm}^2")
        ['-', '12', '\\text{ cm}', '^', '2']
    """
    return _TOKEN.findall(text)


def _without_texts(text: str) -> str:
    r"""A text with the insides of its `\text{ cm}`."""
    return re.sub(r"\\text\{([^{}]*+)\}", r"\1", text)


def _in_latex(text: str) -> str:
    r"""Normalize the Unicode signs of an answer to LaTeX or ASCII; signs without such a form stay.

    A dash between two digits is a range and stays. `unicodedata.normalize` is used on single
    characters alone: it joins what is apart, and orders long runs of accents in quadratic time.

    Example:
        >>> _in_latex("−1½·x² ≤ ３")
        '-1\\frac{1}{2}\\cdot x^{2} \\le  3'
    """
    if text.isascii():
        return text
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]++", lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
    text = re.sub("[₀₁₂₃₄₅₆₇₈₉]++", lambda run: f"_{{{run[0].translate(_LOWERED)}}}", text)
    parts = _RANGE.split(re.sub(r"√\s*+([0-9]++)", r"\\sqrt{\1}", text))
    return "\N{EN DASH}".join("".join(map(_replace_sign, part.translate(_SIGNS))) for part in parts)


@lru_cache(maxsize=4096)
def _replace_sign(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    tag = unicodedata.decomposition(character).partition(" ")[0]
    plain = unicodedata.normalize("NFKC", character)
    top, _, bottom = plain.partition("⁄")
    if tag == "<fraction>" and top and bottom:
        return rf"\frac{{{top}}}{{{bottom}}}"
    # Others, such as ⑫ or ᵗʰ, would lose what sets them apart from 12 and th.
    is_form = tag in ("<wide>", "<narrow>", "<small>", "<font>", "<square>")
    return plain if is_form and plain.isascii() else character


def _join_thousands(text: str) -> str:
    r"""Join groups of three digits: `1,000` and `1\,000` are 1000; but `(1,000)` is a pair."""

    def join(group: re.Match[str]) -> str:
        before = text[: group.start()]
        pairs = ("()", "[]", (r"\{", r"\}"))
        in_brackets = any(before.count(left) > before.count(right) for left, right in pairs)
        return group[0] if in_brackets else re.sub("[^0-9]", "", group[0])

    for pattern in _THOUSANDS:
        text = pattern.sub(join, text)
    return text.replace(_THIN_SPACE, " ").replace(_ROW, r"\\")


def _split_unit(tokens: list[str]) -> tuple[str, str, bool]:
    """The value, the unit after it, and whether all its words are known not to change the value.

    A list, and what begins with a bracket, has no unit. A text may hold any words; outside of texts
    every word must be a unit's, and one letter is a factor.
    """
    end = len(tokens)
    first = tokens[0] if tokens else ""
    may_have_unit = "," not in tokens and first not in ("(", "[", r"\{")
    while end and may_have_unit:
        token = tokens[end - 1]
        if token in ("2", "3", "}"):
            before = "".join(tokens[max(end - 6, 0) : end])
            power = re.search(r"[A-Za-z]\}?\s?(\^[23]|\^\{[23]\})\Z", before)
            if not power:
                break
            end -= len(tokenize_answer(power[1]))
        elif token.startswith(r"\text{") or token.isspace() or token in "°%/.":
            end -= 1
        elif token in MULTIPLY:
            end -= 1
        elif _unit_named(token) and (len(token) > 1 or tokens[end - 2 : end - 1] == ["/"]):
            end -= 1
        else:
            break
    while end < len(tokens) and (tokens[end].isspace() or tokens[end] in "/."):
        end += 1
    body = "".join(tokens[:end])
    if not re.search(r"(?:[0-9})\]]|\\pi)\s*+\Z", body):
        return "".join(tokens), "", True
    words: list[str] = []
    named = False
    parts = re.findall(
        r"[A-Za-z]++|\^\s*+\{?[23]\}?|[^\s.,]", _without_texts("".join(tokens[end:]))
    )
    for part in parts:
        if part[0] == "^":  # `cm^2` is `square cm`
            words[-1:-1] = ["square" if "2" in part else "cubic"]
        elif (unit := _unit_named(part)) not in _IGNORED_WORDS:
            words.append(unit or part.lower())
        named = named or (part[0] != "^" and unit not in _MODIFIERS)
    units_known = all(_unit_named(part) or (part[0] == "^" and part != parts[0]) for part in parts)
    # `12\text{ }^2`, `12 per`, `12 %%` say something else.
    units_known = units_known and len(set(words)) == len(words) and (named or not words)
    units_known = units_known and not (words and (words[0] == "per" or words[-1] in _MODIFIERS))
    return body, " ".join(words), units_known


def _unit_named(word: str) -> str | None:
    """The unit that a word names, in one spelling; None if it names none."""
    return _NAMES.get(word) or (_NAMES.get(word.lower()) if len(word) > 3 else None)


def _written(text: str) -> str:
    """A text without blanks that separate nothing and brackets that hold nothing but their like."""
    text = re.sub(r"(?<![0-9A-Za-z.])\s++|\s++(?![0-9A-Za-z.])", "", text).replace(",", ", ")
    before = ""
    while before != text:
        before = text
        text = re.sub(rf"\(\(({_NESTED['()']})\)\)", r"(\1)", text)
        text = re.sub(rf"(?<!\\)\{{\{{({_NESTED['{}']})\}}\}}", r"{\1}", text)
    whole = re.fullmatch(rf"\{{({_NESTED['{}']})\}}", text)
    return whole[1] if whole and ("," not in text or whole[1][:1] == "(") else text.strip()


def _spellings() -> dict[str, str]:
    spellings = {}
    units = Path(__file__).with_name("units.yaml").read_text(encoding="utf-8")
    for line in yaml.safe_load(units):
        unit, *_ = names = line.split()
        spellings |= dict.fromkeys(names, unit)
        spellings |= {name + "s": unit for name in names if name.islower() and len(name) > 2}
    return spellings


_NAMES = _spellings()


def answer_as_words(body: str) -> str | None:
    r"""The letters of a normalized answer that is a word or a choice, `\text{(C)}`; else None."""
    bare = _without_texts(body).strip(" .{}")
    bare = re.sub(r"\A(?:[Oo]ptions?|[Cc]hoices?)(?: |(?=\())(?=\(?[A-J]\)?\Z)", "", bare)
    bare = re.sub(r"\A\(\s*(\S)\s*\)\Z", r"\1", bare)
    return " ".join(bare.split()) if re.fullmatch(r"[A-Za-z][A-Za-z'\- ]*+", bare) else None
