"""What each part of GeoSD does at equal movement: main effects and interactions of a factorial."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from geosd.reporting.factorial_runs import (
    DIVERGENCE,
    DIVERGENCES,
    FACTORS,
    OPTIMISER,
    OPTIMISERS,
    RATIO,
    Parts,
    factorial_run_stops,
)
from geosd.reporting.method_tables import candidate_method_table
from geosd.reporting.table_factorial import ENDPOINTS
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.equal_movement import gains_at_equal_movement
from geosd.scores.factorial_effects import (
    FactorialChange,
    effect_over_draws,
    interaction,
    main_effect,
)

HELLINGER = "hellinger"
INTERACTION = "Interactions"


class FactorialTableEffect(NamedTuple):
    """An effect of the table: its label, its block, and its value in each draw at an endpoint."""

    label: str
    kind: str
    by_draw: Callable[[pd.DataFrame, str], pd.Series]


def build(scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], parts: Parts) -> Table:
    """Build `table_factorial_effects`: a row for each effect, in OOD gain at equal movement."""
    stops = factorial_run_stops(scores, drift, models[0], parts)
    each = gains_at_equal_movement(stops, [*FACTORS, "seed", "draw"])
    keys = [*FACTORS, "draw"]
    runs = each.groupby(keys, sort=False)[[*ENDPOINTS]].mean().reset_index()
    rows = []
    for effect in _effects_of(runs):
        cells = {}
        for endpoint in ENDPOINTS:
            cells |= _cells(effect.by_draw(runs, endpoint), endpoint)
        rows.append((effect.label, effect.kind, cells))
    return candidate_method_table(
        "table_factorial_effects",
        "Effects of GeoSD's parts on the OOD gain at equal movement",
        _note(models[0], runs),
        "Effect",
        _columns(),
        rows,
    )


def _effects_of(runs: pd.DataFrame) -> Iterator[FactorialTableEffect]:
    """The effects that the settings of some runs allow, main effects first."""
    seen = {factor: set(runs[factor]) for factor in FACTORS}
    divergences = [
        FactorialChange(DIVERGENCE, name, HELLINGER)
        for name in DIVERGENCES
        if name != HELLINGER and {name, HELLINGER} <= seen[DIVERGENCE]
    ]
    ratios = [FactorialChange(RATIO, ratio, 0.0) for ratio in sorted(seen[RATIO]) if ratio]
    ratios = ratios if 0.0 in seen[RATIO] else []
    optimisers = [FactorialChange(OPTIMISER, "kfac", "adamw")] if len(seen[OPTIMISER]) == 2 else []
    for factor, changes in zip(FACTORS, (divergences, ratios, optimisers), strict=True):
        for change in changes:
            yield _main(change, factor.capitalize())
    pairs = [(first, second) for first in divergences for second in ratios]
    pairs += [(first, second) for first in ratios for second in optimisers]
    for first, second in pairs:
        yield _between(first, second)


def _main(change: FactorialChange, kind: str) -> FactorialTableEffect:
    def by_draw(runs: pd.DataFrame, endpoint: str) -> pd.Series:
        return main_effect(runs, FACTORS, change, endpoint)

    return FactorialTableEffect(_words(change), kind, by_draw)


def _between(first: FactorialChange, second: FactorialChange) -> FactorialTableEffect:
    def by_draw(runs: pd.DataFrame, endpoint: str) -> pd.Series:
        return interaction(runs, FACTORS, first, second, endpoint)

    to, of = (_setting(second.factor, setting) for setting in (second.to, second.of))
    return FactorialTableEffect(f"({_words(first)}) at {to} − at {of}", INTERACTION, by_draw)


def _words(change: FactorialChange) -> str:
    to, of = (_setting(change.factor, setting) for setting in (change.to, change.of))
    return f"{to} − {of}"


def _setting(factor: str, setting: object) -> str:
    if factor == RATIO:
        return f"ratio {setting:g}"
    return {**DIVERGENCES, **OPTIMISERS}[str(setting)]


def _columns() -> list[TableColumn]:
    return [
        TableColumn(f"{endpoint}{suffix}", label, words)
        for endpoint, words in ENDPOINTS.items()
        for suffix, label in (("", "difference"), (".p", "p"), (".draws", "draws"))
    ]


def _cells(by_draw: pd.Series, endpoint: str) -> dict[str, TableCell]:
    found = effect_over_draws(by_draw)
    if found is None:
        return {f"{endpoint}.draws": TableCell("0")}
    test, p = found
    return {
        endpoint: TableCell(test.difference, test.high - test.difference, "+.2f"),
        f"{endpoint}.p": TableCell(p, form=".2g"),
        f"{endpoint}.draws": TableCell(str(len(by_draw))),
    }


def _note(model: str, runs: pd.DataFrame) -> str:
    return (
        "Difference of OOD gains in points at equal movement, mean over draws ± half-width of"
        f" Student's 95 % interval; p by Student's t test, two-sided and uncorrected. Within each"
        f" of {runs['draw'].nunique()} draws of {model} a difference is the mean over the settings"
        " of the other factors at which all of its runs have got so far; draws without any are"
        " left out. Ratio is that of the curvature of λ d_FR² to that of the divergence."
    )
