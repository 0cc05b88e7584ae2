"""Claims judged in stages: after some seeds, after more, and after all; docs/lean.md.

A row is decided at the first stage whose interval holds no margin, and is not judged again. A row
that is open, and that the seeds to come would hardly decide, is given up as futile; nothing is
gained by that for the level, because no bound counts on it.
"""

import math
from collections.abc import Sequence
from dataclasses import fields, replace

import pandas as pd
from scipy.stats import t

from geosd.claims.claim import Claim
from geosd.claims.evidence import Evidence
from geosd.claims.finding import WORDS, Finding
from geosd.claims.judging import judge_claims
from geosd.scores.stages import UNLIKELY, stage_decision_chance, stage_level_at
from geosd.scores.statistics import GroupStatistics

AGREES, OPPOSITE, OPEN, _ = WORDS


def judge_in_stages(
    claims: Sequence[Claim],
    evidence: Evidence,
    seeds: Sequence[int],
    families: int,
    models: Sequence[str],
) -> list[Finding]:
    """Judge claims at each stage that the evidence has seeds for; the note names a row's stage.

    Args:
        seeds: Their numbers at each stage, ascending; those of a stage are the smallest.
        families: Models of the whole design; those that are decided need no later stage.

    Raises:
        ValueError: There are fewer seeds than the first stage has.
    """
    stages, run = seeds, sorted(evidence.scores["seed"].unique())
    reached = [number for number in stages if number <= len(run)]
    if not reached:
        raise ValueError(
            f"{len(run)} seeds, and the first stage has {stages[0]}.\n"
            "Hint: `seeds` of the study; docs/lean.md."
        )
    decided: dict[tuple[str, str], Finding] = {}
    last: list[Finding] = []
    for stage, number in enumerate(reached):
        of_stage = _first_seeds(evidence, run[:number])
        last = judge_claims(claims, of_stage, models, stage_level_at(stages, stage), families)
        for row in last:
            key = (row.claim.id, row.model)
            if key not in decided and row.word in (AGREES, OPPOSITE):
                decided[key] = _noted(row, f"decided at {number} of {stages[-1]} seeds")
    ends = reached[-1], stages[-1]
    return [decided.get((row.claim.id, row.model)) or _open(row, *ends) for row in last]


def _first_seeds(evidence: Evidence, seeds: Sequence[int]) -> Evidence:
    """The evidence of some seeds; tables without a column of seeds stay whole."""
    tables = {field.name: getattr(evidence, field.name) for field in fields(evidence)}
    kept = {
        name: table[table["seed"].isin(seeds)]
        for name, table in tables.items()
        if isinstance(table, pd.DataFrame) and "seed" in table
    }
    return replace(evidence, **kept)


def _chance_of_word(row: Finding, reached: int, planned: int) -> float:
    """The chance that an open row is decided once all seeds are there, at the level of this stage.

    NaN where no chance is known: of decided rows, of a single value, of values that are problems.
    """
    holds = row.claim.holds
    of_problems = not callable(holds) and any(each.a.paired_by == "problem" for each in holds)
    if row.word != OPEN or math.isnan(row.low) or row.units < 2 or of_problems:
        return math.nan
    level = 1 - row.confidence
    half = (row.high - row.low) / 2
    sd = half / float(t.isf(level / 2, row.units - 1)) * math.sqrt(row.units)
    units = round(row.units * planned / reached)
    ends = (row.claimed_from, row.claimed_to)
    return stage_decision_chance(GroupStatistics(row.effect, sd, row.units), units, level, ends)


def _open(row: Finding, reached: int, planned: int) -> Finding:
    """An open row with what is to come, in words."""
    left = planned - reached
    if row.word != OPEN or not left:
        return row
    chance = _chance_of_word(row, reached, planned)
    if math.isnan(chance):
        return _noted(row, f"open, {left} seeds to come")
    given_up = "given up: " if chance < UNLIKELY else ""
    return _noted(row, f"{given_up}{left} more seeds decide it with a chance of {chance:.2f}")


def _noted(row: Finding, words: str) -> Finding:
    return replace(row, note="; ".join(filter(None, (row.note, words))))
