"""Checks of hyperparameters that say what is allowed."""

from __future__ import annotations

import math
from typing import Any


def number(
    where: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    hint: str,
) -> None:
    """Raise ValueError unless `value` is a number between `low` and `high`.

    Args:
        where: The hyperparameter, as "method.name".
        value: What was given.
        low: Least value allowed; excluded if `open_low`.
        high: Greatest value allowed; excluded if `open_high`.
        open_low: Whether `low` itself is refused.
        open_high: Whether `high` itself is refused.
        hint: What to do, for the message.
    """
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if numeric and (low < value if open_low else low <= value):
        if value < high if open_high else value <= high:
            return
    interval = f"{'(' if open_low else '['}{low}, {high}{')' if open_high else ']'}"
    raise ValueError(f"{where} is {value!r}; allowed is a number in {interval}.\nHint: {hint}")


def choice(where: str, value: Any, allowed: tuple[str, ...], *, hint: str) -> None:
    """Raise ValueError unless `value` is one of `allowed`."""
    if value not in allowed:
        options = ", ".join(map(repr, allowed))
        raise ValueError(f"{where} is {value!r}; allowed are {options}.\nHint: {hint}")


def whole(where: str, value: Any, low: int, *, hint: str) -> None:
    """Raise ValueError unless `value` is an integer of at least `low`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ValueError(
            f"{where} is {value!r}; allowed is an integer of at least {low}.\nHint: {hint}"
        )
