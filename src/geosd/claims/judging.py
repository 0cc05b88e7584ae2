"""Judge the paper's claims on a study: a finding for each claim and model; rules: docs/claims.md.

A claim has a row for each model of the study, and before them one over all models where they have
several replicates. A claim on models of several sizes or on costs has one row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from geosd.claims.claim import Claim
from geosd.claims.estimate import Estimate, Level, estimate, whole_estimate_level
from geosd.claims.evidence import Evidence, EvidenceRuns, MissingEvidenceError
from geosd.claims.finding import ALL_MODELS, COSTS, NO_STUDY, WORDS, Finding

ALPHA = 0.05
"""Largest chance that a row has a wrong word; of a primary claim, that any of its models' rows."""
HARDLY_MOVED = 0.02
"""Mean d_FR from pi_0, in radians, below which a row notes that a method hardly moved: next-token
distributions then differ by about sin(d_FR / 2) = .01 in total variation."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim on a model (as the ledger names it), with an estimate of each comparison."""

    claim: Claim
    model: str
    estimates: Sequence[Estimate]
    note: str = ""
    level: Level = whole_estimate_level

    def finding(self, alpha: float = ALPHA) -> Finding:
        """The finding whose intervals, of all comparisons together, have confidence 1 - alpha.

        A comparison that is opposite comes first, then one that is too small to tell; so the word
        of the comparison that is shown is that of the claim. Among equals the weakest is shown.
        """
        findings = [self._of_comparison(one, alpha / len(self.estimates)) for one in self.estimates]
        order = (WORDS[1], WORDS[2], WORDS[0])
        return min(findings, key=lambda found: (order.index(found[0].word), found[1]))[0]

    def _of_comparison(self, one: Estimate, alpha: float) -> tuple[Finding, float]:
        """The finding if it rests on one comparison, and how far the claim holds there, in se."""
        result = one.within(alpha, self.level)
        start, end = one.comparison.claimed
        known = result.se > 0  # not so where it is NaN
        why = "a single run has no interval" if one.units < 2 else "no variance between runs"
        finding = Finding(
            self.claim,
            self.model,
            comparison=str(one.comparison),
            metric=one.comparison.a.metric,
            effect=one.effect,
            low=result.low,
            high=result.high,
            confidence=1 - self.level(alpha / one.candidates),
            claimed_from=start,
            claimed_to=end,
            n_a=one.n_a,
            n_b=one.n_b,
            units=one.units,
            paper_effect=one.paper_effect,
            note=self.note if known else "; ".join(filter(None, (why, self.note))),
        )
        room = min(one.effect - start, end - one.effect)
        return finding, room / result.se if known else math.inf  # better one with an interval


def judge_claims(
    claims: Sequence[Claim],
    evidence: Evidence,
    models: Sequence[str] | None = None,
    level: Level = whole_estimate_level,
    families: int | None = None,
) -> list[Finding]:
    """Judge claims on a study: a finding for each claim and model, claims in their order.

    Without `models`, the models are those of the scores, in their order. `level` is what a stage of
    several may spend of each row's level. With a number of `families` a primary claim's row of a
    model has ALPHA over that number, whatever the others' rows say, in place of Holm's level.
    """
    if models is None:
        models = list(evidence.scores["model"].unique())
    findings: list[Finding] = []
    for claim in claims:
        rows = [_measure(claim, *of, evidence, level) for of in _models(claim, models, evidence)]
        judged = {i: row for i, row in enumerate(rows) if isinstance(row, JudgedClaim)}
        alphas = dict.fromkeys(judged, ALPHA)
        if claim.primary:
            of_models = {i: row for i, row in judged.items() if row.model != ALL_MODELS}
            equal = dict.fromkeys(of_models, ALPHA / families) if families else None
            alphas |= equal or _holm_levels(of_models)
        findings += [row.finding(alphas[i]) if i in judged else row for i, row in enumerate(rows)]
    return findings


