"""The factorial's paths, effects and cells, computed from shipped files.

The tests of docs/factorial.md compare the page and the shipped tables with them. numpy, pandas,
scipy and statsmodels are used, and nothing of geosd, so that the two can disagree.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cache

import numpy as np
import shipped_studies
from scipy import stats
from shipped_studies import page_number
from statsmodels.stats.multitest import multipletests

CANDIDATE = re.compile(
    r"geosd(?:_(?P<kind>jsd)|-divergence_(?P<pull>\w+))-drift_penalty_(?P<penalty>[\d.]+)"
    r"-rule_(?P<rule>\w+)-learning_rate_[^-]+-?\d*-steps_(?P<steps>\d+)"
)
# The label of each divergence, and its curvature near agreement as a share of Q.
PULLS = {
    "hellinger": ("Hellinger", 1 / 8),
    "jsd": ("JSD", 1 / 8),
    "fwdkl": ("FwdKL", 1 / 2),
    "revkl": ("RevKL", 1 / 2),
}
RULES = {"kfac": "K-FAC", "adamw": "AdamW"}
LABELS = {pull: label for pull, (label, _) in PULLS.items()} | RULES
MOVED = {"id": 6.0, "drift": 0.10}
FACTORS = ("pull", "ratio", "rule")

# An effect is a change of one factor, or of two at once: factor -> (setting, setting subtracted).
PRIMARY = {
    "FwdKL − Hellinger": {"pull": ("fwdkl", "hellinger")},
    "ratio 8 − ratio 0": {"ratio": (8.0, 0.0)},
    "K-FAC − AdamW": {"rule": ("kfac", "adamw")},
}
DIVERGENCES = {
    "JSD − Hellinger": {"pull": ("jsd", "hellinger")},
    "FwdKL − Hellinger": {"pull": ("fwdkl", "hellinger")},
    "RevKL − Hellinger": {"pull": ("revkl", "hellinger")},
}
STRENGTHS = {
    "ratio 8 − ratio 0": {"ratio": (8.0, 0.0)},
    "ratio 32 − ratio 0": {"ratio": (32.0, 0.0)},
}
OPTIMISER = {"K-FAC − AdamW": {"rule": ("kfac", "adamw")}}


def interaction_label(difference, second):
    """`(FwdKL − Hellinger) at ratio 8 − at ratio 0`."""
    setting, subtracted = second.split(" − ")
    return f"({difference}) at {setting} − at {subtracted}"


def interactions():
    found = {}
    for divergence, changed in DIVERGENCES.items():
        for strength, changed_too in STRENGTHS.items():
            found[interaction_label(divergence, strength)] = changed | changed_too
    for strength, changed in STRENGTHS.items():
        found[interaction_label(strength, "K-FAC − AdamW")] = changed | OPTIMISER["K-FAC − AdamW"]
    return found


def effects_among(pulls, ratios):
    """The effects whose settings are all in a design, in the order of the page."""
    every = DIVERGENCES | STRENGTHS | OPTIMISER | interactions()
    there = {"pull": set(pulls), "ratio": set(ratios), "rule": set(RULES)}
    return {
        label: changes
        for label, changes in every.items()
        if all(set(ends) <= there[factor] for factor, ends in changes.items())
    }


@cache
def paths(study):
    """(pull, ratio, rule, draw) -> rows: step, ID gain, OOD gain and drift of the path from π₀."""
    accuracy = shipped_studies.accuracies(study).droplevel("seed")
    drift = shipped_studies.drifts(study).droplevel("seed")
    points: dict[tuple, list] = {}
    for variant, draw in drift.index:
        part = CANDIDATE.fullmatch(variant)
        pull = part["kind"] or part["pull"]
        ratio = float(part["penalty"]) / PULLS[pull][1]
        gains = [
            accuracy[variant, draw, benchmark] - accuracy["pi_0", draw, benchmark]
            for benchmark in ("id", "ood_avg")
        ]
        point = (int(part["steps"]), *gains, drift[variant, draw])
        points.setdefault((pull, ratio, part["rule"], draw), []).append(point)
    return {
        run: np.array([(0, 0, 0, 0), *sorted(of_run)], dtype=float).T
        for run, of_run in points.items()
    }


def ood_gain(path, by):
    """OOD gain where the path has first moved so far; NaN where it never does."""
    moved = path[{"id": 1, "drift": 3}[by]]
    return shipped_studies.value_at(moved, path[2], MOVED[by])


def effect_of_draws(study, by, changes, draws=None):
    """An effect in each draw that has one: the mean over the settings of the other factors."""
    values = {run: ood_gain(path, by) for run, path in paths(study).items()}
    levels = [sorted({run[i] for run in values}) for i in range(4)]
    found = []
    for draw in levels[3]:
        if draws is not None and draw not in draws:
            continue
        fixed = [[None] if factor in changes else levels[i] for i, factor in enumerate(FACTORS)]
        of_cells = []
        for cell in itertools.product(*fixed):
            total = 0.0
            for sides in itertools.product((0, 1), repeat=len(changes)):
                at = dict(zip(FACTORS, cell, strict=True))
                for (factor, ends), side in zip(changes.items(), sides, strict=True):
                    at[factor] = ends[side]
                total += (-1) ** sum(sides) * values[(*at.values(), draw)]
            of_cells.append(total)
        if np.isfinite(of_cells).any():
            found.append(np.nanmean(of_cells))
    return np.array(found)


def limits(values):
    return stats.ttest_1samp(values, 0).confidence_interval(0.95)


def interval_cell(values):
    if len(values) == 0:
        return "–"
    mean = page_number(np.mean(values))
    if len(values) == 1:
        return f"{mean} (n = 1)"
    low, high = limits(values)
    return f"{mean} [{page_number(low)}, {page_number(high)}] (n = {len(values)})"


def effect_rows(ends, effects, draws=None):
    """The page's table of effects, line by line; `ends` maps a conflict to its study."""
    for label, changes in effects.items():
        cells = [
            interval_cell(effect_of_draws(study, by, changes, draws))
            for by in MOVED
            for study in ends.values()
        ]
        yield f"| {label} | {' | '.join(cells)} |"


