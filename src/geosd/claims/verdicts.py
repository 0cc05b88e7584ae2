"""Verdicts on the paper's claims for one study; docs/claims.md gives the rules of decision.

A claim is judged for every model of the study, one row a model. Where the paper makes it of every
family and models have several replicates, one row more is over all models together. A claim on
models of several sizes or on costs has one row. Rows are corrected by families, for verdicts of
both kinds: those of one model, and those over all models, of the claims that one kind of study is
designed for.
No outcome is written anywhere but computed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from geosd.claims.claim import Claim
from geosd.claims.comparing import ComparisonTest, compare
from geosd.claims.evidence import Evidence, MissingDataError, StudyRuns
from geosd.claims.finding import ALL_MODELS, COSTS, NOT_JUDGED, VERDICTS, Finding, RunVerdict
from geosd.claims.undecidable import Doubt, doubts, out_of_reach
from geosd.scores.statistics import corrected
from geosd.scores.tidy import select_rows

ALPHA = 0.05
"""Largest chance of any wrong verdict, of either kind, in a family of rows."""
SHOWN = ("effect", "low", "high", "draw_sd", "n_a", "n_b", "units", "paper_effect")
"""What a finding shows of the test of one of its comparisons, as it is."""


@dataclass(frozen=True)
class Row:
    """A claim on a model (as the ledger names it), with a test and a doubt for each comparison."""

    claim: Claim
    model: str
    tests: Sequence[ComparisonTest]
    doubts: Sequence[Doubt | None]

    @property
    def family(self) -> tuple[str, bool] | None:
        """The rows that it is corrected with; None if each comparison has one run or model only."""
        if all(test.units < 2 for test in self.tests):
            return None
        return self.claim.study_kind, self.model == ALL_MODELS

    def against(self, index: int) -> float:
        """The p of one comparison against the claim: 1 where it is in doubt."""
        p = self.tests[index].p_against
        return 1.0 if self.doubts[index] or math.isnan(p) else p

    @property
    def p_against(self) -> float:
        """Against the null that the claim is true: one comparison refutes it (Bonferroni)."""
        parts = range(len(self.tests))
        return min(1.0, len(self.tests) * min(map(self.against, parts)))

    @property
    def p_for(self) -> float:
        """Against the null that the claim is false: all comparisons must hold."""
        known = [test.p_for for test in self.tests]
        return 1.0 if any(self.doubts) or any(map(math.isnan, known)) else max(known)


def judge_claims(
    claims: Sequence[Claim], evidence: Evidence, models: Sequence[str] | None = None
) -> list[Finding]:
    """Judge claims on a study: a finding for each claim and model, claims in their order.

    Without `models`, the models are those of the scores, in their order.
    """
    if models is None:
        models = list(evidence.scores["model"].unique())
    measured = [
        _measure(claim, name, of, evidence)
        for claim in claims
        for name, of in _models(claim, models, evidence)
    ]
    sizes = Counter(row.family for row in measured if isinstance(row, Row))
    return [decide(row, sizes[row.family]) if isinstance(row, Row) else row for row in measured]


def without_verdicts(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings as estimates: no word on whether a claim is reproduced, and no p.

    Claims that were not tested, and arithmetic, which no run decides, stay as they are.
    """
    unknown = {"p_for": math.nan, "p_against": math.nan, "note": ""}
    estimated = set(VERDICTS) - {"not tested"}
    return [
        replace(finding, verdict=NOT_JUDGED, **unknown) if finding.verdict in estimated else finding
        for finding in findings
    ]


def _models(
    claim: Claim, models: Sequence[str], evidence: Evidence
) -> list[tuple[str, Sequence[str]]]:
    """The rows of a claim: what the ledger calls each, and its models."""
    if claim.computed or claim.unmeasured:
        return [(COSTS, ())]
    if claim.is_about_sizes:
        sizes = evidence.sizes
        name = f"{sizes[0]} to {sizes[-1]}" if sizes else "a ladder of models"
        return [(name, sizes[:1] or models[:1])]
    rows = [(model, [model]) for model in models]
    several = len(models) > 1 and any(evidence.replicates(model).nunique() > 1 for model in models)
    return [(ALL_MODELS, models), *rows] if claim.every_family and several else rows


def _measure(claim: Claim, name: str, models: Sequence[str], evidence: Evidence) -> Row | Finding:
    """The tests of a claim, or the finding where it needs none or cannot be tested."""
    try:
        if claim.unmeasured:
            raise MissingDataError(claim.unmeasured)
        if claim.computed:
            return _judge_costs(claim, evidence)
        for model in models:
            # Missing methods are named all at once; those of sweeps have names of their own.
            scored = set(select_rows(evidence.scores, model=model)["variant"])
            if missing := [name for name in claim.variants(in_sweeps=False) if name not in scored]:
                raise MissingDataError(", ".join(missing))
        comparisons = claim.comparisons(StudyRuns(evidence, models[0]))
        others = [claim.comparisons(StudyRuns(evidence, model)) for model in models[1:]]
        if any(list(map(str, other)) != list(map(str, comparisons)) for other in others):
            raise MissingDataError("the same runs and benchmarks on all models")
        confidence = 1 - ALPHA / len(comparisons)
        tests = [compare(c, evidence, models, confidence) for c in comparisons]
        return Row(claim, name, tests, doubts(comparisons, evidence, models))
    except MissingDataError as error:
        return Finding(claim, name, "not tested", note=f"needs {error}")


def _judge_costs(claim: Claim, evidence: Evidence) -> Finding:
    if not evidence.costs:
        raise MissingDataError("a table of costs among what the study shows")
    worst = max(claim.computed, key=lambda number: number.excess(evidence.costs[number.quantity]))
    computed = evidence.costs[worst.quantity]
    return Finding(
        claim,
        COSTS,
        "agrees" if worst.excess(computed) <= 1 + 1e-9 else "differs",
        comparison=worst.describe(computed),
        metric=worst.quantity,
        effect=computed,
        paper_effect=worst.value,
    )


def decide(row: Row, rows: int) -> Finding:
    """The finding on a row of a family of so many rows."""
    parts = range(len(row.tests))
    level = ALPHA / max(1, rows)
    # The weakest comparison is the one a verdict hangs on: NaN, nothing known, before any p.
    shown = max(parts, key=lambda i: (math.isnan(row.tests[i].p_for), row.tests[i].p_for))
    # Of comparisons in doubt, one that is surely no evidence comes first.
    doubted = {i: doubt for i, doubt in enumerate(row.doubts) if doubt}
    first = min(doubted, key=lambda i: not doubted[i].certain, default=None)
    verdict: RunVerdict = "undetermined"
    note = ""
    if row.family and corrected(row.p_against, rows) < ALPHA:
        verdict, shown = "not reproduced", min(parts, key=row.against)
    elif first is not None:
        verdict = "undecidable" if doubted[first].certain else "undetermined"
        shown, note = first, doubted[first].why
    elif row.family and corrected(row.p_for, rows) < ALPHA:
        verdict = "reproduced"
    elif note := out_of_reach(row.tests, level):
        verdict = "undecidable"
    test = row.tests[shown]
    return Finding(
        row.claim,
        row.model,
        verdict,
        comparison=str(test.comparison),
        metric=test.comparison.a.metric,
        p_for=row.p_for if row.family else math.nan,
        p_against=row.p_against if row.family else math.nan,
        rows=rows if row.family else 0,
        detectable=test.detectable_for(level, len(parts)),
        note=note,
        **{name: getattr(test, name) for name in SHOWN},
    )
