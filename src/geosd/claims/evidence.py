"""A study's evidence on claims: its tidy tables, its sweeps, its models of several sizes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import pandas as pd

from geosd.scores.score_table import score_table_replicates, scored_ood_benchmarks, scores_by_seed
from geosd.scores.step_log_tables import step_log_final_drift
from geosd.scores.tidy import COLUMNS, select_tidy_rows

Point = Mapping[str, Any]
Points = Mapping[str, Sequence[Point]]
ONE_RATE = "one_rate"
"""Parameter of runs at a learning rate that several variants share, as in the paper's protocol."""


class MissingEvidenceError(Exception):
    """Raised where the study has no data for a claim; the message says what is needed."""


def _empty(name: str) -> Any:
    return field(default_factory=lambda: pd.DataFrame(columns=list(COLUMNS[name])))


@dataclass(frozen=True, eq=False)
class Evidence:
    """All data that a study offers as evidence for claims; what it does not have is empty.

    The first six are tidy tables (`geosd.scores.tidy`).

    Attributes:
        privilege: Model -> points of a sweep of the privilege: run, variant, privilege.
        rates_and_steps: Model -> points of a sweep of learning rate and steps: run, variant, both.
        rates: Model -> variant -> the learning rate of its runs outside of sweeps.
        sizes: Models of several sizes, from small to large.
        costs: Computed quantities by name (`geosd.claims.computed_costs`).
    """

    scores: pd.DataFrame = _empty("scores")
    drift: pd.DataFrame = _empty("drift")
    consensus: pd.DataFrame = _empty("consensus")
    drift_over_steps: pd.DataFrame = _empty("drift_over_steps")
    alignment: pd.DataFrame = _empty("alignment")
    states: pd.DataFrame = _empty("states")
    privilege: Points = field(default_factory=dict)
    rates_and_steps: Points = field(default_factory=dict)
    rates: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def scored(self) -> Callable[[str], frozenset[str]]:
        """Model -> the names of its runs that have scores."""
        return cache(
            lambda model: frozenset(select_tidy_rows(self.scores, model=model)["variant"].unique())
        )

    @cached_property
    def drift_of(self) -> Callable[[str, str], pd.Series]:
        """Model, run -> d_FR from pi_0 at the end of training by seed."""
        return cache(partial(step_log_final_drift, self.drift))

    @cached_property
    def replicates(self) -> Callable[[str], pd.Series]:
        """Model -> the pretraining replicate that each seed starts from."""
        return cache(
            lambda model: score_table_replicates(select_tidy_rows(self.scores, model=model))
        )

    @cached_property
    def scores_of(self) -> Callable[[str, str, str, str], pd.Series]:
        """Model, run, benchmark, metric -> values by seed.

        Claims ask for the same values again and again, and each time would search the whole table.
        """
        return cache(partial(scores_by_seed, self.scores))


