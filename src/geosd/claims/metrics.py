"""The metrics that claims compare, one function each: a value for each run, or for each problem.

Values on one model are paired by seed: the runs of a seed draw the same problems and solutions in
training and the same random numbers in evaluation. Values over the states of pi_0 are paired by
problem. Models are independent. Units are points (percent) unless a function says otherwise.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from geosd.claims.claim import ClaimedQuantity, Read
from geosd.claims.evidence import Evidence, EvidenceRuns, MissingEvidenceError, VariantEvidence
from geosd.mismatch_region import in_mismatch_region
from geosd.scores.consensus import is_strong_consensus
from geosd.scores.score_table import ID, scored_ood_benchmarks, scores_by_seed
from geosd.scores.score_table import OOD_AVERAGE as OOD
from geosd.scores.step_log_tables import TEACHER_MASS
from geosd.scores.tidy import select_tidy_rows, tidy_values_by_seed

__all__ = ["ID", "OOD"]

HARD_HALF = "hard_half"
"""Mean over the half of the OOD benchmarks that pi_0 finds hardest."""
EASY_HALF = "easy_half"
"""Mean over the half that pi_0 finds easiest."""
UNITS = {"drift": "rad", "gradient": "norm"}
"""Of metrics by the first word of their name; others are in points."""
OVERLAPS = {"lowest": (0.0, 0.25), "low": (0.25, 0.5), "below half": (0.0, 0.5)}
"""Ranges of overlap: from the first number on, below the second."""
LEAST_RATES = 3
"""Learning rates, below which a sweep has no frontier."""
STEP_TOLERANCE = 0.05
"""Largest distance of a checkpoint from the wanted share of a run, as a share of the run."""
FEWEST = 20
"""Problems with a state in a range of overlap, below which its mean is not read."""

Runs = str | VariantEvidence
Ranks = Literal["first", "others"]


def unit_of_metric(metric: str) -> str:
    """The unit of a claim's quantity by its metric: "points" (percent), "rad" or "norm"."""
    first_word = re.split("[/_]", metric)[0]
    return UNITS.get(first_word, "points")


def _quantity(
    metric: str, runs: Runs, read: Read, benchmark: str | None = None, **details: object
) -> ClaimedQuantity:
    run = VariantEvidence(runs, runs) if isinstance(runs, str) else runs
    return ClaimedQuantity(metric, run, read, benchmark, tuple(details.items()))


# ---- Scores --------------------------------------------------------------------------------------
def accuracy_metric(run: Runs, benchmark: str = OOD) -> ClaimedQuantity:
    """The metric avg@k on `ID`, `OOD` (the average), an OOD benchmark or a half of them."""
    return _score("avg@k", run, benchmark)


def strongest_metric(variants: Sequence[str]) -> ClaimedQuantity:
    """OOD accuracy of the variant among some whose mean OOD average is the highest."""
    return accuracy_metric(
        VariantEvidence("strongest", "strongest", parameter="of", among=tuple(variants))
    )


def gain_metric(run: Runs, benchmark: str = OOD) -> ClaimedQuantity:
    """Accuracy minus that of pi_0."""
    return replace(accuracy_metric(run, benchmark), baseline="pi_0")


def pass_at_k_metric(run: Runs, k: int | None = None) -> ClaimedQuantity:
    """OOD pass@k, by default for the largest k of the score table."""
    if k is None:
        return _score("pass@k", run)

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        return tidy_values_by_seed(select_tidy_rows(_consensus(evidence, model, run), x=k))

    return _quantity("pass@k", run, read, OOD, k=k)


def false_consensus_metric(run: Runs) -> ClaimedQuantity:
    """Share of OOD problems whose samples agree strongly on a wrong answer."""
    return _score("false_consensus", run)


def frontier_gap_metric(variant: str) -> ClaimedQuantity:
    """OOD average of early stops minus that of full runs at equal ID accuracy."""

    def read(evidence: Evidence, model: str, variant: str) -> pd.Series:
        study = EvidenceRuns(evidence, model)
        try:
            rates = study.learning_rates(variant)
            stops = study.stops(variant)
        except MissingEvidenceError:
            rates = []
        if len(rates) < LEAST_RATES:
            raise MissingEvidenceError(f"sweeps of learning rate and steps of {variant}")
        stopped_rate = study.stopped_rate(variant) or np.inf
        frontier = ["pi_0", *(run.name for run in rates if run.value <= stopped_rate)]
        stopped = [run.name for run in stops[:-1]]
        return early_stop_gap_metrics(evidence.scores, model, frontier, stopped)

    swept = VariantEvidence(variant, variant, parameter="sweep", value="rates and stops")
    return _quantity("frontier_gap", swept, read)


