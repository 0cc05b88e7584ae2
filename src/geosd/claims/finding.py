"""What is found of a claim on a model: a verdict, and the numbers that it hangs on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from geosd.claims.claim import Claim
from geosd.scores.statistics import corrected

COSTS = "costs"
"""Stands for the model of a claim on costs: they are those of the paper's models."""
ALL_MODELS = "all models"
"""Stands for the model where a claim is judged over all models of a study together."""
RunVerdict = Literal["reproduced", "not reproduced", "undetermined", "undecidable", "not tested"]
ArithmeticVerdict = Literal["agrees", "differs"]
VERDICTS: tuple[RunVerdict, ...] = get_args(RunVerdict)
"""Verdicts on a claim that runs decide, as docs/claims.md defines them."""
ARITHMETIC: tuple[ArithmeticVerdict, ...] = get_args(ArithmeticVerdict)
"""Verdicts on a claim whose printed numbers are computed anew."""
NOT_JUDGED = "not judged"
"""Stands for the verdict where a study is not meant for verdicts: the numbers are estimates."""


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim for one model. The numbers are those of one of its comparisons.

    It is the one that fails most clearly if the claim is not reproduced, else the weakest, the one
    that is furthest from being confirmed.

    Attributes:
        model: The study's model; `ALL_MODELS`; for a ladder its ends; for costs `COSTS`.
        verdict: See docs/claims.md.
        comparison: The comparison in words, or computed and printed number.
        metric: Its metric, or the computed quantity.
        effect: Its a - b (each less its baseline's value), or the computed number; NaN where not
            tested.
        low: Lower end of its interval, simultaneous over the claim's comparisons; high is the
            upper.
        p_for: The claim's p against the null that it is false, uncorrected; p_against is against
            the null that it is true.
        rows: Rows of the family that both are corrected for.
        detectable: Smallest detectable effect, as a distance from the margin; of `within` the
            smallest margin.
        draw_sd: Standard deviation of the effect between pretraining replicates; NaN where not
            estimable.
        n_a: Values of a: runs, or problems for the states of pi_0; n_b is of b, 0 without one.
        units: Independent values in the test: runs, problems, or pretraining replicates.
        paper_effect: The published value of the same comparison; NaN where none.
        note: Why the claim was not tested or is undecidable; else empty.
        study: The study that the data are of; empty where it does not matter.
    """

    claim: Claim
    model: str
    verdict: RunVerdict | ArithmeticVerdict | Literal["not judged"]
    comparison: str = ""
    metric: str = ""
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p_for: float = math.nan
    p_against: float = math.nan
    rows: int = 0
    detectable: float = math.nan
    draw_sd: float = math.nan
    n_a: int = 0
    n_b: int = 0
    units: int = 0
    paper_effect: float = math.nan
    note: str = ""
    study: str = ""

    @property
    def p(self) -> float:
        """The corrected p behind the finding: against the claim if not reproduced, else for it."""
        p = self.p_against if self.verdict == "not reproduced" else self.p_for
        return corrected(p, self.rows)
