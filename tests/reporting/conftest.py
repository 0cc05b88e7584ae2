"""Made-up scores: the shape of a study, without any measurement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from geosd.scores.tidy import COLUMNS

CENTRES = {  # variant: (ID, OOD)
    "pi_0": (60, 50),
    "sft": (78, 38),
    "grpo": (79, 52),
    "fwdkl": (83, 42),
    "revkl": (80, 43),
    "jsd": (79.5, 50.5),
    "skewkl": (80.5, 51),
    "tropd": (80.2, 53),
    "tip": (76, 52.5),
    "geosd": (82, 59),
}
BENCHMARKS = ("long", "mulhard", "mixed", "easy")


@pytest.fixture
def svg_alone(monkeypatch):
    """Leave PDF and PNG files empty: SVG has all that a figure draws, and takes a third."""
    save = Figure.savefig

    def saved(figure, path, *, format, **options):
        save(figure, path, format=format, **options) if format == "svg" else Path(path).touch()

    monkeypatch.setattr(Figure, "savefig", saved)


@pytest.fixture
def make():
    """Scores of a study: models x variants x seeds on ID and four OOD benchmarks."""

    def scores(models=("mini-qwen3",), variants=tuple(CENTRES), seeds=3) -> pd.DataFrame:
        draw = np.random.default_rng(5)
        rows = []
        for model in models:
            for variant in variants:
                for seed in range(seeds):
                    at_id, at_ood = np.array(CENTRES[variant]) + draw.normal(0, 1.2, 2)
                    ood = dict(zip(BENCHMARKS, at_ood + draw.normal(0, 2, 4), strict=True))
                    ood["ood_avg"] = float(np.mean(list(ood.values())))
                    for benchmark, value in {"id": at_id, **ood}.items():
                        split = "ID" if benchmark == "id" else "OOD"
                        head = (model, variant, seed, 0, benchmark, split)
                        rows.append((*head, "avg@k", 16, value))
                        for k in (1, 16):
                            rows.append((*head, "pass@k", k, value + 0.5 * k))
        return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))

    return scores