@dataclass(frozen=True)
class VariantEvidence:
    """The runs of a variant that a claim is about, at one place of a sweep or outside of any.

    Attributes:
        name: What the tables call the runs.
        model: The model, where it is not the one that is judged.
        parameter: What the sweep varies, at `value` here; None outside of sweeps.
        among: Variants; the runs are of the strongest of them on the OOD average; empty if
            the variant is named.
    """

    variant: str
    name: str
    model: str | None = None
    parameter: str | None = None
    value: Any = None
    among: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvidenceRuns:
    """The sweeps and benchmarks that a study ran on the judged model, for claims to pick runs of.

    A sweep is the list of a variant's runs by ascending value of one parameter, two or more: `[0]`
    is at the smallest value, `[-1]` at the largest.
    """

    evidence: Evidence
    model: str

    @property
    def ood_benchmarks(self) -> list[str]:
        """OOD benchmarks of the judged model, without their average."""
        names = scored_ood_benchmarks(self.evidence.scores, self.model)
        if not names:
            raise MissingEvidenceError("OOD benchmarks")
        return names

    def privilege(self, variant: str) -> list[VariantEvidence]:
        """A variant's runs by the share of the solution revealed."""
        return _sweep(variant, "privilege", self._points(self.evidence.privilege, variant))

    def learning_rates(self, variant: str) -> list[VariantEvidence]:
        """A variant's runs of full length by learning rate."""
        points = self._points(self.evidence.rates_and_steps, variant)
        full = max((point["steps"] for point in points), default=0)
        return _sweep(variant, "learning_rate", [p for p in points if p["steps"] == full])

    def stops(self, variant: str) -> list[VariantEvidence]:
        """A variant's runs at its own rate by the step at which they end."""
        rate = self.stopped_rate(variant)
        points = self._points(self.evidence.rates_and_steps, variant)
        return _sweep(variant, "steps", [p for p in points if p["learning_rate"] == rate])

    def sizes(self, variant: str) -> list[VariantEvidence]:
        """A variant's runs on models from small to large."""
        if len(self.evidence.sizes) < 2:
            raise MissingEvidenceError(f"models of several sizes for {variant}")
        return [VariantEvidence(variant, variant, model) for model in self.evidence.sizes]

    def own_rate(self, variant: str) -> VariantEvidence:
        """The full run at the rate at which runs were stopped early."""
        return sweep_evidence(self.learning_rates(variant), self.stopped_rate(variant))

    def at_one_rate(self, *variants: str) -> list[list[VariantEvidence]]:
        """Runs of full length of several variants at each learning rate that all of them have."""
        runs: list[dict[float, str]] = []
        for variant in variants:
            points = self._points(self.evidence.rates_and_steps, variant)
            full = max((point["steps"] for point in points), default=0)
            of_rate = {}
            for point in points:
                if point["steps"] == full:
                    of_rate[point["learning_rate"]] = point["run"]
            own_rate = self.evidence.rates.get(self.model, {}).get(variant)
            if own_rate is not None and variant in self.evidence.scored(self.model):
                of_rate[own_rate] = variant
            runs.append(of_rate)
        shared = sorted(set.intersection(*(set(of_rate) for of_rate in runs)))
        if not shared:
            raise MissingEvidenceError(f"{' and '.join(variants)} at one learning rate")
        at_rates = []
        for rate in shared:
            at_rate = []
            for variant, of_rate in zip(variants, runs, strict=True):
                at_rate.append(VariantEvidence(variant, of_rate[rate], None, ONE_RATE, rate))
            at_rates.append(at_rate)
        return at_rates

    def stopped_rate(self, variant: str) -> float | None:
        """The rate at which a variant's runs were stopped early, or None."""
        steps: dict[float, set[int]] = {}
        for point in self._points(self.evidence.rates_and_steps, variant):
            steps.setdefault(point["learning_rate"], set()).add(point["steps"])
        rate = max(steps, key=lambda rate: len(steps[rate]), default=None)
        return None if rate is None or len(steps[rate]) < 2 else rate

    def _points(self, sweep: Points, variant: str) -> list[Point]:
        """The points of a variant that have scores."""
        scored = self.evidence.scored(self.model)
        points = sweep.get(self.model, ())
        return [p for p in points if p["variant"] == variant and p["run"] in scored]


def sweep_evidence(sweep: Sequence[VariantEvidence], value: float | None) -> VariantEvidence:
    """Pick the run of a sweep at a value, for a claim; .3 need not be written to the last bit."""
    for run in sweep:
        if value is not None and math.isclose(run.value, value, rel_tol=1e-9):
            return run
    where = "own" if value is None else value
    raise MissingEvidenceError(f"{sweep[0].variant} at {sweep[0].parameter} {where}")


def _sweep(variant: str, parameter: str, points: Sequence[Point]) -> list[VariantEvidence]:
    names = {point[parameter]: point["run"] for point in points}
    if len(names) < 2:
        raise MissingEvidenceError(f"a sweep of {parameter} for {variant}")
    return [
        VariantEvidence(variant, names[value], parameter=parameter, value=value)
        for value in sorted(names)
    ]
