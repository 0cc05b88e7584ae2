"""Nested settings by dotted names, such as `optimiser.kfac.damping`."""

from collections.abc import Iterator, Mapping
from typing import Any


def dotted_items(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings, each by its dotted name; an empty mapping is a leaf.

    Example:
        >>> dict(dotted_items({"rule": "kfac", "kfac": {"damping": 0.1}}))
        {'rule': 'kfac', 'kfac.damping': 0.1}
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{key}.{name}", leaf) for name, leaf in dotted_items(value))
        else:
            yield key, value
