r"""The normal form of an answer: the same text for every way to write the same answer.

Two answers that differ in presentation alone are the same answer. `normalize_answer` removes the
presentation:

| written | taken as |
|---|---|
| `$..$`, `\left`, `\displaystyle`, spacing, `\dfrac`, bold, a final full stop | not there |
| Unicode signs: − × ÷ π √ ∞ ≤ ≥ ∪ ², full-width digits | their LaTeX or ASCII |
| `1,000`, `1{,}000`, `1,\!000`, `1\,000`, `1 000` | 1000 |
| `\$5`, `€5`, `5\%`, `5 percent` | 5; a percent sign is a unit, never a division by 100 |
| `30^\circ` | 30; inside sin, cos, tan and the like, radians |
| `12\text{ cm}`, `12 inches`, `12^{\mathrm{th}}` | 12 with a unit |
| `17_8` | 17 with the unit base 8 |
| `\text{ and }`, `\text{ or }`, `;` between numbers | a comma |
| `\frac12`, `\frac1{72}` | `\frac{1}{2}`, `\frac{1}{72}` |
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/",
    "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ",
    "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "±": r"\pm ", "°": r"^\circ ", "√": r"\sqrt ",
    "⁄": "/", "\u200b": "", "’": "'", "…": r"\ldots ",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NOTHING = re.compile(
    r"(?<!\\)\\(?:left|right|bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big|displaystyle|textstyle|limits|quad"
    r"|qquad|,|;|:|!|\s)(?![a-zA-Z])|\\phantom\{[^{}]*\}|~|\*\*"
)
_CURRENCY = re.compile(r"\\\$|[€£¥₹]|\\(?:pounds|euro)\b")
_PERCENT = re.compile(r"\s*(?:\\?%|\b(?:percent|percentage|pct)\b)", re.IGNORECASE)
_DEGREES = re.compile(r"\^\s*(?:\{\s*\\(?:circ|degree)\s*\}|\\(?:circ|degree)\b)|\\degree\b")
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_TEXT = r"\\(?:text|mbox|mathrm|textbf|textrm|textit|rm|mathbf|mathit|operatorname)\s*"
_UNIT = re.compile(
    r"^(?P<body>.*[\d})\]])\s*" + _TEXT + r"\{(?P<text>[^{}]*)\}"
    r"(?P<power>\s*\^\s*\{?\d\}?)?(?P<more>(?:\s|" + _TEXT + r"\{[^{}]*\}|[\w.,]|/)*)$",
    re.DOTALL,
)
_ORDINAL = re.compile(
    r"(?<=\d)\s*(?:\^\s*\{?\s*(?:" + _TEXT + r"\{)?(?:st|nd|rd|th)\b\}?\}?|(?:st|nd|rd|th)\b)"
)
_PLAIN_UNIT = re.compile(
    r"^(?P<body>[-+]?[\d.,/\s]*\d|[-+]?\d*\s*\\frac\{\d+\}\{\d+\})(?:\s+|(?=square|cm|km|inch))"
    r"(?P<text>(?!pi\b|sqrt|sin|cos|tan|log|ln|and\b|or\b|mod\b|times\b|div\b)[A-Za-z]{2,}"
    r"(?:[\s./]+[A-Za-z]+)*(?:\s*\^\s*\{?\d\}?)?)$"
)
_BASE = re.compile(r"^(?P<body>-?[0-9A-F]+)_\{?(?P<base>\d+)\}?$")
_CONNECTIVE = re.compile(
    r"\s*,?\s*(?:" + _TEXT + r"\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z]))\s*"
)
_GROUP = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")


@dataclass(frozen=True)
class NormalizedAnswer:
    """The normal form of an answer: the answer without its presentation.

    Attributes:
        body: The answer itself, in LaTeX, with single spaces.
        unit: Its unit in lower-case letters and digits; empty if there is none.
    """

    body: str
    unit: str


def normalize_answer(answer: str) -> NormalizedAnswer:
    r"""The normal form of an answer: its presentation is removed.

    Example:
        >>> normalize_answer(r"$\dfrac{1}{2}\text{ cm}$.")
        NormalizedAnswer(body='\\frac{1}{2}', unit='cm')
        >>> normalize_answer("−1,000").body
        '-1000'
    """
    text = _plain(answer)
    # An upright e or i inside a formula is the number; alone, it may be a choice.
    text = re.sub(r"(?<=[^\s$])\\(?:mathrm|rm|text)\s*\{([ei])\}", r" \1", text)
    text = _CURRENCY.sub("", text).strip()
    if text.startswith("$"):
        text = text[1:]
    text = _unframe(text)
    text = _CONNECTIVE.sub(",", text) if re.search(r"\d", text) else text
    text = _ORDINAL.sub("", text)
    text = _fractions(text)
    text = _PERCENT.sub("", text) if re.search(r"\d", text) else text
    text = _angles(text)
    text = _thousands(text)
    body, unit = _split_unit(_squeezed(text))
    return NormalizedAnswer(_squeezed(body), unit)


def units_agree(gold: NormalizedAnswer, answer: NormalizedAnswer) -> bool:
    """Whether two normalized answers agree in unit: one may be left out, not replaced."""
    return not gold.unit or not answer.unit or _stem(gold.unit) == _stem(answer.unit)


def as_words(body: str) -> str | None:
    r"""The letters of a normalized answer that is a word or a choice, `\text{(C)}`; else None."""
    bare = re.sub(_TEXT + r"\{([^{}]*)\}", r"\1", body).replace("$", "").strip(" .")
    bare = re.sub(r"^\(\s*([A-Za-z])\s*\)$", r"\1", bare)
    if not re.fullmatch(r"[A-Za-z][A-Za-z'\- ]*", bare):
        return None
    return " ".join(bare.split())


def _plain(text: str) -> str:
    """ASCII and LaTeX instead of Unicode, without spacing, frames and size commands."""
    text = re.sub(
        "[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", text
    )
    text = "".join(_SIGNS.get(character, character) for character in text)
    text = unicodedata.normalize("NFKC", text).replace("⁄", "/")
    if r"\begin" not in text:  # there, a double backslash starts a row
        text = re.sub(r"\\\\(?=[a-zA-Z{}%$!,()\[\]])", r"\\", text)
    text = re.sub(r"\\!\s*", "", text).replace("{,}", ",")
    text = re.sub(r"(?<=\d)\\[,; ](?=\d{3}(?!\d))", ",", text)
    return _NOTHING.sub(" ", text)


def _unframe(text: str) -> str:
    text = text.strip()
    while True:
        before = text
        text = re.sub(r"^\\(?:boxed|fbox)\s*\{(.*)\}$", r"\1", text, flags=re.DOTALL).strip()
        for left, right in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
            if text.startswith(left) and text.endswith(right) and len(text) > len(left + right):
                text = text[len(left) : -len(right)].strip()
        text = text.rstrip(" .,;\\").strip()
        if text == before:
            return re.sub(r"(?<!\\)\$|\\\(|\\\)", " ", text).strip()


def _fractions(text: str) -> str:
    text = re.sub(r"\\[dtc]frac", r"\\frac", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{", text)
    text = re.sub(r"\\frac\s*(\{[^{}]*\})\s*(\d)", r"\\frac\1{\2}", text)
    return re.sub(r"\\sqrt\s*(\d+)", r"\\sqrt{\1}", text)


def _angles(text: str) -> str:
    if not _TRIGONOMETRY.search(text):
        return _DEGREES.sub("", text)
    # sin(60°) is not sin(60).
    text = re.sub(r"(\d+(?:\.\d+)?)\s*(?:" + _DEGREES.pattern + ")", r"\\frac{\1\\pi}{180}", text)
    return _DEGREES.sub("", text)


def _thousands(text: str) -> str:
    """Join digit groups, but not in brackets, where 1,000 can be two coordinates."""
    if re.search(r"[(\[]|\\\{|\\begin", text):
        return text
    if re.fullmatch(r"\s*[-+]?\d{1,3}(?: \d{3})+\s*", text):
        return text.replace(" ", "")
    return _GROUP.sub(lambda match: match[0].replace(",", ""), text)


def _split_unit(text: str) -> tuple[str, str]:
    if match := _BASE.match(text):
        return match["body"], f"base {match['base']}"
    if "," in text or text.startswith(("(", "[", r"\{")):
        return text, ""
    if match := _UNIT.match(text):
        unit = match["text"] + (match["power"] or "") + (match["more"] or "")
        return match["body"].rstrip("^ "), _unit_name(unit)
    if match := _PLAIN_UNIT.match(text):
        return match["body"], _unit_name(match["text"])
    return text, ""


def _unit_name(text: str) -> str:
    bare = re.sub(_TEXT, "", text)
    return " ".join(re.sub(r"[^a-z0-9/ ]", "", bare.lower()).split())


def _stem(unit: str) -> str:
    """`inches` and `inch` are the same unit."""
    return re.sub(r"(?:es|s)\b", "", unit)


def _squeezed(text: str) -> str:
    return " ".join(text.split()).strip()
