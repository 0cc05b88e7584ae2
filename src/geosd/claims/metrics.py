"""The quantities that claims compare: one value per run, or per problem of pi_0's states.

Values carry the source they come from. Values of one source are paired, differences are taken
within it: the runs of a seed on one model, which draw the same problems and solutions in training
and the same random numbers in evaluation, and the states of one problem. Models are independent.

metric             unit     details              of
avg@k, maj@k, false_consensus, truncated, tokens  points; tokens: tokens    the score table
pass@k             points   k: a number, or      OOD samples; without k the largest k of the table
                            `quarter` of all
late_gain          points                        pass@n - pass@(n/4) of OOD samples
overconfidence     points                        C(x) minus accuracy of the majority answer, mean
                                                 over OOD problems with C(x) >= tau
drift/pi_0, ...    rad                           the end of training (`geosd.scores.drift_table`)
drift_path         rad      at: share of the run d_FR from pi_0 there
mass               points   at, ranks: first,    the student's mass on pi_0's ranks of tokens
                            others (2 and up)
mass_gain          points   the same             the same, minus what pi_0 gives
frontier_gap       points                        stops against the frontier (`scores.frontier`)
mismatch           points                        states in the mismatch region
gradient_<name>    norm     overlap: a key of    mean norm over states of such overlap
                            `OVERLAPS`
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from geosd.claims.evidence import Evidence, Lacking, axis, same
from geosd.claims.schema import KNOBS, MODEL, Side
from geosd.scores import drift_table as drift_table
from geosd.scores import score_table as score_table
from geosd.scores.consensus_table import THRESHOLD
from geosd.scores.frontier import frontier_gaps
from geosd.scores.state_table import SURE, UNLIKELY

HALVES = {"hard_half": True, "easy_half": False}
OVERLAPS = {"lowest": (0.0, 0.25), "low": (0.25, 0.5), "below half": (0.0, 0.5)}
FEWEST = 20
"""Problems with a state in a range of overlap, below which its mean is not read."""


@dataclass(frozen=True)
class Measured:
    """A side's values.

    Attributes:
        source: What the values come from; equal sources are paired.
        values: Indexed by seed, or by problem.
        kind: What one value is of: "runs" or "problems".
    """

    source: Hashable
    values: pd.Series
    kind: str = "runs"


def unit(metric: str) -> str:
    """The unit of a metric's values: "points" (percent), "rad", "tokens" or "norm"."""
    if metric.startswith("gradient_"):
        return "norm"
    if metric.startswith("drift"):
        return "rad"
    return {"tokens": "tokens", "overlap": "share", "loss/total": "loss"}.get(metric, "points")


def measure(side: Side, model: str, evidence: Evidence) -> Measured:
    """The values of a side whose places are resolved.

    Raises:
        Lacking: The study has none.
        ValueError: There is no such metric.
    """
    model = side.said(MODEL) or model
    run = _run(side, model, evidence)
    if side.metric in (
        "mismatch",
        *(f"gradient_{name}" for name in ("fwdkl", "revkl", "hellinger")),
    ):
        return Measured((model, "states"), _of_states(side, model, evidence), "problems")
    found = _reader(side.metric)(side, model, run, evidence).dropna()
    if found.empty:
        of = f" on {side.benchmark}" if _reader(side.metric) is _score else ""
        raise Lacking(f"{side.metric}{of} of {run}")
    return Measured((model, "runs"), found)


def over(side: Side, variant: str) -> Side:
    """The same quantity of another variant, outside of any sweep."""
    kept = tuple((key, value) for key, value in side.where if key not in KNOBS)
    return replace(side, variant=variant, where=kept)


def _run(side: Side, model: str, evidence: Evidence) -> str:
    """The name of a side's run in the tables."""
    knobs = [key for key in KNOBS if side.said(key) is not None]
    if not knobs:
        return side.variant
    key = knobs[0]
    line = axis(evidence, model, side.variant, key).runs
    run = next((name for value, name in line.items() if same(value, side.said(key))), None)
    if run is None:
        raise Lacking(f"{side.variant} at {key} {side.said(key)}")
    return run


def _reader(metric: str) -> Callable[[Side, str, str, Evidence], pd.Series]:
    if metric in drift_table.QUANTITIES:
        return lambda side, model, run, e: drift_table.values(e.drift, model, run, side.metric)
    try:
        return _READERS[metric]
    except KeyError:
        raise ValueError(
            f"{metric!r} is no metric; allowed are {', '.join(_READERS)},"
            f" {', '.join(drift_table.QUANTITIES)}, mismatch and gradient_<divergence>.\n"
            "Hint: see docs/claims.md."
        ) from None


