"""The numbers of a row of the ledger as printed: effect, interval, the paper's number, runs.

A row is a record of `geosd.reporting.claims_page.claims_page_frame`, or of the file claims.csv.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from geosd.reporting.tables import MISSING

DECIMALS = {"points": 1, "rad": 3, "norm": 3}
"""How effects are printed, by unit."""
OTHER_DECIMALS = 3
"""How effects of other units are printed."""
MOST_DECIMALS = 9
USUAL = 0.95
"""The confidence of an interval that does not say its own."""

_COMPARED = re.compile(r" (?:>|<|within \+-) ?[-+.\de]+(?:, (?P<shared>.*))?$")
"""The end of a comparison in words (`geosd.claims.claim.Comparison`): what it is compared with."""
_AXES = {"ood_avg": "OOD", "id": "ID"}


def claims_number(cell: Any) -> float:
    """A cell of a ledger as a number, NaN where it is empty."""
    return math.nan if cell == "" else float(cell)


def numbers_of_quantity(row: Mapping[str, Any]) -> str:
    """What the effect of a row of a ledger is a value of, as `OOD pass@k: geosd - fwdkl`."""
    comparison = str(row["comparison"])
    end = _COMPARED.search(comparison)
    if end is None:
        return comparison
    compared = comparison[: end.start()]
    shared = end["shared"]
    if not shared:
        return compared
    metric, _, rest = shared.partition(" of ")
    benchmark, over, baseline = rest.partition(" over ")
    if benchmark in _AXES:
        shared = f"{_AXES[benchmark]} {metric}{over}{baseline}"
    return f"{shared}: {compared}"


def numbers_of_interval(row: Mapping[str, Any]) -> tuple[str, str]:
    """Effect and interval of a row of a ledger as printed.

    They have the decimals of their unit, and more where these would not show on which side of a
    margin, or of the paper's number, an end of the interval lies: what is printed decides. Behind
    an interval stands its confidence where that is another than 95 %: one effect has one interval
    of a confidence.
    """
    effect, low, high = (claims_number(row[name]) for name in ("effect", "low", "high"))
    if math.isnan(effect):
        return MISSING, MISSING
    decimals = DECIMALS.get(str(row["unit"]), OTHER_DECIMALS)
    if math.isnan(low):
        return _signed(effect, decimals), MISSING
    bounds = [claims_number(row[name]) for name in ("claimed_from", "claimed_to", "paper_effect")]
    while decimals < MOST_DECIMALS and not _shows_sides((low, high), bounds, decimals):
        decimals += 1
    interval = f"[{_signed(low, decimals)}, {_signed(high, decimals)}]"
    confidence = claims_number(row.get("confidence", ""))
    if not math.isnan(confidence) and not math.isclose(confidence, USUAL):
        interval += f" at {100 * confidence:.4g} %"
    return _signed(effect, decimals), interval


def _signed(value: float, decimals: int) -> str:
    return format(value, f"+z.{decimals}f")  # what rounds to zero has a plus


def _shows_sides(ends: Sequence[float], bounds: Sequence[float], decimals: int) -> bool:
    """Whether rounded ends of an interval lie on the same side of each bound as they do."""
    for bound in bounds:
        if math.isnan(bound):
            continue
        for end in ends:
            if np.sign(end - bound) != np.sign(round(end, decimals) - bound):
                return False
    return True


def numbers_of_effect(row: Mapping[str, Any]) -> str:
    """An effect with its unit and interval."""
    effect, interval = numbers_of_interval(row)
    words = [effect]
    if row["unit"]:
        words.append(row["unit"])
    if interval != MISSING:
        words.append(interval)
    return " ".join(words)


def numbers_of_paper(row: Mapping[str, Any]) -> str:
    """The paper's number of a row of a ledger as printed."""
    paper = claims_number(row["paper_effect"])
    if math.isnan(paper):
        return MISSING
    decimals = 1 if row["unit"] == "points" else 2
    return f"{paper:+.{decimals}f}"


def numbers_of_runs(row: Mapping[str, Any]) -> str:
    """How many runs an effect is of, on each side where they differ, and of how many units."""
    of_a, of_b, units = row["n_a"], row["n_b"], row["units"]
    runs = f"{of_a}" if of_b in (0, of_a) else f"{of_a}, {of_b}"
    return runs if units in (of_a, of_b) else f"{runs}/{units}"
