"""Which sets of problems are out of distribution."""

from __future__ import annotations

ID = "id"
"""The held-out split of the training distribution."""


def out_of_distribution(benchmark: str) -> bool:
    """Whether a set of problems is one of the OOD benchmarks: neither ID nor a selection's."""
    return benchmark != ID and not benchmark.startswith("select_")
