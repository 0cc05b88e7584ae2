"""Draw the problems of a study.

Writes train.jsonl, select.jsonl, test.jsonl, and, last, card.json with what was drawn, kept and
dropped. A selection of hyperparameters trains and tests on what its study leaves in select.jsonl,
and leaves there what its study trains and tests on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tyro

from geosd.config import load as load_params
from geosd.config import resolve
from geosd.config import settings as settings_of
from geosd.files import write_json, write_jsonl
from geosd.problems.dapo.preparing import Prepared, prepare
from geosd.problems.dapo.raw import read_raw
from geosd.problems.splits import Splits, draw_splits

SIZES = ("train", "select_train", "select_validation", "test_id", "test_per_benchmark")


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the problems of a study.

    Args:
        study: Name of the study.
        out: Folder of the problem files and their card.
        params: The configuration.
    """
    settings = settings_of("data", resolve(load_params(params), study))
    splits, card = _from_world(settings) if settings["source"] == "world" else _from_dapo(settings)
    files = {"train": splits.train, "select": splits.select, "test": splits.test}
    if settings["purpose"] == "selection":
        train = [problem for problem in splits.select if problem.benchmark == "select_train"]
        test = [problem for problem in splits.select if problem.benchmark == "select_validation"]
        # What a selection leaves alone is kept: no base model may be trained on it either, so that
        # a selection's pi_0 is its study's, bit for bit.
        files = {"train": train, "select": (*splits.train, *splits.test), "test": test}
    for name, problems in files.items():
        write_jsonl(out / f"{name}.jsonl", problems)
    write_json(out / "card.json", {**card, "settings": settings})


def _from_dapo(settings: dict[str, Any]) -> tuple[Prepared, dict[str, Any]]:
    if settings["raw"] is None:
        raise ValueError(
            "data.raw is null; problems of 'dapo-math' are read from a folder.\nHint: docs/data.md"
            " says which files it holds."
        )
    raw = read_raw(Path(settings["raw"]))
    sizes = {name: settings[name] for name in SIZES}
    prepared = prepare(raw, **sizes, overlaps=settings["overlaps"], seed=settings["seed"])
    return prepared, dict(prepared.card)


def _from_world(settings: dict[str, Any]) -> tuple[Splits, dict[str, Any]]:
    splits = draw_splits(**{name: settings[name] for name in SIZES}, seed=settings["seed"])
    kept = Counter(problem.benchmark for problem in (*splits.train, *splits.select, *splits.test))
    card = {
        name: {
            "generated": splits.generated[name],
            "duplicates_dropped": splits.duplicates[name],
            "kept": kept[name],
        }
        for name in splits.generated
    }
    return splits, {"benchmarks": card}


if __name__ == "__main__":
    tyro.cli(main)