def early_stop_gap_metrics(
    scores: pd.DataFrame, model: str, frontier: Sequence[str], stopped: Sequence[str]
) -> pd.Series:
    """OOD accuracy of early stops minus that of the learning-rate frontier at equal ID accuracy.

    A seed's frontier is the line on the ID-OOD plane through its full runs, the base model among
    them, in the order of their ID accuracy. The gap of a seed is the mean over its stopped runs of
    OOD average minus that of the frontier at the same ID accuracy. A stopped run outside the
    frontier's range of ID accuracy is left out, and so is a seed without any other stopped run.

    Source: paper, Robustness to step size and early stopping ("at matched ID accuracy").
    """
    line = _id_and_ood(scores, model, frontier)
    stops = _id_and_ood(scores, model, stopped)
    gaps = {}
    for seed, points in line.sort_values([ID, OOD]).groupby(level=0):
        of_seed = stops[stops.index == seed]
        inside = of_seed[of_seed[ID].between(points[ID].min(), points[ID].max())]
        if len(points) > 1 and len(inside):
            matched = np.interp(inside[ID], points[ID], points[OOD])
            gaps[seed] = float((inside[OOD].to_numpy() - matched).mean())
    return pd.Series(gaps, dtype=float)


def _id_and_ood(scores: pd.DataFrame, model: str, runs: Sequence[str]) -> pd.DataFrame:
    """ID and OOD accuracy of each of some runs, indexed by seed."""
    tables = []
    for run in runs:
        columns = {
            benchmark: scores_by_seed(scores, model, run, benchmark) for benchmark in (ID, OOD)
        }
        tables.append(pd.concat(columns, axis=1, join="inner"))
    return pd.concat(tables)


def _score(metric: str, run: Runs, benchmark: str = OOD) -> ClaimedQuantity:
    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        names = [benchmark]
        if benchmark in (HARD_HALF, EASY_HALF):
            names = _half(evidence, model, benchmark)
        parts = [evidence.scores_of(model, run, name, metric) for name in names]
        return pd.concat(parts, axis=1, join="inner").mean(axis=1)

    return _quantity(metric, run, read, benchmark)


def _half(evidence: Evidence, model: str, which: str) -> list[str]:
    """Half of the OOD benchmarks by pi_0's accuracy; the middle one of an odd number in none."""
    names = scored_ood_benchmarks(evidence.scores, model)
    means = {name: evidence.scores_of(model, "pi_0", name, "avg@k").mean() for name in names}
    if len(names) < 2 or any(np.isnan(mean) for mean in means.values()):
        raise MissingEvidenceError("pi_0 on two OOD benchmarks or more")
    hardest_first = sorted(names, key=means.__getitem__)
    half = len(names) // 2
    return hardest_first[:half] if which == HARD_HALF else hardest_first[-half:]


