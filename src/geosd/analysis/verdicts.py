"""Verdicts on the paper's claims for one study.

A claim is evaluated for every model of the study, one row a model. The statistics are those of the
paper (Statistical analysis of OOD gains): the run is the unit, the tests are one-sided Welch tests,
and Holm's correction runs over every row that was tested.

Rules of decision, fixed before any study is looked at:

reproduced      Holm-adjusted p < .05. The p of a conjunction is the largest p of its comparisons
                (intersection-union test): every one of them must hold. A `within` comparison
                (|difference| < margin) is two one-sided tests, and its p the larger of theirs.
not reproduced  For some comparison the confidence interval lies wholly where the claim is false:
                at or below the margin for `greater`, at or above it for `less`, outside
                (-margin, margin) for `within`. The intervals are simultaneous: 95 % for the claim,
                so 1 - .05/m for each of m comparisons.
undetermined    Neither; also where a spread cannot be estimated: a single run, or no variance.
not tested      The study does not train a variant, or lacks a quantity, that the claim needs.

Absence of evidence is never "not reproduced", and no outcome is written anywhere but computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from geosd.analysis import drift as drift_table
from geosd.analysis import paper
from geosd.analysis import scores as score_table
from geosd.analysis.claims import EACH_OOD, Claim, Comparison
from geosd.analysis.statistics import Group, holm, welch

ALPHA = 0.05
Verdict = Literal["reproduced", "not reproduced", "undetermined", "not tested"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "undetermined", "not tested")


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim for one model. The numbers are those of the weakest comparison.

    Attributes:
        claim: The claim.
        model: The study's model.
        verdict: See the module's rules.
        weakest: The comparison with the largest p (or, if not reproduced, the one that fails most
            clearly), in words.
        effect: Its mean(a) - mean(b); NaN where not tested.
        low: Lower end of its simultaneous interval.
        high: Upper end.
        p: The claim's p, before Holm.
        p_holm: After Holm over the ledger.
        n_a: Runs of a.
        n_b: Runs of b.
        paper_effect: The published mean(a) - mean(b) of the same comparison; NaN where none.
        note: Why the claim was not tested or remains undetermined; else empty.
    """

    claim: Claim
    model: str
    verdict: Verdict
    weakest: str = ""
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_holm: float = math.nan
    n_a: int = 0
    n_b: int = 0
    paper_effect: float = math.nan
    note: str = ""


def evaluate(
    claims: Sequence[Claim],
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    models: Sequence[str] | None = None,
) -> list[Finding]:
    """Evaluate every claim for every model of a study.

    Args:
        claims: The ledger.
        scores: Tidy scores (`analysis.scores`).
        drift: Tidy drift (`analysis.drift`).
        models: Which models; None takes those of the scores, in their order.

    Returns:
        A finding for each claim and model, claims in their order; Holm runs over all that have p.
    """
    models = list(scores["model"].unique()) if models is None else list(models)
    tested = [_tested(claim, model, scores, drift) for claim in claims for model in models]
    adjusted = holm([finding.p for finding, _ in tested])
    return [
        _decided(finding, refuted, p)
        for (finding, refuted), p in zip(tested, adjusted, strict=True)
    ]


def _decided(finding: Finding, refuted: bool, p_holm: float) -> Finding:
    if finding.verdict == "not tested":
        return finding
    # NaN compares false, so what could not be estimated stays undetermined.
    verdict: Verdict = "undetermined"
    if refuted:
        verdict = "not reproduced"
    elif p_holm < ALPHA:
        verdict = "reproduced"
    return replace(finding, verdict=verdict, p_holm=p_holm)


