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

import numpy as np
import pandas as pd

from geosd.claims import published
from geosd.claims.claim import Claim, Comparison, Quantity
from geosd.claims.evidence import Evidence, MissingDataError, StudyRuns
from geosd.scores.statistics import Group, contrast, holm
from geosd.scores.tidy_files import select_rows

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


def judge_claims(
    claims: Sequence[Claim], evidence: Evidence, models: Sequence[str] | None = None
) -> list[Finding]:
    """Judge claims on a study: a finding for each claim and model, claims in their order.

    Without `models`, the models are those of the scores, in their order.
    """
    if models is None:
        models = list(evidence.scores["model"].unique())
    findings = [
        _judge(claim, row, evidence) for claim in claims for row in _rows(claim, models, evidence)
    ]
    return holm_corrected(findings, by_family=True)


def holm_corrected(findings: Sequence[Finding], *, by_family: bool) -> list[Finding]:
    """Correct the p of findings by Holm and decide them; what an interval refutes stays refuted.

    Args:
        findings: With p and intervals.
        by_family: Correct over the claims of one kind of study, each family apart; else over all.
    """
    p = pd.Series([finding.p for finding in findings], dtype=float)
    families = [finding.claim.study_kind if by_family else "" for finding in findings]
    adjusted = p.groupby(families).transform(holm) if findings else p
    return [_decide(*both) for both in zip(findings, adjusted.tolist(), strict=True)]


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


def _judge(claim: Claim, row: str, evidence: Evidence) -> Finding:
    """Numbers of a claim on a model; "not reproduced" already if an interval excludes it."""
    try:
        if claim.unmeasured:
            raise MissingDataError(claim.unmeasured)
        if claim.computed:
            return _judge_costs(claim, evidence)
        model = evidence.sizes[0] if claim.is_about_sizes and evidence.sizes else row
        # Missing methods are named all at once; those of sweeps have names of their own.
        scored = set(select_rows(evidence.scores, model=model)["variant"])
        if missing := [name for name in claim.variants(in_sweeps=False) if name not in scored]:
            raise MissingDataError(", ".join(missing))
        comparisons = claim.comparisons(StudyRuns(evidence, model))
        confidence = 1 - ALPHA / len(comparisons)
        tests = [_test(claim, c, model, evidence, confidence) for c in comparisons]
    except MissingDataError as error:
        return Finding(claim, row, "not tested", note=f"needs {error}")
    # The weakest comparison is the one the verdict hangs on: NaN (nothing known) before any p.
    weakest = max(tests, key=lambda t: (t.verdict == "not reproduced", math.isnan(t.p), t.p))
    return replace(weakest, model=row, p=float(np.max([test.p for test in tests])))


def _judge_costs(claim: Claim, evidence: Evidence) -> Finding:
    if not evidence.costs:
        raise MissingDataError("a table of costs among what the study shows")
    worst = max(claim.computed, key=lambda number: number.excess(evidence.costs[number.quantity]))
    computed = evidence.costs[worst.quantity]
    return Finding(
        claim,
        COSTS,
        "reproduced" if worst.excess(computed) <= 1 + 1e-9 else "not reproduced",
        weakest=worst.describe(computed),
        metric=worst.quantity,
        effect=computed,
        paper_effect=worst.value,
    )


def _test(
    claim: Claim, comparison: Comparison, model: str, evidence: Evidence, confidence: float
) -> Finding:
    """The finding on one comparison, with its own p and its interval at the given confidence."""
    terms = [(sign, term, term.values(evidence, model)) for sign, term in comparison.terms()]
    groups, margin = _groups(terms, model), comparison.margin
    if comparison.direction == "within":
        result = contrast(groups, "less", margin, confidence)
        p = max(result.p, contrast(groups, "greater", -margin, confidence).p)
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
    return Finding(
        claim,
        model,
        "not reproduced" if refuted else "undetermined",
        weakest=str(comparison),
        metric=comparison.a.metric,
        effect=result.difference,
        low=result.low,
        high=result.high,
        p=p,
        n_a=len(terms[0][2]),
        n_b=len(terms[1][2]) if comparison.b is not None else 0,
        paper_effect=_published_effect(comparison, model),
        note=note,
    )


def _groups(terms: Sequence[tuple[float, Quantity, pd.Series]], model: str) -> list[Group]:
    """One group for each set of paired values: runs of one model, or states of one model."""
    paired: dict[tuple[str, str], list[pd.Series]] = {}
    for sign, term, series in terms:
        paired.setdefault((term.run.model or model, term.paired_by), []).append(sign * series)
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
    total, family = 0.0, published.paper_family(model)
    for sign, term in comparison.terms():
        run = term.run
        cell = published.published_number(family, run.variant, term.benchmark or "", term.metric)
        if cell is None or term.details or run.model or run.knob:
            return math.nan
        total += sign * cell.mean
    return total
