"""Places in a sweep, on a ladder of models and among benchmarks: from words to what a study ran.

A claim says "at the largest learning rate", and each study has its own. A place is a value that the
study ran, or a word:

first, last        the smallest, the largest
last_but_one       the second largest
middle             the one in the middle of an odd number, else the lower of the two
own                the variant's own learning rate, at which other runs were stopped early
each               every one of them
but_last           every one but the largest
below_middle       every one below the middle
first_half         every one up to half of the largest value
next               of the other side's: the one that follows it
others             of the other side's: every other one
same               of the other side's: the same one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from geosd.claims.evidence import Axis, Evidence, Lacking, axis, same
from geosd.claims.schema import EACH_OOD, KNOBS, MODEL, Comparison, Side
from geosd.scores.score_table import ood_benchmarks

RELATIVE = ("next", "others", "same")


def expanded(comparison: Comparison, model: str, evidence: Evidence) -> list[Comparison]:
    """A comparison's words replaced by what the study ran: one comparison for each combination.

    Args:
        comparison: As the ledger has it.
        model: The study's model; for a comparison along the ladder any of its models.
        evidence: What the study has.

    Raises:
        Lacking: The study did not run the place.
    """
    found = [comparison]
    for key in (MODEL, *KNOBS):
        if any(side.said(key) is not None for side in comparison.sides):
            found = [new for one in found for new in _along(one, key, model, evidence)]
    if any(side.benchmark == EACH_OOD for side in comparison.sides):
        names = ood_benchmarks(evidence.scores, model)
        if not names:
            raise Lacking("OOD benchmarks")
        found = [_on(one, name) for one in found for name in names]
    return found


def _on(comparison: Comparison, benchmark: str) -> Comparison:
    def put(side: Side) -> Side:
        return replace(side, benchmark=benchmark) if side.benchmark == EACH_OOD else side

    b = None if comparison.b is None else put(comparison.b)
    return replace(comparison, a=put(comparison.a), b=b)


def _along(comparison: Comparison, key: str, model: str, evidence: Evidence) -> list[Comparison]:
    a, b = comparison.a, comparison.b
    words = [None if side is None else side.said(key) for side in (a, b)]
    if words[0] in RELATIVE:
        # Written as the reader thinks, "the next is greater than each"; solved from the other side.
        turned = replace(comparison, a=b, b=a)
        return [replace(c, a=c.b, b=c.a) for c in _along(turned, key, model, evidence)]
    found = []
    for value in _values(a, key, model, evidence) if words[0] is not None else [None]:
        mine = a if value is None else _at(a, key, value)
        if b is None or words[1] is None:
            found.append(replace(comparison, a=mine))
            continue
        for other in _values(b, key, model, evidence, value):
            found.append(replace(comparison, a=mine, b=_at(b, key, other)))
    return found


def _at(side: Side, key: str, value: Any) -> Side:
    return replace(side, where=tuple(sorted({**dict(side.where), key: value}.items())))


def _values(
    side: Side, key: str, model: str, evidence: Evidence, reference: Any = None
) -> list[Any]:
    """The values that a side's word stands for; `reference` is the other side's value."""
    line, word = axis(evidence, model, side.variant, key), side.said(key)
    values = list(line.runs)
    if len(values) < 2:
        needed = "models of several sizes" if key == MODEL else f"a sweep of {key}"
        raise Lacking(f"{needed} for {side.variant}")
    found = _meant(word, values, line, reference)
    # The last of "each" has no next: nothing is claimed of it.
    if not found and word != "next":
        raise Lacking(f"{side.variant} at {key} {word}")
    return found


def _meant(word: Any, values: Sequence[Any], line: Axis, reference: Any) -> list[Any]:
    middle = (len(values) - 1) // 2
    if word == "own":
        return [value for value in values if line.own is not None and same(value, line.own)]
    if word == "first_half":
        return [value for value in values if value <= values[-1] / 2]
    if word in RELATIVE:
        at = next((i for i, value in enumerate(values) if same(value, reference)), None)
        if word == "others":
            return [value for i, value in enumerate(values) if i != at]
        if at is None:
            return []
        return list(values[at : at + 1] if word == "same" else values[at + 1 : at + 2])
    if not isinstance(word, str) or word in values:
        return [value for value in values if same(value, word)]
    slices = {
        "first": values[:1],
        "last": values[-1:],
        "last_but_one": values[-2:-1],
        "middle": values[middle : middle + 1],
        "each": values,
        "but_last": values[:-1],
        "below_middle": values[:middle],
    }
    if word not in slices:
        raise ValueError(
            f"{word!r} is no place; allowed are {', '.join(('own', 'first_half', *RELATIVE))},"
            f" {', '.join(slices)} and the values themselves.\nHint: see docs/claims.md."
        )
    return list(slices[word])
