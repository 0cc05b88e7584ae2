"""A claim of the paper: its words, and the values that it claims for a study's quantities.

Claims are written as inequalities:

    accuracy_metric("geosd") > accuracy_metric("pi_0")
    accuracy_metric("geosd", ID) > accuracy_metric("fwdkl", ID) - 1.7
    drift_metric_at("geosd", 1.0) < 1.5 * drift_metric_at("geosd", 0.5)
    claim_near(accuracy_metric("jsd"), accuracy_metric("pi_0"), within=2.5)

The quantities are those of `geosd.claims.metrics`, the claims those of `geosd.claims.ledger`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

import pandas as pd

from geosd.claims.computed_costs import ComputedNumber
from geosd.claims.evidence import Evidence, EvidenceRuns, MissingEvidenceError, VariantEvidence

StudyKind = Literal["main", "ablation", "privilege", "ladder", "stepsize", "readings"]
"""Kinds of studies that judge claims; studies of other kinds judge none."""
Direction = Literal["greater", "less", "within"]
Read = Callable[[Evidence, str, str], pd.Series]
"""Values by seed or problem, given the evidence, a model and the name of its runs."""


@dataclass(frozen=True)
class ClaimedQuantity:
    """A number of each run of a variant, which claims compare; arithmetic and <, > are defined.

    Attributes:
        metric: Its name, as the ledger prints it.
        benchmark: "id", "ood_avg", an OOD benchmark, "hard_half" or "easy_half"; None for metrics
            that know none.
        details: Arguments of the metric by name, as the ledger prints them.
        baseline: Variant whose value on the same model is subtracted; None for none.
        paired_by: What two values must share to be paired: "seed", or "problem" for states of pi_0.
        factor: Multiplies it; `offset` is then added.
    """

    metric: str
    run: VariantEvidence
    read: Read
    benchmark: str | None = None
    details: tuple[tuple[str, object], ...] = ()
    baseline: str | None = None
    paired_by: Literal["seed", "problem"] = "seed"
    factor: float = 1.0
    offset: float = 0.0

    def __rmul__(self, factor: float) -> ClaimedQuantity:
        """A multiple."""
        return replace(self, factor=factor * self.factor, offset=factor * self.offset)

    def __add__(self, offset: float) -> ClaimedQuantity:
        """So much more."""
        return replace(self, offset=self.offset + offset)

    def __sub__(self, offset: float) -> ClaimedQuantity:
        """So much less."""
        return self + -offset

    def __gt__(self, other: ClaimedQuantity | float) -> Comparison:
        """The claim that this is greater."""
        return Comparison.between(self, other, "greater")

    def __lt__(self, other: ClaimedQuantity | float) -> Comparison:
        """The claim that this is less."""
        return Comparison.between(self, other, "less")

    def values(self, evidence: Evidence, model: str) -> pd.Series:
        """The quantity's values on a model (or that of its runs), without factor and offset.

        Raises:
            MissingEvidenceError: The study has none.
        """
        values = self.read(evidence, self.run.model or model, self.run.name).dropna()
        if values.empty:
            benchmark = f" on {self.benchmark}" if self.benchmark else ""
            raise MissingEvidenceError(f"{self.metric}{benchmark} of {self.run.name}")
        return values

    def describe(self, metric: bool, benchmark: bool) -> str:
        """The runs of the quantity in words, e.g. `geosd (learning_rate 0.5)`; metric if asked."""
        words = [self.metric] if metric else []
        words += [str(self.benchmark)] if benchmark else []
        words += [self.run.model] if self.run.model else []
        place = [] if self.run.parameter is None else [(self.run.parameter, self.run.value)]
        for name, value in sorted([*self.details, *place]):
            words.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
        return f"{self.run.variant} ({', '.join(words)})" if words else self.run.variant


def claim_near(a: ClaimedQuantity, b: ClaimedQuantity | float, *, within: float) -> Comparison:
    """The comparison |a - b| < within of a claim, whose margin must be above 0."""
    if within <= 0:
        raise ValueError(
            f"near needs a margin above 0, got {within}.\nHint: see docs/claims.md, within."
        )
    return replace(Comparison.between(a, b, "within"), margin=within)


@dataclass(frozen=True)
class Comparison:
    """An inequality that a claim is made of: a - b, compared with a margin in the quantity's unit.

    b is None where a is compared with the margin alone; "within" means |a - b| < margin.
    """

    a: ClaimedQuantity
    b: ClaimedQuantity | None
    direction: Direction
    margin: float = 0.0

    @classmethod
    def between(
        cls, a: ClaimedQuantity, b: ClaimedQuantity | float, direction: Direction
    ) -> Comparison:
        """Make the comparison of two quantities, or of one with a number."""
        if isinstance(b, ClaimedQuantity):
            margin = b.offset
            b = replace(b, offset=0.0)
        else:
            margin = float(b)
            b = None
        if (a.factor, a.offset) != (1.0, 0.0) or (b and a.baseline != b.baseline):
            raise ValueError(
                f"{a.metric} of {a.run.variant}: factors and numbers stand on the right side, and"
                " both sides are gains over one baseline or neither is.\nHint: see docs/claims.md."
            )
        return cls(a, b, direction, margin)

    def __bool__(self) -> NoReturn:
        """A claim is neither true nor false before it is judged; so a < b < c is no claim."""
        raise TypeError("a comparison has no truth value.\nHint: write a < b and b < c as two.")

    @property
    def claimed(self) -> tuple[float, float]:
        """The values of a - b that are claimed, between two ends; the finite ones are margins."""
        if self.direction == "within":
            return -self.margin, self.margin
        if self.direction == "greater":
            return self.margin, math.inf
        return -math.inf, self.margin

    @property
    def sides(self) -> tuple[ClaimedQuantity, ...]:
        """The quantities that the comparison is between: a, and b where there is one."""
        return (self.a,) if self.b is None else (self.a, self.b)

    def terms(self) -> Iterator[tuple[float, ClaimedQuantity]]:
        """The comparison's terms: coefficients and quantities of a, b, and the baseline of each."""
        signed = [(1.0, self.a), *((-side.factor, side) for side in self.sides[1:])]
        yield from signed
        baseline = self.a.baseline
        if baseline is None:
            return
        for sign, side in signed:
            yield -sign, replace(side, run=VariantEvidence(baseline, baseline, side.run.model))

    def variants(self) -> dict[str, None]:
        """The variants that it is about, outside of sweeps."""
        runs = [term.run for _, term in self.terms()]
        named = [run.among or (run.name,) for run in runs if run.among or run.parameter is None]
        return dict.fromkeys(name for names in named for name in names)

    def __str__(self) -> str:
        """In words, e.g. `geosd - fwdkl > 0, avg@k of ood_avg`; what both share comes last."""
        metrics = list(dict.fromkeys(side.metric for side in self.sides))
        benchmarks = list(dict.fromkeys(side.benchmark for side in self.sides))
        names = [side.describe(len(metrics) > 1, len(benchmarks) > 1) for side in self.sides]
        if self.b is not None and self.b.factor != 1:
            names[1] = f"{self.b.factor:g} x {names[1]}"
        sign = {"greater": "> ", "less": "< ", "within": "within +-"}[self.direction]
        shared = metrics if len(metrics) == 1 else []
        if benchmarks != [None] and len(benchmarks) == 1:
            shared = [*shared, f"of {benchmarks[0]}"]
        if self.a.baseline is not None:
            shared = [*shared, f"over {self.a.baseline}"]
        words = [f"{' - '.join(names)} {sign}{self.margin:g}", " ".join(shared)]
        return ", ".join(filter(None, words))


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim of the paper: its statement, quote and place, and how it is judged.

    Attributes:
        id: Short name, unique in the ledger; its key there.
        statement: The claim in one sentence of ours.
        quote: The paper's words, LaTeX markup removed; a test finds them in the paper's source.
        study_kind: The kind of study that is designed to judge it.
        holds: What must hold, all of it; a function of the study where this depends on what the
            study swept.
        computed: What must agree, all of it.
        unmeasured: What the claim needs and nothing here measures.
        primary: Whether it is one of the three claims named in advance, corrected over models.
        by_construction: Beginning of a model's name -> why the claim holds on it whatever a run
            does; "" is of every model.
    """

    id: str
    statement: str
    place: str
    quote: str
    study_kind: StudyKind
    holds: Sequence[Comparison] | Callable[[EvidenceRuns], Sequence[Comparison]] = ()
    computed: Sequence[ComputedNumber] = ()
    unmeasured: str = ""
    primary: bool = False
    by_construction: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A claim must say in exactly one way how it is judged."""
        if sum(map(bool, (self.holds, self.computed, self.unmeasured))) != 1:
            raise ValueError(
                f"claim {self.id or self.statement}: needs exactly one of holds, computed and"
                " unmeasured.\nHint: see docs/claims.md."
            )

    def comparisons(self, study: EvidenceRuns) -> list[Comparison]:
        """The comparisons that must hold in a study for the study to agree with the claim.

        Raises:
            MissingEvidenceError: The study did not run what the claim is about.
        """
        comparisons = self.holds(study) if callable(self.holds) else self.holds
        if self.holds and not comparisons:
            raise MissingEvidenceError("a sweep of more values")
        return list(comparisons)

    def why_by_construction(self, model: str) -> str:
        """Why the claim holds on a model by construction; empty where it need not."""
        reasons = self.by_construction.items()
        return next((why for start, why in reasons if model.startswith(start)), "")
