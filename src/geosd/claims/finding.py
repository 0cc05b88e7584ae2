"""A claim's estimate, interval and verdict on one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from geosd.claims.claim import Claim

Word = Literal["agrees", "opposite", "too small to tell", "not exercised"]
WORDS: tuple[Word, ...] = get_args(Word)
"""The words that a claim can have on a study, as docs/claims.md defines them."""
NOT_JUDGED = "not judged"
"""Stands for the word where a study is not meant to judge claims: the numbers are estimates."""
Part = Literal["primary", "other", "by construction", "computed"]
"""Where a finding stands: claims named in advance, all others, what must hold, arithmetic."""
COSTS = "costs"
"""Stands for the model of a claim on costs: they are those of the paper's models."""
NO_STUDY = "no study"
"""Stands for the model of a claim that nothing here measures."""
ALL_MODELS = "all models"
"""Stands for the model where a claim is judged over all models of a study together."""


@dataclass(frozen=True)
class Finding:
    """One claim on one model. The numbers are those of the comparison that decides its word.

    Attributes:
        model: The study's model; `ALL_MODELS`; for a ladder its ends; for costs `COSTS`.
        comparison: The comparison in words, or computed and printed number.
        metric: Its metric, or the computed quantity.
        effect: Its a - b (each less its baseline's value), or the computed number; NaN where the
            claim was not exercised.
        low: Lower end of its interval, `high` the upper: NaN with a single run or no spread. A
            computed number is both.
        confidence: That of the interval alone.
        claimed_from: Lower end of the values that are claimed, `claimed_to` the upper.
        n_a: Values of a: runs, or problems for the states of pi_0; n_b is of b, 0 without one.
        units: Independent values: runs, problems, or pretraining replicates.
        paper_effect: The published value of the same comparison; NaN where none.
        note: Why the claim was not exercised, or what to bear in mind.
        study: The study that the data are of; empty where it does not matter.
        judged: Whether the study is meant to judge claims.
    """

    claim: Claim
    model: str
    comparison: str = ""
    metric: str = ""
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float = math.nan
    claimed_from: float = math.nan
    claimed_to: float = math.nan
    n_a: int = 0
    n_b: int = 0
    units: int = 0
    paper_effect: float = math.nan
    note: str = ""
    study: str = ""
    judged: bool = True

    @property
    def exercised(self) -> bool:
        """Whether the study has what the claim is about."""
        return not math.isnan(self.effect)

    @property
    def word(self) -> str:
        """The word of the claim that its interval decides: one of `WORDS`, or `NOT_JUDGED`.

        It "agrees" if it lies between the claimed ends, and is "opposite" if it lies beyond one. An
        interval that holds a finite end, a margin, is "too small to tell"; so is an unknown one.
        """
        if not self.exercised:
            return "not exercised"
        if not self.judged:
            return NOT_JUDGED
        if self.claimed_from < self.low and self.high < self.claimed_to:
            return "agrees"
        beyond = self.high < self.claimed_from or self.claimed_to < self.low
        return "opposite" if beyond else "too small to tell"

    @property
    def part(self) -> Part:
        """Where the finding stands in the ledger."""
        if self.claim.computed:
            return "computed"
        if self.claim.why_by_construction(self.model):
            return "by construction"
        return "primary" if self.claim.primary else "other"

    @property
    def holds_paper(self) -> str:
        """Whether the interval holds the paper's number: "yes", "no" or "no number".

        A computed number does if it is the printed one, give or take one in the last digit.
        """
        if math.isnan(self.paper_effect) or math.isnan(self.low):
            return "no number"
        inside = self.low <= self.paper_effect <= self.high
        return "yes" if inside or (self.claim.computed and self.word == "agrees") else "no"


def findings_without_words(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings as estimates: no word on a claim but where it is arithmetic."""
    return [replace(finding, judged=bool(finding.claim.computed)) for finding in findings]