def _score(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    table = evidence.scores
    if side.metric == "pass@k" and side.said("k") is not None:
        return _passed(evidence, model, run, side.said("k"))
    if side.benchmark not in HALVES:
        return score_table.values(table, model, run, side.benchmark, side.metric)
    names = _half(table, model, hardest=HALVES[side.benchmark])
    parts = [score_table.values(table, model, run, name, side.metric) for name in names]
    return pd.concat(parts, axis=1, join="inner").mean(axis=1)


def _half(table: pd.DataFrame, model: str, *, hardest: bool) -> list[str]:
    """Half of the OOD benchmarks by pi_0's accuracy; the middle one of an odd number in none."""
    names = score_table.ood_benchmarks(table, model)
    accuracy = {n: score_table.values(table, model, "pi_0", n, "avg@k").mean() for n in names}
    if len(names) < 2 or any(np.isnan(value) for value in accuracy.values()):
        raise Lacking("pi_0 on two OOD benchmarks or more")
    order = sorted(names, key=accuracy.__getitem__)
    return order[: len(order) // 2] if hardest else order[-(len(order) // 2) :]


def _passed(evidence: Evidence, model: str, run: str, k: int | str) -> pd.Series:
    table = _agreed(evidence, model, run, "pass@k")
    if table.empty:
        return pd.Series(dtype=float)
    largest = int(table["x"].max())
    wanted = {"quarter": largest // 4, "largest": largest}.get(k, k)
    return table[table["x"] == wanted].set_index("seed")["value"].astype(float).sort_index()


def _late_gain(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    late, early = (_passed(evidence, model, run, k) for k in ("largest", "quarter"))
    return late - early


def _agreed(evidence: Evidence, model: str, run: str, quantity: str) -> pd.DataFrame:
    table = evidence.agreement
    mine = (table["model"] == model) & (table["variant"] == run)
    return table[mine & (table["quantity"] == quantity)]


def _overconfidence(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    table = _agreed(evidence, model, run, "majority_accuracy")
    # The slack keeps 3 of 4 at or above .75, whatever the float division made of it.
    table = table[table["x"] >= THRESHOLD - 1e-12]
    excess = (100 * table["x"] - table["value"]) * table["problems"]
    return excess.groupby(table["seed"]).sum() / table.groupby("seed")["problems"].sum()


def _drift_path(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    table = evidence.path
    found = {}
    mine = table[(table["model"] == model) & (table["variant"] == run)]
    for seed, rows in mine.sort_values("step").groupby("seed"):
        # One step visits a handful of rollouts: the mean over 4 % of the measurements up to there.
        reached = rows[rows["step"] <= side.said("at") * rows["step"].max()]
        if len(reached):
            found[seed] = float(reached["value"].iloc[-max(1, round(0.04 * len(rows))) :].mean())
    return pd.Series(found, dtype=float)


def _mass(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    table = evidence.alignment
    mine = (table["model"] == model) & (table["variant"] == run) & (table["ranking"] == "pi_0")
    chosen = table[mine & ((table["rank"] == 1) == (side.said("ranks") == "first"))]
    if chosen.empty:
        return pd.Series(dtype=float)
    wanted, last = side.said("at") * chosen["step"].max(), chosen["step"].max()
    step = min(chosen["step"].unique(), key=lambda step: abs(step - wanted))
    if abs(step - wanted) > 0.05 * last:
        raise Lacking(f"a checkpoint of {run} at {side.said('at'):g} of its steps")
    return 100 * chosen[chosen["step"] == step].groupby("seed")["mass"].sum()


def _mass_gain(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    start = replace(side, where=tuple((k, 0 if k == "at" else v) for k, v in side.where))
    return _mass(side, model, run, evidence) - _mass(start, model, run, evidence)


def _frontier_gap(side: Side, model: str, run: str, evidence: Evidence) -> pd.Series:
    rates, stops = (axis(evidence, model, side.variant, key) for key in ("learning_rate", "steps"))
    if len(rates.runs) < 3 or len(stops.runs) < 2:
        raise Lacking(f"sweeps of learning rate and steps of {side.variant}")
    upto = [name for value, name in rates.runs.items() if value <= (rates.own or np.inf)]
    return frontier_gaps(evidence.scores, model, ["pi_0", *upto], list(stops.runs.values())[:-1])


def _of_states(side: Side, model: str, evidence: Evidence) -> pd.Series:
    """A mean over states as one value per problem, whose mean and spread are those of the mean.

    States of one rollout are no independent draws, and rollouts differ in length. With y_i the sum
    over the states of problem i and n_i their number, R = sum y_i / sum n_i is the mean, and its
    linearisation R + (y_i - R n_i) m / sum n_i over the m problems has mean R and the variance of
    a ratio (Cochran 1977, eq. 6.13). Problems without such a state enter with n_i = 0.
    """
    table = evidence.states
    table = table[table["model"] == model]
    if table.empty:
        raise Lacking(f"states of {model}")
    inside = pd.Series(True, index=table.index)
    if side.metric == "mismatch":
        y = 100.0 * ((table["q_star"] >= SURE) & (table["p_star"] <= UNLIKELY))
    else:
        low, high = OVERLAPS[side.said("overlap")]
        inside, y = (table["overlap"] >= low) & (table["overlap"] < high), table[side.metric]
    sums = (y * inside).groupby(table["problem_id"]).sum()
    counts = inside.groupby(table["problem_id"]).sum()
    if (counts > 0).sum() < FEWEST:
        raise Lacking(f"{FEWEST} problems with states of overlap {side.said('overlap')}")
    ratio = sums.sum() / counts.sum()
    return ratio + (sums - ratio * counts) * len(counts) / counts.sum()


_READERS: dict[str, Callable[[Side, str, str, Evidence], pd.Series]] = {
    **dict.fromkeys(("avg@k", "pass@k", "maj@k", "false_consensus", "truncated", "tokens"), _score),
    "late_gain": _late_gain,
    "overconfidence": _overconfidence,
    "drift_path": _drift_path,
    "mass": _mass,
    "mass_gain": _mass_gain,
    "frontier_gap": _frontier_gap,
}