def _tested(
    claim: Claim, model: str, scores: pd.DataFrame, drift: pd.DataFrame
) -> tuple[Finding, bool]:
    """Numbers of a claim on a model, and whether an interval excludes it."""
    trained = set(scores.loc[scores["model"] == model, "variant"])
    if missing := [name for name in claim.variants if name not in trained]:
        note = f"needs {', '.join(missing)}"
        return Finding(claim, model, "not tested", note=note), False
    measured: list[_Measured] = []
    comparisons = _over_benchmarks(claim, scores, model)
    if not comparisons:
        return Finding(claim, model, "not tested", note="needs OOD benchmarks"), False
    for comparison in comparisons:
        groups = [
            _runs(name, comparison, model, scores, drift) for name in (comparison.a, comparison.b)
        ]
        if any(group is None for group in groups):
            note = f"needs {comparison.metric} on {comparison.benchmark}"
            return Finding(claim, model, "not tested", note=note), False
        measured.append(_measure(comparison, *groups, count=len(comparisons)))
    refuted = any(m.refuted for m in measured)
    # The weakest comparison is the one the verdict hangs on: NaN (nothing known) before any p.
    weakest = max(measured, key=lambda m: (m.refuted, math.isnan(m.p), m.p))
    unknown = any(math.isnan(m.p) for m in measured)
    published = _published(weakest.comparison, model)
    return (
        Finding(
            claim,
            model,
            "undetermined",
            weakest=describe(weakest.comparison),
            effect=weakest.a.mean - weakest.b.mean,
            low=weakest.low,
            high=weakest.high,
            p=math.nan if unknown else max(m.p for m in measured),
            n_a=weakest.a.n,
            n_b=weakest.b.n,
            paper_effect=published,
            note=weakest.note,
        ),
        refuted,
    )


@dataclass(frozen=True)
class _Measured:
    comparison: Comparison
    a: Group
    b: Group
    low: float
    high: float
    p: float
    refuted: bool
    note: str


def _measure(comparison: Comparison, a: Group, b: Group, count: int) -> _Measured:
    """Test one of `count` comparisons of a claim; its interval is at 1 - .05/count."""
    margin, confidence = comparison.margin, 1 - ALPHA / count
    if comparison.direction == "within":
        below = welch(a, b, "less", margin, confidence)
        above = welch(a, b, "greater", -margin, confidence)
        test, p = below, max(below.p, above.p)
        refuted = test.low >= margin or test.high <= -margin
    else:
        test = welch(a, b, comparison.direction, margin, confidence)
        p = test.p
        refuted = test.high <= margin if comparison.direction == "greater" else test.low >= margin
    note = ""
    if min(a.n, b.n) < 2:
        note = "a single run has no spread"
    elif math.isnan(p):
        note = "no variance between runs"
    return _Measured(comparison, a, b, test.low, test.high, p, refuted, note)


def _over_benchmarks(claim: Claim, scores: pd.DataFrame, model: str) -> list[Comparison]:
    found = []
    for comparison in claim.comparisons:
        if comparison.benchmark == EACH_OOD:
            names = score_table.ood_benchmarks(scores, model)
            found += [replace(comparison, benchmark=name) for name in names]
        else:
            found.append(comparison)
    return found


def _runs(
    variant: str, comparison: Comparison, model: str, scores: pd.DataFrame, drift: pd.DataFrame
) -> Group | None:
    if comparison.metric in drift_table.QUANTITIES:
        values = drift_table.values(drift, model, variant, comparison.metric)
    else:
        values = score_table.values(scores, model, variant, comparison.benchmark, comparison.metric)
    return Group.of(values) if len(values) else None


def _published(comparison: Comparison, model: str) -> float:
    where = (paper.family(model), comparison.benchmark, comparison.metric)
    cells = [
        paper.lookup(where[0], name, where[1], where[2]) for name in (comparison.a, comparison.b)
    ]
    return math.nan if None in cells else cells[0].mean - cells[1].mean


def describe(comparison: Comparison) -> str:
    """A comparison in words, e.g. `geosd - fwdkl > 0, avg@k of ood_avg`."""
    sign = {"greater": f"> {comparison.margin:g}", "less": f"< {comparison.margin:g}"}.get(
        comparison.direction, f"within +-{comparison.margin:g}"
    )
    of = "" if comparison.metric in drift_table.QUANTITIES else f" of {comparison.benchmark}"
    return f"{comparison.a} - {comparison.b} {sign}, {comparison.metric}{of}"