def _holm_levels(rows: dict[int, JudgedClaim]) -> dict[int, float]:
    """The level at which Holm's procedure decides each row, or leaves it open.

    Rows that are open are judged at ALPHA over their number, until none is decided: the same rows
    as by adjusted p-values, and each row's word is that of its interval at this level.

    Source: Holm 1979; the paper, Statistical analysis of OOD gains.
    """
    levels: dict[int, float] = {}
    open_rows = dict(rows)
    while open_rows:
        levels |= dict.fromkeys(open_rows, ALPHA / len(open_rows))
        still_open = {
            i: row
            for i, row in open_rows.items()
            if row.finding(levels[i]).word == "too small to tell"
        }
        if len(still_open) == len(open_rows):
            break
        open_rows = still_open
    return levels


def _models(
    claim: Claim, models: Sequence[str], evidence: Evidence
) -> list[tuple[str, Sequence[str]]]:
    """The rows of a claim: what the ledger calls each, and its models."""
    if claim.computed or claim.unmeasured:
        return [(COSTS if claim.computed else NO_STUDY, ())]
    if claim.study_kind == "ladder":
        sizes = evidence.sizes
        name = f"{sizes[0]} to {sizes[-1]}" if sizes else "a ladder of models"
        return [(name, sizes[:1] or models[:1])]
    rows = [(model, [model]) for model in models]
    several = len(models) > 1 and any(evidence.replicates(model).nunique() > 1 for model in models)
    sampled_once = not callable(claim.holds) and claim.holds[0].a.paired_by == "problem"
    return [(ALL_MODELS, models), *rows] if several and not sampled_once else rows


def _measure(
    claim: Claim, name: str, models: Sequence[str], evidence: Evidence, level: Level
) -> JudgedClaim | Finding:
    """The estimates of a claim, or the finding where it needs none or is not exercised."""
    try:
        if claim.unmeasured:
            raise MissingEvidenceError(claim.unmeasured)
        if claim.computed:
            return _judge_costs(claim, evidence)
        comparisons, *others = (
            claim.comparisons(EvidenceRuns(evidence, model)) for model in models
        )
        # Missing methods are named all at once.
        runs: dict[str, None] = {}  # a set in order
        for comparison in comparisons:
            runs |= comparison.variants()
        scored = set.intersection(*(set(evidence.scored(model)) for model in models))
        missing = [name for name in runs if name not in scored]
        if missing:
            raise MissingEvidenceError(", ".join(missing))
        if any(list(map(str, other)) != list(map(str, comparisons)) for other in others):
            raise MissingEvidenceError("the same runs and benchmarks on all models")
        estimates = [estimate(comparison, evidence, models) for comparison in comparisons]
        note = _hardly_moved(estimates, evidence, models)
        return JudgedClaim(claim, name, estimates, note, level)
    except MissingEvidenceError as error:
        return Finding(claim, name, note=f"needs {error}")


def _hardly_moved(estimates: Sequence[Estimate], evidence: Evidence, models: Sequence[str]) -> str:
    """The named methods that ended close to pi_0, in words; in a sweep that is no surprise."""
    runs = [side.run for one in estimates for side in one.comparison.sides]
    words = []
    for run in dict.fromkeys(run for run in runs if run.parameter is None):
        for model in models:
            far = evidence.drift_of(run.model or model, run.name).mean()
            if far < HARDLY_MOVED:
                words.append(f"{run.variant} ended {far:.3f} rad from pi_0 on {run.model or model}")
    return ", ".join(words)


def _judge_costs(claim: Claim, evidence: Evidence) -> Finding:
    if not evidence.costs:
        raise MissingEvidenceError("a table of costs among what the study shows")
    worst = max(claim.computed, key=lambda number: number.excess(evidence.costs[number.quantity]))
    computed = evidence.costs[worst.quantity]
    start, end = worst.claimed
    return Finding(
        claim,
        COSTS,
        comparison=worst.describe(computed),
        metric=worst.quantity,
        effect=computed,
        low=computed,
        high=computed,
        claimed_from=start,
        claimed_to=end,
        paper_effect=worst.value,
    )
