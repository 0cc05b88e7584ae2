"""Verdicts on the paper's claims for one study.

A claim is evaluated for every model of the study, one row a model; a claim along a ladder of models
or on costs has one row. As in the paper (Statistical analysis of OOD gains) the run is the unit and
the tests are one-sided; runs of one model are paired by seed, models are not; and Holm's correction
runs over a family: all rows, of one study's ledger, of the claims that one kind of study is
designed for.

Rules of decision:

reproduced      Holm-adjusted p < .05. The p of a conjunction is the largest p of its comparisons
                (intersection-union test): every one of them must hold. A `within` comparison
                (|difference| < margin) is two one-sided tests, and its p the larger of theirs.
not reproduced  For some comparison the confidence interval lies wholly where the claim is false:
                at or below the margin for `greater`, at or above it for `less`, outside
                (-margin, margin) for `within`. The intervals are simultaneous: 95 % for the claim,
                so 1 - .05/m each for m comparisons.
undetermined    Neither; also where a spread cannot be estimated: a single run, or no variance.
not tested      The study lacks a variant, a sweep or a quantity that the claim needs.

What is paired is said in `geosd.claims.metrics`: differences are taken within a seed.
A computed number has no spread: it agrees with the printed one to its last digit, give or take
one, or it does not. Absence of evidence is never "not reproduced", and no outcome is written
anywhere but computed here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from geosd.claims import published as paper
from geosd.claims.describe import describe, describe_computed
from geosd.claims.evidence import Evidence, Lacking
from geosd.claims.metrics import Measured, measure, over
from geosd.claims.schema import KNOBS, Claim, Comparison, Computed, Side
from geosd.claims.selectors import expanded
from geosd.scores.statistics import ContrastResult, Group, contrast, holm

ALPHA = 0.05
COSTS = "costs"
"""Stands for the model of a claim on costs: they are those of the paper's models."""
Verdict = Literal["reproduced", "not reproduced", "undetermined", "not tested"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "undetermined", "not tested")


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim for one model. The numbers are those of the weakest comparison.

    Attributes:
        claim: The claim.
        model: The study's model; for a ladder its ends, for costs `COSTS`.
        verdict: See the module's rules.
        weakest: The comparison with the largest p (or, if not reproduced, the one that fails most
            clearly), in words.
        metric: Its metric, or the computed quantity.
        effect: Its a - times b (each less the value of `over`); the computed number; NaN where not
            tested.
        low: Lower end of its simultaneous interval.
        high: Upper end.
        p: The claim's p, before Holm.
        p_holm: After Holm over its family.
        n_a: Values of a: runs, or problems for the states of pi_0.
        n_b: Values of b; 0 where there is no b.
        paper_effect: The published value of the same comparison; NaN where none.
        note: Why the claim was not tested or remains undetermined; else empty.
        study: The study that the data are of; empty where it does not matter.
    """

    claim: Claim
    model: str
    verdict: Verdict
    weakest: str = ""
    metric: str = ""
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    n_a: int = 0
    n_b: int = 0
    paper_effect: float = math.nan
    note: str = ""
    study: str = ""


def evaluate(
    claims: Sequence[Claim], evidence: Evidence, models: Sequence[str] | None = None
) -> list[Finding]:
    """Evaluate every claim for every model of a study.

    Args:
        claims: The ledger.
        evidence: What the study has.
        models: Which models; None takes those of the scores, in their order.

    Returns:
        A finding for each claim and model, claims in their order.
    """
    if models is None:
        models = list(evidence.scores["model"].unique())
    return corrected(
        [
            _tested(claim, model, evidence)
            for claim in claims
            for model in _rows(claim, models, evidence)
        ],
        by_family=True,
    )


def corrected(findings: Sequence[Finding], *, by_family: bool) -> list[Finding]:
    """Verdicts with Holm's correction.

    Args:
        findings: With p and intervals; what an interval refutes stays refuted.
        by_family: Correct over the claims of one kind of study, each family apart; else over all.

    Returns:
        The findings in their order.
    """
    families: dict[str, list[int]] = {}
    for at, finding in enumerate(findings):
        families.setdefault(finding.claim.study if by_family else "", []).append(at)
    found = list(findings)
    for members in families.values():
        adjusted = holm([findings[at].p for at in members])
        for at, p in zip(members, adjusted, strict=True):
            found[at] = _decided(findings[at], p)
    return found


def _decided(finding: Finding, p_holm: float) -> Finding:
    if finding.verdict in ("not tested", "not reproduced") or finding.claim.computed:
        return replace(finding, p_holm=p_holm)
    # NaN compares false, so what could not be estimated stays undetermined.
    verdict: Verdict = "reproduced" if p_holm < ALPHA else "undetermined"
    return replace(finding, verdict=verdict, p_holm=p_holm)


def _rows(claim: Claim, models: Sequence[str], evidence: Evidence) -> Sequence[str]:
    if claim.computed or claim.unmeasured:
        return [COSTS]
    if claim.of_a_ladder:
        ladder = evidence.ladder
        return [f"{ladder[0]} to {ladder[-1]}" if ladder else "a ladder of models"]
    return models


def _tested(claim: Claim, model: str, evidence: Evidence) -> Finding:
    """Numbers of a claim on a model; "not reproduced" already if an interval excludes it."""
    try:
        if claim.unmeasured:
            raise Lacking(claim.unmeasured)
        if claim.computed:
            return _computed(claim, evidence)
        at = evidence.ladder[0] if claim.of_a_ladder and evidence.ladder else model
        _need_variants(claim, at, evidence)
        comparisons = [new for c in claim.comparisons for new in expanded(c, at, evidence)]
        measured = [_measure(c, at, evidence, len(comparisons)) for c in comparisons]
    except Lacking as lacking:
        return Finding(claim, model, "not tested", note=f"needs {lacking}")
    # The weakest comparison is the one the verdict hangs on: NaN (nothing known) before any p.
    weakest = max(measured, key=lambda m: (m.refuted, math.isnan(m.p), m.p))
    unknown = any(math.isnan(m.p) for m in measured)
    comparison = weakest.comparison
    return Finding(
        claim,
        model,
        "not reproduced" if any(m.refuted for m in measured) else "undetermined",
        weakest=describe(comparison),
        metric=comparison.a.metric,
        effect=weakest.test.difference,
        low=weakest.test.low,
        high=weakest.test.high,
        p=math.nan if unknown else max(m.p for m in measured),
        n_a=weakest.n_a,
        n_b=weakest.n_b,
        paper_effect=_published(comparison, model),
        note=weakest.note,
    )


def _need_variants(claim: Claim, model: str, evidence: Evidence) -> None:
    """Name the methods that are missing, all at once; those of sweeps have names of their own."""
    scored = set(evidence.scores.loc[evidence.scores["model"] == model, "variant"])
    needed = [
        side.variant
        for c in claim.comparisons
        for side in c.sides
        if not any(side.said(knob) is not None for knob in KNOBS)
    ] + [c.over for c in claim.comparisons if c.over is not None]
    if missing := [name for name in dict.fromkeys(needed) if name not in scored]:
        raise Lacking(", ".join(missing))


def _computed(claim: Claim, evidence: Evidence) -> Finding:
    if not evidence.costs:
        raise Lacking("a table of costs among what the study shows")

    def excess(one: Computed) -> float:
        """How far it is off, in units of the last printed digit; at most 1 agrees."""
        ours = evidence.costs[one.quantity]
        if one.relation == "less":
            return 1.0 if ours < one.printed else math.inf
        return abs(ours - one.printed) * 10**one.digits

    worst = max(claim.computed, key=excess)
    return Finding(
        claim,
        COSTS,
        "reproduced" if excess(worst) <= 1 + 1e-9 else "not reproduced",
        weakest=describe_computed(worst, evidence.costs[worst.quantity]),
        metric=worst.quantity,
        effect=evidence.costs[worst.quantity],
        paper_effect=worst.printed,
    )


@dataclass(frozen=True)
class _Measured:
    comparison: Comparison
    test: ContrastResult
    n_a: int
    n_b: int
    p: float
    refuted: bool
    note: str


def _measure(comparison: Comparison, model: str, evidence: Evidence, count: int) -> _Measured:
    """Test one of `count` comparisons of a claim; its interval is at 1 - .05/count."""
    terms = [(sign, measure(side, model, evidence)) for sign, side in _terms(comparison)]
    groups = _groups(terms)
    margin, confidence = comparison.margin, 1 - ALPHA / count
    if comparison.direction == "within":
        test = contrast(groups, "less", margin, confidence)
        above = contrast(groups, "greater", -margin, confidence)
        p = max(test.p, above.p)
        refuted = test.low >= margin or test.high <= -margin
    else:
        test = contrast(groups, comparison.direction, margin, confidence)
        p = test.p
        refuted = test.high <= margin if comparison.direction == "greater" else test.low >= margin
    note = ""
    if min(group.n for group in groups) < 2:
        note = "a single run has no spread"
    elif math.isnan(p):
        note = "no variance between runs"
    numbers = [len(term.values) for _, term in terms]
    b = numbers[1] if comparison.b is not None else 0
    return _Measured(comparison, test, numbers[0], b, p, refuted, note)


def _terms(comparison: Comparison) -> list[tuple[float, Side]]:
    """Coefficients and sides: a, b, and what is subtracted from each."""
    signed: list[tuple[float, Side]] = [(1.0, comparison.a)]
    if comparison.b is not None:
        signed.append((-comparison.times, comparison.b))
    if comparison.over is not None:
        signed += [(-sign, over(side, comparison.over)) for sign, side in signed]
    return signed


def _groups(terms: Sequence[tuple[float, Measured]]) -> list[Group]:
    """One group for each source, of the values that the source's terms add up to."""
    sums: dict[Hashable, list[pd.Series]] = {}
    for sign, term in terms:
        sums.setdefault(term.source, []).append(sign * term.values)
    found = []
    for parts in sums.values():
        total = pd.concat(parts, axis=1, join="inner").sum(axis=1)
        if total.empty:
            raise Lacking("seeds that both quantities have")
        # What is left of equal numbers, once one is taken from the other, is no spread.
        found.append(Group.of(total.where(total.abs() >= 1e-12, 0.0)))
    return found


def _published(comparison: Comparison, model: str) -> float:
    """The paper's value of a comparison outside of sweeps; NaN where it prints none."""
    total = 0.0
    for sign, side in _terms(comparison):
        cell = paper.lookup(paper.family(model), side.variant, side.benchmark, side.metric)
        if cell is None or side.where:
            return math.nan
        total += sign * cell.mean
    return total
