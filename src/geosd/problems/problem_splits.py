"""The problems of a study, whatever source they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from geosd.problems.records import Problem


@dataclass(frozen=True)
class ProblemSplits:
    """The problems of a study.

    Attributes:
        train: Problems to train on, benchmark `train`.
        select: Problems to choose hyperparameters with, benchmarks `select_train` and
            `select_validation`.
        test: The in-distribution problems, benchmark `id`, then the other benchmarks.
        card: What was read or drawn, dropped and kept, in plain values for JSON.
    """

    train: tuple[Problem, ...]
    select: tuple[Problem, ...]
    test: tuple[Problem, ...]
    card: Mapping[str, Any]