def settings(study):
    """The divergences and the ratios that a study has, in the page's order."""
    runs = list(paths(study))
    pulls = [pull for pull in PULLS if any(run[0] == pull for run in runs)]
    return pulls, sorted({run[1] for run in runs})


def has_collapsed(path):
    """Whether a run is ten points or more below π₀ after its last step, ID or OOD."""
    return (path[1:3, -1] <= -10).any()


def cell_rows(study):
    """The page's table of cells at one end, line by line."""
    for pull, ratio, rule in itertools.product(*settings(study), RULES):
        runs = [path for run, path in paths(study).items() if run[:3] == (pull, ratio, rule)]
        cells = []
        for by in MOVED:
            reached = [ood_gain(path, by) for path in runs]
            reached = [value for value in reached if not math.isnan(value)]
            mean = page_number(np.mean(reached)) if reached else "–"
            cells.append(f"{mean} ({len(reached)} of {len(runs)})")
        last = np.mean([path[1:, -1] for path in runs], axis=0)
        fallen = sum(has_collapsed(path) for path in runs)
        cells += [
            page_number(last[0]),
            page_number(last[1]),
            f"{last[2]:.3f}",
            f"{fallen} of {len(runs)}",
        ]
        yield f"| {LABELS[pull]}, {ratio:g}, {LABELS[rule]} | {' | '.join(cells)} |"


def collapse_rows(ends):
    """The page's table of collapses by part, line by line, with conflict 1 first."""
    pulls, ratios = settings(next(iter(ends.values())))
    for part, of_part in {0: pulls, 1: ratios, 2: RULES}.items():
        for setting in of_part:
            cells = []
            for study in ends.values():
                runs = [path for run, path in paths(study).items() if run[part] == setting]
                fallen = sum(has_collapsed(path) for path in runs)
                cells.append(f"{fallen} of {len(runs)}")
            label = f"ratio {setting:g}" if part == 1 else LABELS[setting]
            yield f"| {label} | {' | '.join(cells)} |"


def primary_p(ends, draws=None):
    """Holm's p of each primary test, by effect and end, over the six."""
    tests = {}
    for label, end in itertools.product(PRIMARY, ends):
        values = effect_of_draws(ends[end], "id", PRIMARY[label], draws)
        tests[label, end] = stats.ttest_1samp(values, 0).pvalue if len(values) > 1 else math.nan
    known = {key: p for key, p in tests.items() if math.isfinite(p)}
    return dict(zip(known, multipletests([*known.values()], method="holm")[1], strict=True))


def primary_rows(ends):
    corrected = primary_p(ends)
    for label in PRIMARY:
        cells = [
            f"{corrected[label, end]:.2f}" if (label, end) in corrected else "–" for end in ends
        ]
        yield f"| {label} | {' | '.join(cells)} |"
