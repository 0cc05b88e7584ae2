"""What of a study is no evidence for or against a claim: bounds of the scale, idle methods, reach.

docs/claims.md says why, and gives the numbers below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from geosd.claims.claim import Comparison, Quantity
from geosd.claims.comparing import ComparisonTest
from geosd.claims.evidence import Evidence, MissingDataError, VariantRuns
from geosd.claims.metrics import scale_of_metric
from geosd.scores.drift_tables import DRIFT, final_drift
from geosd.scores.score_table import ID, OOD_AVERAGE

BASE = "pi_0"
MOVED_POINTS = 1.0
"""Change of mean ID or OOD accuracy, in points, from which on a method has moved."""
MOVED_DRIFT = 0.02
"""Mean d_FR from pi_0, in radians, from which on it has: a next-token distribution then differs
from pi_0's by about sin(d_FR / 2) = .01 in total variation."""
PERCENT = (0.0, 100.0)
Stillness = Callable[[VariantRuns, str], str]
"""How it shows that runs on a model did not move; empty if they did."""


def no_evidence(
    comparisons: Sequence[Comparison],
    evidence: Evidence,
    models: Sequence[str],
    stillness_of: Stillness,
) -> list[str]:
    """Why each comparison of a claim is no evidence on any of the models; empty where it is.

    Args:
        comparisons: All comparisons of the claim.
        evidence: The study's data.
        models: The models of the row.
        stillness_of: `stillness` of runs on a model, in this evidence.
    """
    reasons = []
    idle = {model: _idle_variants(comparisons, model, stillness_of) for model in models}
    for comparison in comparisons:
        found = [
            reason
            for model in models
            for reason in (
                *(f"{why} on {model}" for v, why in idle[model].items() if v in movers(comparison)),
                *_bounds(comparison, evidence, model),
            )
        ]
        reasons.append(found[0] if found else "")
    return reasons


def out_of_reach(tests: Sequence[ComparisonTest], level: float) -> str:
    """Why no effect that the scale allows would bring a verdict at a level; empty where one would.

    Confirming needs all comparisons of a claim, refuting needs one.
    """
    parts = len(tests)
    if any(t.detectable_against(level, parts) <= t.room_against for t in tests):
        return ""
    for test in tests:
        if test.units < 2:
            return "a single run has no spread"
        if math.isnan(test.se):
            return "no variance between runs"
        needed = test.detectable_for(level, parts)
        if needed > test.room_for:
            there = f"{needed:.3g} is detectable, the scale allows {test.room_for:.3g}"
            return f"the data do not reach: {there}"
    return ""


# ---- Methods that did not move -------------------------------------------------------------------
def _idle_variants(
    comparisons: Sequence[Comparison], model: str, stillness_of: Stillness
) -> dict[str, str]:
    """The variants none of whose runs in the claim moved away from pi_0, and how that shows."""
    sides = [side for comparison in comparisons for side in comparison.sides]
    shown: dict[str, list[str]] = {}
    for run in dict.fromkeys(side.run for side in sides):
        if run.variant != BASE:
            shown.setdefault(run.variant, []).append(stillness_of(run, model))
    return {variant: whys[0] for variant, whys in shown.items() if all(whys)}


def stillness(evidence: Evidence, run: VariantRuns, model: str) -> str:
    """How it shows that runs did not move away from pi_0; empty if they did or nothing shows it."""
    name, of = run.name, run.model or model
    known = []
    far = final_drift(evidence.drift, of, name)
    if len(far):
        known.append((float(far.mean()), MOVED_DRIFT, f"{DRIFT} {far.mean():.3f}"))
    for benchmark in (ID, OOD_AVERAGE):
        scores = (evidence.scores_of(of, v, benchmark, "avg@k") for v in (name, BASE))
        change = float((next(scores) - next(scores)).mean())
        if not math.isnan(change):
            known.append((abs(change), MOVED_POINTS, f"{benchmark} {change:+.1f}"))
    if not known or any(value >= bound for value, bound, _ in known):
        return ""
    return f"{run.variant} did not move ({', '.join(words for *_, words in known)})"


def movers(comparison: Comparison) -> set[str]:
    """The variants that must have moved for a comparison to say something about them.

    Not so where the comparison is about not moving: `near` pi_0, and the side of a comparison of
    drifts that is said to drift less.
    """
    a, b = comparison.a, comparison.b
    from_base = comparison.a.baseline == BASE if b is None else b.run.variant == BASE
    if comparison.direction == "within" and from_base:
        return set()
    sides = list(comparison.sides)
    if a.metric.startswith("drift") and comparison.direction != "within" and b is not None:
        sides = [a if comparison.direction == "greater" else b]
    return {side.run.variant for side in sides} - {BASE}


# ---- Bounds of the scale -------------------------------------------------------------------------
def _bounds(comparison: Comparison, evidence: Evidence, model: str) -> Iterator[str]:
    """How a comparison's percentages lie at 0 or 100: both of its sides, or pi_0 on the way."""
    a, b = comparison.a, comparison.b
    if scale_of_metric(a.metric) != PERCENT:
        return
    places = [_bound(side, evidence, model) for side in comparison.sides]
    if b is not None and places[0] is not None and places[0] == places[1]:
        yield f"both sides lie at {places[0]:g} %, within the spread of pi_0's runs, on {model}"
    if comparison.direction == "within":
        return
    sign = 1 if comparison.direction == "greater" else -1
    if sign * comparison.margin < 0:  # then pi_0 itself is where the comparison is true
        return
    for direction, base in _bases(comparison, sign):
        place = _bound(base, evidence, model)
        if place == PERCENT[direction > 0]:
            yield f"pi_0 lies at {place:g} %, within the spread of its runs, on {model}"


def _bases(comparison: Comparison, sign: int) -> Iterator[tuple[int, Quantity]]:
    """The values of pi_0 that a comparison starts from, and where it says that others lie."""
    a, b = comparison.a, comparison.b
    if a.baseline == BASE:
        yield sign, _of_base(a)
        if b is not None:
            yield -sign, _of_base(b)
    elif b is not None and b.run.variant == BASE:
        yield sign, b
    elif b is not None and a.run.variant == BASE:
        yield -sign, a


def _bound(side: Quantity, evidence: Evidence, model: str) -> float | None:
    """0 or 100 if a percentage's mean is no further from it than pi_0's runs differ."""
    values = side.values(evidence, model)
    mean = values.mean()
    try:
        if side.run.variant != BASE:
            values = _of_base(side).values(evidence, model)
        draws = evidence.draws(side.run.model or model).reindex(values.index)
        spread = values.groupby(draws).std(ddof=1).mean()
    except MissingDataError:
        spread = math.nan
    resolution = 0.0 if math.isnan(spread) else spread
    return next((bound for bound in PERCENT if abs(mean - bound) <= resolution), None)


def _of_base(side: Quantity) -> Quantity:
    return replace(side, run=VariantRuns(BASE, BASE, side.run.model), baseline=None)
