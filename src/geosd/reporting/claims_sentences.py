"""A ledger of claims in sentences: how many have each word, and what a study found."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.claims.finding import ALL_MODELS, NOT_JUDGED, WORDS
from geosd.reporting.claims_numbers import (
    claims_number,
    numbers_of_effect,
    numbers_of_paper,
    numbers_of_quantity,
)
from geosd.reporting.tables import MISSING


def claims_counts_sentence(ledger: pd.DataFrame) -> str:
    """How many claims have each word, primary ones and those by construction left out."""
    others = ledger[ledger["part"] == "other"]
    costs = ledger[ledger["part"] == "computed"]
    parts = []
    if len(others):
        parts.append(f"Of the other claims {_counted(others)}.")
    if (costs["word"] != "not exercised").any():
        parts.append(f"Of the costs {_counted(costs)}.")
    held = (others["holds_paper"] == "yes").sum()
    rows = held + (others["holds_paper"] == "no").sum()
    if rows:
        parts.append(f"The interval holds the paper's number in {held} of {rows} rows.")
    return " ".join(parts)


def _counted(rows: pd.DataFrame) -> str:
    """How many claims have each word, by their first rows: `3 agree and 1 is opposite`."""
    counts = rows.drop_duplicates("claim")["word"].value_counts()
    phrases = [_count_of(word, counts[word]) for word in WORDS if word in counts]
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _count_of(word: str, count: int) -> str:
    if word == "agrees":
        return f"{count} agrees" if count == 1 else f"{count} agree"
    return f"{count} is {word}" if count == 1 else f"{count} are {word}"


def finding_sentence(ledger: pd.DataFrame) -> str:
    """What a study found, in one sentence with effect, interval, runs and the paper's number.

    A main study has GeoSD's change in and out of distribution, another how its claims stand and the
    first of them. Empty if nothing was exercised.
    """
    rows = _rows_of_sentence(ledger)
    if rows.empty:
        return ""
    gains = [
        rows[rows["claim"] == claim].to_dict("records")
        for claim in ("geosd-id-gain", "geosd-ood-gain")
    ]
    if all(gains):
        (in_distribution, *_), (out_of_distribution, *_) = gains
        changes = f"{_change(in_distribution, 'in')}, and {_change(out_of_distribution, 'out of')}"
        words = f"Against the base model GeoSD {changes}"
        papers = [numbers_of_paper(in_distribution), numbers_of_paper(out_of_distribution)]
        return f"{words} ({_basis(in_distribution, papers)})."
    first = rows.iloc[0].to_dict()
    words = f"{first['statement']}, {numbers_of_effect(first)}"
    if NOT_JUDGED not in set(rows["word"]):
        counts = f"Of this study's claims {_counted(rows)}"
        words = f"{counts}; the first, {first['word']}: {words}"
    return f"{words} ({numbers_of_quantity(first)}; {_basis(first, [numbers_of_paper(first)])})."


def _rows_of_sentence(ledger: pd.DataFrame) -> pd.DataFrame:
    """The exercised claims that are no arithmetic, of one study those that it is designed for."""
    exercised = ledger["word"] != "not exercised"
    rows = ledger[exercised & ledger["part"].isin(("primary", "other"))]
    special = rows[rows["designed_for"] != "main"]
    if len(special) and rows["study"].nunique() == 1:
        return special
    return rows


def _change(row: Mapping[str, Any], where: str) -> str:
    """GeoSD's change `where` ("in" or "out of") distribution, with the verb of its interval."""
    verb = "may gain or lose"
    if claims_number(row["high"]) < 0:
        verb = "loses"
    elif claims_number(row["low"]) > 0:
        verb = "gains"
    return f"{verb} {where} distribution, {numbers_of_effect(row)}"


def _basis(row: Mapping[str, Any], papers: list[str]) -> str:
    """The runs, base models and model of an effect, and the paper's numbers that there are."""
    basis = f"{row['n_a']} runs"
    if row["units"] not in (row["n_a"], row["n_b"]):
        basis += f" on {row['units']} base models"
    if row["model"] != ALL_MODELS:
        basis += f", {row['model']}"
    printed = [paper for paper in papers if paper != MISSING]
    if printed:
        basis += f"; the paper: {' and '.join(printed)}"
    return basis
