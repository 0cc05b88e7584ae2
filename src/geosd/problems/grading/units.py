"""The units and harmless words that may stand behind a number without changing it.

Words behind a number change it more often than not: `12 million`, `12 below zero`, `12 or so`. So
only the words of this file are set apart from a number. Names of one to three letters count in
exactly this case, because `12 M` and `12 MM` are millions; longer names count in any case. Left out
on purpose: words that multiply (dozen, pair, half, thousand, k, M), compare (more, less), date
(ago, later, p.m.) or point somewhere (north, below).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {
    # length, area, volume
    "mm": "millimeter millimetre", "cm": "centimeter centimetre", "dm": "decimeter decimetre",
    "m": "meter metre", "km": "kilometer kilometre", "inch": "in inches", "foot": "ft feet",
    "yard": "yd yds", "mile": "mi", "acre": "", "hectare": "ha", "liter": "l L litre",
    "ml": "mL milliliter millilitre", "cc": "", "gallon": "gal gals", "quart": "qt qts",
    "pint": "pt pts", "cup": "", "tablespoon": "tbsp", "teaspoon": "tsp",
    # mass
    "mg": "milligram", "g": "gm gram", "kg": "kgs kilogram", "ton": "tonne", "pound": "lb lbs",
    "ounce": "oz",
    # time, speed, frequency
    "ms": "millisecond", "second": "s sec secs", "minute": "min mins", "hour": "h hr hrs",
    "day": "", "week": "", "month": "", "year": "yr yrs", "mph": "", "kph": "kmh kmph", "rpm": "",
    "hertz": "Hz", "kHz": "", "MHz": "", "knot": "",
    # physics
    "newton": "N", "joule": "J", "watt": "W", "kW": "kilowatt", "volt": "V", "ampere": "A amp",
    "ohm": "", "pascal": "Pa", "kPa": "", "calorie": "cal", "kcal": "", "mole": "mol",
    # angles, temperatures, shares
    "degree": "deg degs", "radian": "rad rads", "celsius": "C", "fahrenheit": "F",
    "percent": "percentage pct",
    # money
    "dollar": "USD buck", "cent": "", "euro": "EUR", "yuan": "RMB CNY", "yen": "JPY",
    "rupee": "Rs", "penny": "pennies pence", "peso": "", "ruble": "rouble", "dime": "",
    "nickel": "",
    # information
    "bit": "", "byte": "", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte",
    # what is counted
    "unit": "", "point": "", "piece": "", "item": "", "object": "", "element": "", "number": "",
    "integer": "", "digit": "", "solution": "", "value": "", "term": "", "factor": "",
    "divisor": "", "way": "", "time": "", "possibility": "possibilities", "outcome": "",
    "arrangement": "", "permutation": "", "combination": "", "choice": "", "sequence": "",
    "subset": "", "function": "", "triangle": "", "circle": "", "rectangle": "",
    "vertex": "vertices", "edge": "", "side": "", "line": "", "region": "", "tile": "", "step": "",
    "move": "", "person": "people", "man": "men", "woman": "women", "child": "children", "kid": "",
    "boy": "", "girl": "", "student": "", "teacher": "", "worker": "", "friend": "", "player": "",
    "team": "", "game": "", "match": "matches", "vote": "", "ticket": "", "apple": "", "egg": "",
    "orange": "", "banana": "", "cookie": "", "candy": "candies", "pizza": "", "slice": "",
    "cake": "", "bottle": "", "box": "boxes", "bag": "", "ball": "", "marble": "", "coin": "",
    "card": "", "book": "", "page": "", "word": "", "letter": "", "pencil": "", "pen": "",
    "toy": "", "flower": "", "tree": "", "animal": "", "cow": "", "horse": "", "dog": "",
    "cat": "", "bird": "", "fish": "", "chicken": "", "car": "", "house": "", "room": "",
    "table": "", "chair": "", "lap": "", "trip": "", "stamp": "", "sticker": "", "grade": "",
}  # fmt: skip
_MODIFIERS = {"square": "square", "sq": "square", "cubic": "cubic", "cu": "cubic", "per": "per"}
_SIGNS = {"/": "per", "%": "percent", "°": "degree"}
_HARMLESS = {"total", "altogether", "exactly", "only"}
# Of a gold answer alone: `12 million` is not 12, whatever words a gold answer may have.
_MULTIPLY = set("dozen gross hundred thousand million billion trillion half third pair".split())
_CASE_COUNTS_UP_TO = 3
_PART = re.compile(r"[A-Za-z]++|\^\s*+\{?[23]\}?|[^\s.,]")


@dataclass(frozen=True)
class Unit:
    """What stands behind a number.

    Attributes:
        name: The unit in one spelling, `square cm` for `cm^2`; empty without a unit.
        known: Whether this file has every word, so that the words do not change the number.
    """

    name: str = ""
    known: bool = True

    @property
    def multiplies(self) -> bool:
        """Whether a word of a gold answer's unit is part of its number, as in `12 million`."""
        return not _MULTIPLY.isdisjoint(self.name.split())


NO_UNIT = Unit()


def read_unit(text: str) -> Unit:
    """Read the words behind a number, such as `miles per hour`, `km/h` or `inches^2`.

    Example:
        >>> read_unit("sq inches"), read_unit("million")
        (Unit(name='square inch', known=True), Unit(name='million', known=False))
    """
    words: list[str] = []
    known, named = True, False
    for part in _PART.findall(text):
        if part[0] == "^":  # `cm^2` is `square cm`
            known = known and bool(words)
            words[-1:-1] = ["square" if "2" in part else "cubic"]
        elif part in _SIGNS or part in _MODIFIERS:
            words.append(_SIGNS.get(part) or _MODIFIERS[part])
            named = named or part in ("%", "°")
        elif part.lower() not in _HARMLESS:
            unit = unit_named(part)
            words.append(unit or part.lower())
            known, named = known and unit is not None, True
        else:
            named = True
    # `12\text{ }^2`, `12 per`, `12 %%` say something else.
    known = known and len(set(words)) == len(words) and (named or not words)
    if words and (words[0] == "per" or words[-1] in _MODIFIERS.values()):
        known = False
    return Unit(" ".join(words), known)


def is_unit_word(word: str) -> bool:
    """Whether a word may stand behind a number without changing it."""
    return word in _MODIFIERS or word.lower() in _HARMLESS or unit_named(word) is not None


def unit_named(word: str) -> str | None:
    """The unit that a word names, in one spelling; None if it names none."""
    if unit := _NAMES.get(word):
        return unit
    return _NAMES.get(word.lower()) if len(word) > _CASE_COUNTS_UP_TO else None


def _spellings() -> dict[str, str]:
    spellings = {}
    for unit, others in _UNITS.items():
        for name in (unit, *others.split()):
            spellings[name] = unit
            if name.islower() and len(name) > 2:
                spellings[name + "s"] = unit
    return spellings


_NAMES = _spellings()
