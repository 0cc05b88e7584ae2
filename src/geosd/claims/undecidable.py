"""What of a study is no evidence for or against a claim: bounds of the scale, idle methods, reach.

docs/claims.md says why, and gives the numbers below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from geosd.claims.claim import Comparison, Quantity
from geosd.claims.comparing import ComparisonTest
from geosd.claims.evidence import Evidence, MissingDataError, VariantRuns
from geosd.claims.metrics import scale_of_metric
from geosd.scores.drift_tables import DRIFT, final_drift
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import replicate_means, student_interval

BASE = "pi_0"
MOVED_POINTS = 1.0
"""Change of mean ID or OOD accuracy, in points, from which on a method has moved."""
MOVED_DRIFT = 0.02
"""Mean d_FR from pi_0, in radians, from which on it has: a next-token distribution then differs
from pi_0's by about sin(d_FR / 2) = .01 in total variation."""
PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class Doubt:
    """Why a comparison is no evidence for or against its claim; not `certain` where it may be."""

    why: str
    certain: bool = True


def doubts(
    comparisons: Sequence[Comparison], evidence: Evidence, models: Sequence[str]
) -> list[Doubt | None]:
    """Why each comparison of a claim is no evidence on any of the models; None where it is.

    A certain doubt goes before one that the data leave open.
    """
    found = []
    idle = _idle_variants(comparisons, evidence, models)
    for comparison in comparisons:
        must_move = variants_that_must_move(comparison)
        of_comparison = [doubt for variant, doubt in idle.items() if variant in must_move]
        for model in models:
            of_comparison += (Doubt(why) for why in _bounds(comparison, evidence, model))
        found.append(min(of_comparison, key=lambda doubt: not doubt.certain, default=None))
    return found


def out_of_reach(tests: Sequence[ComparisonTest], level: float) -> str:
    """Why no effect that the scale allows would bring a verdict at a level; empty where one would.

    Confirming needs all comparisons of a claim, refuting needs one.
    """
    parts = len(tests)
    if any(t.detectable_against(level, parts) <= t.headroom_against for t in tests):
        return ""
    for test in tests:
        if test.units < 2:
            return "a single run has no spread"
        if math.isnan(test.se):
            return "no variance between runs"
        needed = test.detectable_for(level, parts)
        if needed > test.headroom_for:
            there = f"{needed:.3g} is detectable, the scale allows {test.headroom_for:.3g}"
            return f"the data do not reach: {there}"
    return ""


# ---- Methods that did not move -------------------------------------------------------------------
def _idle_variants(
    comparisons: Sequence[Comparison], evidence: Evidence, models: Sequence[str]
) -> dict[str, Doubt]:
    """The variants none of whose runs surely moved away from pi_0 on any model, and why."""
    sides = [side for comparison in comparisons for side in comparison.sides]
    shown: dict[str, list[Doubt | None]] = {}
    for run, model in product(dict.fromkeys(side.run for side in sides), models):
        if run.variant != BASE:
            shown.setdefault(run.variant, []).append(inactivity(evidence, run, model))
    # One run that may have moved leaves it open whether the variant did.
    return {
        variant: max(found, key=lambda doubt: not doubt.certain)
        for variant, found in shown.items()
        if all(found)
    }


@lru_cache(maxsize=1024)  # many claims ask it of the same runs
def inactivity(evidence: Evidence, run: VariantRuns, model: str) -> Doubt | None:
    """How it shows that runs did not move away from pi_0, or may not have.

    None if they moved, or where nothing shows it.
    """
    name, of = run.name, run.model or model
    far = final_drift(evidence.drift, of, name)
    if len(far) and far.min() >= MOVED_DRIFT:
        return None
    signs = [f"{DRIFT} {far.mean():.3f}"] if len(far) else []
    certain = not (len(far) and far.mean() >= MOVED_DRIFT)
    for benchmark in (ID, OOD_AVERAGE):
        scores = (evidence.scores_of(of, v, benchmark, "avg@k") for v in (name, BASE))
        change = (next(scores) - next(scores)).dropna()
        if change.empty:
            continue
        signs.append(f"{benchmark} {change.mean():+.1f}")
        if abs(change.mean()) >= MOVED_POINTS:
            replicates = evidence.replicates(of).reindex(change.index)
            low, high = student_interval(replicate_means(change, replicates))
            # Without drift only accuracies tell, and a comparison's own test has their noise.
            if far.empty or max(low, -high) >= MOVED_POINTS:
                return None
            signs[-1] += f" [{low:+.1f}, {high:+.1f}]"
            certain = False
    if not signs:
        return None
    did_not = "did not move" if certain else "may not have moved"
    return Doubt(f"{run.variant} {did_not} ({', '.join(signs)}) on {model}", certain)


def variants_that_must_move(comparison: Comparison) -> set[str]:
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
        replicates = evidence.replicates(side.run.model or model).reindex(values.index)
        spread = values.groupby(replicates).std(ddof=1).mean()
    except MissingDataError:
        spread = math.nan
    resolution = 0.0 if math.isnan(spread) else spread
    return next((bound for bound in PERCENT if abs(mean - bound) <= resolution), None)


def _of_base(side: Quantity) -> Quantity:
    return replace(side, run=VariantRuns(BASE, BASE, side.run.model), baseline=None)
