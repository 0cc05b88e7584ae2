"""Verdicts on the paper's claims for one study; docs/claims.md gives the rules of decision.

A claim is judged for every model of the study, one row a model; a claim on models of several sizes
or on costs has one row. A claim's p is the largest of its comparisons (intersection-union test).
Holm's correction runs over all rows of the claims that one kind of study is designed for.
No outcome is written anywhere but computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from geosd.claims import published
from geosd.claims.claim import Claim, Comparison, ComputedNumber, Quantity
from geosd.claims.evidence import Evidence, MissingDataError, StudyRuns
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
        effect: Its a - b (each less its baseline's value), or the computed number; NaN where not
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
            _judge(claim, model, evidence)
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
    for i, finding in enumerate(findings):
        families.setdefault(finding.claim.study_kind if by_family else "", []).append(i)
    decided = list(findings)
    for members in families.values():
        adjusted = holm([findings[i].p for i in members])
        for i, p in zip(members, adjusted, strict=True):
            decided[i] = _decide(findings[i], p)
    return decided


def _decide(finding: Finding, p_holm: float) -> Finding:
    if finding.verdict in ("not tested", "not reproduced") or finding.claim.computed:
        return replace(finding, p_holm=p_holm)
    # NaN compares false, so what could not be estimated stays undetermined.
    verdict: Verdict = "reproduced" if p_holm < ALPHA else "undetermined"
    return replace(finding, verdict=verdict, p_holm=p_holm)


def _rows(claim: Claim, models: Sequence[str], evidence: Evidence) -> Sequence[str]:
    if claim.computed or claim.unmeasured:
        return [COSTS]
    if claim.is_about_sizes:
        sizes = evidence.sizes
        return [f"{sizes[0]} to {sizes[-1]}" if sizes else "a ladder of models"]
    return models


def _judge(claim: Claim, model: str, evidence: Evidence) -> Finding:
    """Numbers of a claim on a model; "not reproduced" already if an interval excludes it."""
    try:
        if claim.unmeasured:
            raise MissingDataError(claim.unmeasured)
        if claim.computed:
            return _judge_costs(claim, evidence)
        anchor = evidence.sizes[0] if claim.is_about_sizes and evidence.sizes else model
        _require_variants(claim, anchor, evidence)
        comparisons = claim.comparisons(StudyRuns(evidence, anchor))
        tests = [_test(c, anchor, evidence, len(comparisons)) for c in comparisons]
    except MissingDataError as error:
        return Finding(claim, model, "not tested", note=f"needs {error}")
    # The weakest comparison is the one the verdict hangs on: NaN (nothing known) before any p.
    weakest = max(tests, key=lambda t: (t.refuted, math.isnan(t.p), t.p))
    unknown = any(math.isnan(t.p) for t in tests)
    return Finding(
        claim,
        model,
        "not reproduced" if any(t.refuted for t in tests) else "undetermined",
        weakest=str(weakest.comparison),
        metric=weakest.comparison.a.metric,
        effect=weakest.result.difference,
        low=weakest.result.low,
        high=weakest.result.high,
        p=math.nan if unknown else max(t.p for t in tests),
        n_a=weakest.n_a,
        n_b=weakest.n_b,
        paper_effect=_published_effect(weakest.comparison, model),
        note=weakest.note,
    )


def _require_variants(claim: Claim, model: str, evidence: Evidence) -> None:
    """Name the methods that are missing, all at once; those of sweeps have names of their own."""
    scored = set(evidence.scores.loc[evidence.scores["model"] == model, "variant"])
    if missing := [name for name in claim.variants(in_sweeps=False) if name not in scored]:
        raise MissingDataError(", ".join(missing))


def _judge_costs(claim: Claim, evidence: Evidence) -> Finding:
    if not evidence.costs:
        raise MissingDataError("a table of costs among what the study shows")

    def excess(number: ComputedNumber) -> float:
        """How far it is off, in units of the last printed digit; at most 1 agrees."""
        ours = evidence.costs[number.quantity]
        if number.is_bound:
            return 1.0 if ours < number.value else math.inf
        return abs(ours - number.value) * 10**number.decimals

    worst = max(claim.computed, key=excess)
    ours = evidence.costs[worst.quantity]
    return Finding(
        claim,
        COSTS,
        "reproduced" if excess(worst) <= 1 + 1e-9 else "not reproduced",
        weakest=worst.describe(ours),
        metric=worst.quantity,
        effect=ours,
        paper_effect=worst.value,
    )


@dataclass(frozen=True)
class _ComparisonTest:
    comparison: Comparison
    result: ContrastResult
    n_a: int
    n_b: int
    p: float
    refuted: bool
    note: str


def _test(comparison: Comparison, model: str, evidence: Evidence, count: int) -> _ComparisonTest:
    """Test one of `count` comparisons of a claim; its interval is at 1 - .05/count."""
    terms = [(sign, term, term.values(evidence, model)) for sign, term in comparison.terms()]
    groups = _groups(terms, model)
    margin, confidence = comparison.margin, 1 - ALPHA / count
    if comparison.direction == "within":
        result = contrast(groups, "less", margin, confidence)
        above = contrast(groups, "greater", -margin, confidence)
        p = max(result.p, above.p)
        refuted = result.low >= margin or result.high <= -margin
    else:
        result = contrast(groups, comparison.direction, margin, confidence)
        p = result.p
        greater = comparison.direction == "greater"
        refuted = result.high <= margin if greater else result.low >= margin
    note = ""
    if min(group.n for group in groups) < 2:
        note = "a single run has no spread"
    elif math.isnan(p):
        note = "no variance between runs"
    sizes = [len(series) for _, _, series in terms]
    n_b = sizes[1] if comparison.b is not None else 0
    return _ComparisonTest(comparison, result, sizes[0], n_b, p, refuted, note)


def _groups(terms: Sequence[tuple[float, Quantity, pd.Series]], model: str) -> list[Group]:
    """One group for each set of paired values: runs of one model, or states of one model."""
    paired: dict[tuple[str, str], list[pd.Series]] = {}
    for sign, term, series in terms:
        key = (term.run.model or model, term.paired_by)
        paired.setdefault(key, []).append(sign * series)
    groups = []
    for parts in paired.values():
        total = pd.concat(parts, axis=1, join="inner").sum(axis=1)
        if total.empty:
            raise MissingDataError("seeds that both quantities have")
        # What is left of equal numbers, once one is taken from the other, is no spread.
        groups.append(Group.of(total.where(total.abs() >= 1e-12, 0.0)))
    return groups


def _published_effect(comparison: Comparison, model: str) -> float:
    """The paper's value of a comparison outside of sweeps; NaN where it prints none."""
    total = 0.0
    for sign, term in comparison.terms():
        run = term.run
        cell = published.lookup(
            published.family(model), run.variant, term.benchmark or "", term.metric
        )
        if cell is None or term.details or run.model or run.knob:
            return math.nan
        total += sign * cell.mean
    return total
