"""Tidy tables of any study, without any measurement: what `analyse` would write after its runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from geosd.config import Study
from geosd.problems.search.habits import HABITS
from geosd.scores.tidy import COLUMNS

Row = tuple[object, ...]


def made_up_tables(study: Study) -> dict[str, pd.DataFrame]:
    """Each tidy table that figures and tables read, by name."""
    draw = np.random.default_rng(5)
    judged = study.section("data")["purpose"] == "study"
    rows = {
        "scores": [row for run in _runs(study) for row in _scores(study, run, judged, draw)],
        "consensus": [r for run in _runs(study) if judged for r in _consensus(study, run, draw)],
        "habits": [
            (*run, benchmark, habit, draw.uniform(0, 100))
            for run in _runs(study)
            for benchmark in ("id", "ood_avg")
            for habit in HABITS
        ],
        "drift": [
            (*run, name, draw.uniform(0, 0.3))
            for run in _runs(study, study.trained)
            for name in ("drift/pi_0", "drift/anchor", "overlap")
        ],
        "training_curves": [
            (*run, step, name, draw.uniform(0, 1))
            for run in _runs(study, study.trained)
            for step in _steps(study, run)
            for name in ("rollout/accuracy", "drift/pi_0", "overlap")
        ],
        "drift_over_steps": [
            (*run, step, draw.uniform(0, 0.3))
            for run in _runs(study, ("fwdkl", "geosd_no_prox", "geosd"))
            for step in _steps(study, run)
        ],
        "alignment": [
            (*run, step, ranking, rank, draw.uniform(0, 1) / rank, 30)
            for run in _runs(study, ("fwdkl", "geosd"))
            for training in [study.training(str(run[0]), str(run[1]))]
            for step in (0, *training["snapshots"], training["steps"])
            for ranking in ("pi_0", "live")
            for rank in range(1, 9)
        ],
        "states": [
            (model, "train-0", 0, position, 3, *draw.uniform(0, 1, 1), position % 10 == 0)
            + (*draw.uniform(0, 1, 1), 5, *draw.uniform(0, 1, 5))
            for model in study.models
            for position in range(200)
        ],
        "shares": [
            (*run, benchmark, f"{benchmark}-{problem}", 4, draw.integers(5) / 4)
            for run in _runs(study)
            for benchmark in ("id", "long", "easy")
            for problem in range(6)
        ],
    }
    return {name: pd.DataFrame(of, columns=list(COLUMNS[name])) for name, of in rows.items()}


def _runs(study: Study, variants: tuple[str, ...] | None = None) -> Iterator[Row]:
    for model in study.models:
        for variant in study.methods:
            if variants is None or variant in variants:
                yield from ((model, variant, seed, study.draw(seed)) for seed in study.seeds)


def _steps(study: Study, run: Row) -> list[int]:
    training = study.training(str(run[0]), str(run[1]))
    return [*range(0, training["steps"], training["diagnose_every"]), training["steps"]]


def _scores(study: Study, run: Row, judged: bool, draw: np.random.Generator) -> Iterator[Row]:
    evaluation = study.section("evaluation", str(run[0]))
    names = ("id", "long", "easy", "ood_avg") if judged else ("select_validation", "ood_avg")
    for name in names:
        head = (*run, name, "ID" if name == "id" else "OOD")
        yield (*head, "avg@k", evaluation["samples"], draw.uniform(20, 80))
        yield from ((*head, "pass@k", k, draw.uniform(20, 80)) for k in evaluation["pass_k"])


def _consensus(study: Study, run: Row, draw: np.random.Generator) -> Iterator[Row]:
    for k in range(1, study.section("evaluation", str(run[0]))["coverage"] + 1):
        yield (*run, "pass@k", k, 40, draw.uniform(20, 80))
    yield (*run, "false_consensus", 0.75, 40, draw.uniform(0, 10))
    for strength in (0.25, 0.5, 1.0):
        yield (*run, "majority_accuracy", strength, 13, draw.uniform(20, 80))