# ---- Agreement of samples ------------------------------------------------------------------------
def late_gain_metric(run: Runs) -> ClaimedQuantity:
    """OOD pass@n - pass@(n/4) of n samples."""

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        table = _consensus(evidence, model, run)
        samples = 0 if table.empty else int(table["x"].max())
        late = tidy_values_by_seed(select_tidy_rows(table, x=samples))
        early = tidy_values_by_seed(select_tidy_rows(table, x=samples // 4))
        return late - early

    return _quantity("late_gain", run, read)


def overconfidence_metric(run: Runs) -> ClaimedQuantity:
    """C(x) minus majority accuracy over OOD problems with C(x) >= tau."""

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        table = _consensus(evidence, model, run, "majority_accuracy")
        table = table[is_strong_consensus(table["x"])]
        excess = (100 * table["x"] - table["value"]) * table["problems"]
        return excess.groupby(table["seed"]).sum() / table.groupby("seed")["problems"].sum()

    return _quantity("overconfidence", run, read)


def _consensus(evidence: Evidence, model: str, run: str, rows: str = "pass@k") -> pd.DataFrame:
    return select_tidy_rows(evidence.consensus, model=model, variant=run, quantity=rows)


# ---- Over training -------------------------------------------------------------------------------
def drift_metric(run: Runs) -> ClaimedQuantity:
    """Fisher-Rao distance d_FR from pi_0 at the end of training, in radians."""
    return _quantity("drift/pi_0", run, lambda evidence, *of: evidence.drift_of(*of))


def drift_metric_at(run: Runs, share: float) -> ClaimedQuantity:
    """Fisher-Rao distance d_FR from pi_0 at a share of the run, in radians."""

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        table = select_tidy_rows(evidence.drift_over_steps, model=model, variant=run)
        means = {}
        for seed, rows in table.sort_values("step").groupby("seed"):
            until = share * rows["step"].max()
            reached = rows.loc[rows["step"] <= until, "value"]
            # One step visits a handful of rollouts: the mean over as many as 4 % of all steps.
            window = max(1, round(0.04 * len(rows)))
            if len(reached):
                means[seed] = float(reached.iloc[-window:].mean())
        return pd.Series(means, dtype=float)

    return _quantity("drift_path", run, read, at=share)


def teacher_support_metric(run: Runs) -> ClaimedQuantity:
    """The teacher's mass on the union of top-K supports after training, a mean over states."""

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        rows = select_tidy_rows(evidence.drift, model=model, variant=run, quantity=TEACHER_MASS[0])
        return 100 * tidy_values_by_seed(rows)

    return _quantity("teacher_support", run, read)


def teacher_mass_metric(run: Runs, share: float, ranks: Ranks) -> ClaimedQuantity:
    """Mass on the teacher's rank 1, or ranks 2 and up, at a share of the run."""
    read = partial(_mass, share=share, ranks=ranks)
    return _quantity("mass", run, read, at=share, ranks=ranks)


def teacher_mass_gain_metric(run: Runs, share: float, ranks: Ranks) -> ClaimedQuantity:
    """Mass on the teacher's ranks at a share of the run, minus pi_0's."""

    def read(evidence: Evidence, model: str, run: str) -> pd.Series:
        late = _mass(evidence, model, run, share, ranks)
        start = _mass(evidence, model, run, 0.0, ranks)
        return late - start

    return _quantity("mass_gain", run, read, at=share, ranks=ranks)


def _mass(evidence: Evidence, model: str, run: str, share: float, ranks: Ranks) -> pd.Series:
    table = select_tidy_rows(evidence.alignment, model=model, variant=run, ranking="pi_0")
    is_first = table["rank"] == 1
    table = table[is_first if ranks == "first" else ~is_first]
    if table.empty:
        return pd.Series(dtype=float)
    last = table["step"].max()
    wanted = share * last
    step = min(table["step"].unique(), key=lambda step: abs(step - wanted))
    if abs(step - wanted) > STEP_TOLERANCE * last:
        raise MissingEvidenceError(f"a checkpoint of {run} at {share:g} of its steps")
    at_step = table[table["step"] == step]
    return 100 * at_step.groupby("seed")["mass"].sum()


# ---- The states that pi_0 visits -----------------------------------------------------------------
def mismatch_metric() -> ClaimedQuantity:
    """Share of states in the mismatch region."""

    def read(evidence: Evidence, model: str, _: str) -> pd.Series:
        table = _states(evidence, model)
        region = in_mismatch_region(table["q_star"], table["p_star"])
        return _mean_over_states(table["problem_id"], 100.0 * region)

    return replace(_quantity("mismatch", "pi_0", read), paired_by="problem")


def gradient_norm_metric(
    divergence: Literal["fwdkl", "revkl", "hellinger"],
    overlap: Literal["lowest", "low", "below half"],
) -> ClaimedQuantity:
    """Mean norm of a divergence's gradient over states of a range in `OVERLAPS`."""
    metric = f"gradient_{divergence}"

    def read(evidence: Evidence, model: str, _: str) -> pd.Series:
        table = _states(evidence, model)
        low, high = OVERLAPS[overlap]
        in_range = (table["overlap"] >= low) & (table["overlap"] < high)
        norms = table[metric].where(in_range)
        return _mean_over_states(table["problem_id"], norms, f" of overlap {overlap}")

    return replace(_quantity(metric, "pi_0", read, overlap=overlap), paired_by="problem")


def _states(evidence: Evidence, model: str) -> pd.DataFrame:
    table = select_tidy_rows(evidence.states, model=model)
    if table.empty:
        raise MissingEvidenceError(f"states of {model}")
    return table


def _mean_over_states(problem: pd.Series, y: pd.Series, where: str = "") -> pd.Series:
    """A mean over states as one value per problem, whose mean and spread are those of the mean.

    States of one rollout are no independent draws, and rollouts differ in length. With y_i the sum
    over the states of problem i (NaN left out) and n_i their number, R = sum y_i / sum n_i is the
    mean, and its linearisation R + (y_i - R n_i) m / sum n_i over the m problems has mean R and
    the variance of a ratio (Cochran 1977, eq. 6.13). Problems without a state enter with n_i = 0.
    """
    sums = y.groupby(problem).sum()
    counts = y.groupby(problem).count()
    if (counts > 0).sum() < FEWEST:
        raise MissingEvidenceError(f"{FEWEST} problems with states{where}")
    ratio = sums.sum() / counts.sum()
    deviations = sums - ratio * counts
    return ratio + deviations * len(counts) / counts.sum()
