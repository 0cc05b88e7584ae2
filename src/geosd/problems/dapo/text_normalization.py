"""When two problems are the same text, and whether a text is English."""

from __future__ import annotations

import re
import unicodedata

# Letters of scripts that no English problem is written in. Full-width signs, ligatures, curly
# quotes, accented and Greek letters, and even an ideographic full stop lie outside.
_FOREIGN = re.compile(
    "["
    "\u0400-\u1cff"  # Cyrillic to Vedic: every alphabet between Greek and the phonetic extensions
    "\u2e80-\u2fdf"  # radicals
    "\u3040-\u31ff"  # kana, bopomofo, Hangul compatibility letters
    "\u3400-\u4dbf\u4e00-\ua4cf"  # Chinese characters, Yi
    "\uac00-\ud7ff"  # Hangul
    "\uf900-\ufaff"  # compatibility ideographs
    "\uff66-\uffdc"  # half-width kana and Hangul
    "\U00020000-\U0003ffff"  # rarer Chinese characters
    "]"
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2217": "*",
        "\u3002": ".",
    }
)
_WHITE_SPACE = dict.fromkeys([*range(33), 127])  # ASCII's white space and control characters
_TOKEN = re.compile(r"[^\W\d_]+|\d+")


def is_english(text: str) -> bool:
    """Whether a DAPO problem's text holds no letter of a script that English does not use.

    One Chinese character is enough to fail: problems that are all formula but for one connective
    have no more, so a filter by their share misses them. A filter by ASCII would lose problems
    for a curly quote. All languages in Latin script count as English.

    Example:
        >>> is_english("\u8bbe $f(x) = x$, find $f(1)$.")
        False
        >>> is_english("Find Ana\u2019s \ufb01rst sum\uff0c $x$.")
        True
    """
    return _FOREIGN.search(text) is None


def normalize_text(text: str) -> str:
    """The normalized text of a problem: no white space, no case, no variants of signs.

    Compatibility forms (ligatures, full-width signs) become plain ones, curly quotes straight,
    dashes and minus signs hyphens; invisible characters go. White space goes altogether, because
    copies of a problem differ in it inside formulas, where it means nothing. Normalising twice
    changes nothing more. Two problems with the same normalized text are the same problem.

    Example:
        >>> normalize_text("Find $ F( 1 ) $\u200b.") == normalize_text("find $f(1)$.")
        True
    """
    if text.isascii():
        return text.casefold().translate(_WHITE_SPACE)
    # Each of these can bring about what another removes, so they are repeated to the fixed point.
    while (once := _normalize_once(text)) != text:
        text = once
    return text


def _normalize_once(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Again: to fold a letter can take its accent from it.
    folded = unicodedata.normalize("NFKC", folded).translate(_SIGNS)
    kept = (c for c in folded if unicodedata.category(c) not in ("Cc", "Cf"))
    return "".join("".join(kept).split())


def word_tokens(text: str) -> list[str]:
    r"""The words and numbers of a problem's normalized text; signs are left out.

    LaTeX commands are words.

    Example:
        >>> word_tokens("Find $\\frac{x_1}{12}$.")
        ['find', 'frac', 'x', '1', '12']
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())
