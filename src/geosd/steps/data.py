"""Draw the problems of a study.

Writes train.jsonl, select.jsonl, test.jsonl, card.json with what was drawn, kept and dropped, and,
last, a manifest. A selection of hyperparameters trains and tests on what its study leaves in
select.jsonl, and leaves there what its study trains and tests on.
"""

from __future__ import annotations

import time
from pathlib import Path

from geosd.config import load as load_params
from geosd.config import resolve
from geosd.config import settings as settings_of
from geosd.files import write_json, write_jsonl
from geosd.problems.sources import get_data_source
from geosd.provenance.manifest import manifest
from geosd.steps import begin


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the problems of a study.

    Args:
        study: Name of the study.
        out: Folder of the problem files and their card.
        params: The configuration.
    """
    began = time.monotonic()
    settings = settings_of("data", resolve(load_params(params), study))
    source = get_data_source(settings["source"])
    splits = source.prepare(settings)
    files = {"train": splits.train, "select": splits.select, "test": splits.test}
    if settings["purpose"] == "selection":
        train = [problem for problem in splits.select if problem.benchmark == "select_train"]
        test = [problem for problem in splits.select if problem.benchmark == "select_validation"]
        # What a selection leaves alone is kept: no base model may be trained on it either, so that
        # a selection's pi_0 is its study's, bit for bit.
        files = {"train": train, "select": (*splits.train, *splits.test), "test": test}
    for name, problems in files.items():
        write_jsonl(out / f"{name}.jsonl", problems)
    write_json(out / "card.json", {**splits.card, "settings": settings})
    inputs = [Path(settings["raw"])] if source.reads_raw else []
    write_json(out / "manifest.json", manifest(inputs, settings, time.monotonic() - began))


if __name__ == "__main__":
    begin(main)
