"""Write the learning rates that a selection found best into params.yaml.

The selection's table says which candidate of each method is best on the validation problems; this
puts its rate where a study takes it from, so that no chosen number is ever typed. Run it again
after every selection: what is there already is left alone, to the character.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geosd.config import Params, load, resolve
from geosd.config.editing import with_numbers
from geosd.config.overlays import said
from geosd.config.sweeps import sweep
from geosd.files import write_text
from geosd.scores.best_candidate import best_candidate
from geosd.scores.score_table import read
from geosd.steps import begin

KEY = "learning_rate"


def main(
    study: str, scores: Path, into: tuple[str, ...], params: Path = Path("params.yaml")
) -> None:
    """Write the best learning rates of a selection into the studies that use them.

    Args:
        study: The selection.
        scores: Its tidy scores.
        into: Studies whose `variants` are written; of each, those that name a learning rate.
        params: The configuration, written in place.
    """
    loaded = load(params)
    resolved = resolve(loaded, study)
    table = read(scores)
    rates = {
        variant: candidates[best_candidate(table, list(candidates))]
        for variant, candidates in sweep(resolved, KEY).items()
    }
    numbers = {
        ("studies", name, "variants", variant, "training", KEY): rate
        for name in into
        for variant, rate in rates.items()
        if KEY in _own(loaded, name, variant)
    }
    text = params.read_text(encoding="utf-8")
    changed = with_numbers(text, numbers)
    if changed != text:
        write_text(params, changed)
    for path, rate in numbers.items():
        print(f"{path[1]}: {path[3]} {rate:g}")
    print(f"{params} {'has changed' if changed != text else 'said so already'}")


def _own(params: Params, study: str, variant: str) -> dict[str, Any]:
    """What a study itself says of a variant's training."""
    own = params.studies[study].variants.get(variant)
    return said(own.training) if own else {}


if __name__ == "__main__":
    begin(main)
